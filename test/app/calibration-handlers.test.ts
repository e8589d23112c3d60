import { describe, expect, it } from 'vitest';
import type { OutcomeRow } from '../../src/app/ports.ts';
import { calibrationFixture } from './calibration-fixture.ts';
import { makeService } from './service.ts';

describe('the calibration report', () => {
  it('of an org without outcomes is zeros, not an error', async () => {
    const { call } = await makeService().caller('acme', { roles: ['viewer'] });
    const report = await call('_cleveragents/profile/calibration', {});
    expect(report.overall).toMatchObject({ n: 0, ok: 0, ok_share: null, mean_confidence: null, brier: null });
    expect(report.classes.map((each) => each.n)).toEqual([0, 0, 0, 0, 0, 0]);
    expect(report.at_most).toBe(10_000);
  });

  it('puts each class into ten bands and leaves out what nobody has judged', async () => {
    const { services, caller } = makeService();
    await services.outcomes.record(calibrationFixture('acme'));
    const { call } = await caller('acme', { roles: ['viewer'] });
    const { overall, classes } = await call('_cleveragents/profile/calibration', {});
    expect(overall).toMatchObject({ n: 4, ok: 3, ok_share: 0.75, mean_confidence: 0.7 });
    expect(classes[0]).toMatchObject({ class: 'read', n: 3, ok: 2 });
    expect(classes[0]?.bands[8]).toEqual({ from: 0.8, to: 0.9, n: 2, ok: 2, ok_share: 1, mean_confidence: 0.8 });
    expect(classes[1]).toMatchObject({ class: 'write', n: 1, ok: 1, brier: 0.16 });
    expect((await call('_cleveragents/profile/calibration', { project: 'site', action: 'edit' })).overall.n).toBe(3);
    expect((await call('_cleveragents/profile/calibration', { actor: 'scripted/commands' })).overall.n).toBe(0);
  });

  it('tells nothing of another org, asked for by any name', async () => {
    const { services, caller } = makeService();
    await services.outcomes.record(calibrationFixture('acme'));
    const { call, refused } = await caller('other');
    for (const params of [{}, { actor: 'scripted/steps' }])
      expect((await call('_cleveragents/profile/calibration', params)).overall.n).toBe(0);
    for (const params of [{ project: 'site' }, { action: 'edit' }])
      expect(await refused('_cleveragents/profile/calibration', params)).toMatchObject({ kind: 'not_found' });
  });

  it.each([
    [{ action: 'edti' }, 'action'],
    [{ project: 'nowhere' }, 'project'],
    [{ actor: 'nobody' }, 'actor'],
  ])('of %j, which is not there, is not answered by zeros', async (params, entity) => {
    const { refused } = await makeService().caller('acme');
    expect(await refused('_cleveragents/profile/calibration', params)).toMatchObject({ kind: 'not_found', entity });
  });

  it.each([
    ['an unknown member', { plan: 'x' }, 'plan'],
    ['an empty name', { project: '' }, 'project'],
    ['a name that is no text', { action: 7 }, 'action'],
    ['a name that is null', { actor: null }, 'actor'],
    ['a name beyond all names', { actor: 'x'.repeat(201) }, 'actor'],
  ])('refuses %s by name', async (_, params, field) => {
    const { refused } = await makeService().caller('acme');
    const refusal = await refused('_cleveragents/profile/calibration', params as never);
    expect(refusal).toMatchObject({ kind: 'invalid', issues: [{ field }] });
  });

  it('counts the newest ten thousand decisions and no more', async () => {
    const { services, caller } = makeService();
    const [row] = calibrationFixture('acme');
    if (row === undefined) throw new Error('no row');
    const rows = Array.from({ length: 10_050 }, (_, n): OutcomeRow => ({ ...row, planId: `p${String(n).padStart(6, '0')}` }));
    await services.outcomes.record(rows);
    const { call } = await caller('acme');
    expect((await call('_cleveragents/profile/calibration', {})).overall.n).toBe(10_000);
  });
});
