import { describe, expect, it } from 'vitest';
import { call, FACTS, PlanDriver } from './plan-driver.ts';

const from = (host: string) => ({ ...FACTS, known: 0, hosts: [host] });
const familiarityOf = (driver: PlanDriver): readonly (number | undefined)[] =>
  driver.rowsOf('call_decided').map(({ data }) => data.call.confidence?.components.familiarity);

describe('a host outside', () => {
  it('is new to the plan until it was read from once, and another one stays new', () => {
    const driver = PlanDriver.run(
      {},
      {
        execute: ['a.example', 'a.example', 'b.example'].map((host, n) => ({ calls: [call('web.get', { n })], facts: [from(host)] })),
      },
    );
    expect(driver.plan.readHosts).toEqual(['a.example', 'b.example']);
    expect(familiarityOf(driver)).toEqual([0, 1, 0]);
  });
});
