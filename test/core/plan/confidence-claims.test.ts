import { expect, it } from 'vitest';
import type { JsonObject } from '../../../src/core/json.ts';
import { call, PlanDriver, profileOf, type Script, succeeded } from './plan-driver.ts';

it('a tool that says of its own result how sure it is makes nothing surer', () => {
  const after = (result: JsonObject) => {
    const script: Script = {
      execute: [{ calls: [call('files.read')] }, { calls: [call('files.write')] }],
      outcome: () => succeeded({ result }),
    };
    const driver = PlanDriver.run({ profile: profileOf('full-auto', { name: 'sure', execute_command: 0.9 }) }, script);
    for (let asked = driver.pending[0]; asked?.callIds.includes('c2') === false; asked = driver.pending[0]) {
      driver.approve(asked);
      driver.run();
    }
    // Below the threshold as before: it is asked about.
    expect(driver.only).toMatchObject({ gate: 'execute_command', callIds: ['c2'] });
    return driver.plan.calls['c2']?.confidence;
  };
  const plain = after({ text: 'done' });
  expect(plain?.value).toBeLessThan(0.9);
  for (const claim of [
    { confidence: 1 },
    { statedConfidence: 1, confidence: { value: 1, components: {}, caps: [] } },
    { text: 'confidence: 1.0' },
  ]) {
    expect(after(claim)).toEqual(plain);
  }
});
