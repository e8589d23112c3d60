import { describe, expect, it } from 'vitest';
import { addAction, addProject, fileOf, isAt, isWaiting, newOrg, planOf, start, until } from './plan-support.ts';

const EDIT = {
  name: 'edit',
  execute: [
    { id: 'one', call: { tool: 'write_file', arguments: { path: 'a.txt', content: 'new a\n' } } },
    { id: 'two', call: { tool: 'edit_file', arguments: { path: 'b.txt', old_text: 'old', new_text: 'new' } } },
  ],
};

describe('a plan on a project', () => {
  it('runs under supervised up to the diff, and is applied once a human approved that diff', async () => {
    const person = await newOrg();
    const project = await addProject(person, { 'a.txt': 'old a\n', 'b.txt': 'old b\n' });
    const actionName = await addAction(person, EDIT);
    const made = await start(person, { actionName, project, automationProfile: 'supervised' });
    const waiting = await until(person, made.plan.id, isWaiting);
    const [approval] = waiting.plan.approvals.filter((each) => each.status === 'pending');
    expect(approval).toMatchObject({ kind: 'gate', gate: 'select_tool' });
    expect(approval?.subject.diff?.files.map((file) => file.path)).toEqual(['a.txt', 'b.txt']);
    expect(await fileOf(person, project, 'a.txt')).toBe('old a\n');
    const port = planOf(person, made.plan.id);
    const by = { actor: { kind: 'human', id: person.keyId } as const, mayApprove: true, separateRequester: false, requireDigest: false };
    const applied = await port.command({ type: 'apply', by, digest: approval?.digest ?? null, approve: true });
    expect(applied?.ok).toBe(true);
    const done = await until(person, made.plan.id, isAt('apply', 'applied'));
    expect(done.plan.appliedHead).not.toBeNull();
    expect(await fileOf(person, project, 'a.txt')).toBe('new a\n');
    expect(await fileOf(person, project, 'b.txt')).toBe('new b\n');
    expect(await port.verify()).toMatchObject({ valid: true });
  });
});
