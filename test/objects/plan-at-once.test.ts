/** Plans without a sandbox: every write goes to the project's head at once, guarded, once, and truthfully told (design section 9, `sandbox.strategy`). */
import { runDurableObjectAlarm } from 'cloudflare:test';
import { ulid } from 'ulid';
import { afterEach, describe, expect, it } from 'vitest';
import { findOperation, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { statusOf } from '../../src/app/task-view.ts';
import type { Principal } from '../../src/core/principal.ts';
import { FAULTS } from '../worker/test-worker.ts';
import {
  addAction,
  addProject,
  answer,
  approve,
  cancel,
  crash,
  fileOf,
  isSettled,
  isTerminal,
  isWaiting,
  newOrg,
  onlyPending,
  pause,
  planOf,
  rowsOf,
  services,
  sha256,
  start,
  stateOf,
  stubOf,
  tryStart,
  until,
} from './plan-support.ts';

async function call<N extends OperationName>(person: Principal, name: N, params: ParamsInputOf<N>): Promise<ResultOf<N>> {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  const result = await dispatchOperation(found, JSON.parse(JSON.stringify(params)), { principal: person, idempotencyKey: null }, services);
  if (!result.ok) throw new Error(`${name}: ${JSON.stringify(result.error)}`);
  return result.value as ResultOf<N>;
}

afterEach(() => FAULTS.commits.clear());

/** An org whose project has no sandbox, as its admin sets it. */
async function unboxed(files: Record<string, string>): Promise<{ readonly person: Principal; readonly project: string }> {
  const person = await newOrg();
  const project = await addProject(person, files);
  await call(person, '_cleveragents/config/set', { scope: 'project', project, key: 'sandbox.strategy', value: 'none' });
  return { person, project };
}

/** Ids of steps hold no dots. */
const idOf = (kind: string, path: string): string => `${kind}-${path.replaceAll(/[^a-z0-9]/g, '_')}`;

const write = (path: string, content: string, id = idOf('w', path)) => ({ id, call: { tool: 'write_file', arguments: { path, content } } });
const edit = (path: string, from: string, to: string, id = idOf('e', path)) => ({
  id,
  call: { tool: 'edit_file', arguments: { path, old_text: from, new_text: to } },
});
// A template of the script, filled in when its step comes.
// biome-ignore lint/suspicious/noTemplateCurlyInString: it is one for the plan
const FOUND = '${steps.search.result}';
const ASK = { id: 'pause', ask: 'Go on?' };

async function use(
  person: Principal,
  project: string,
  execute: readonly object[],
  rest: { readonly profile?: string; readonly guardrails?: object; readonly action?: object } = {},
): Promise<string> {
  const actionName = await addAction(person, { name: `a-${ulid().toLowerCase()}`, execute, ...rest.action });
  const { plan } = await start(person, {
    actionName,
    project,
    automationProfile: rest.profile ?? 'full-auto',
    ...(rest.guardrails === undefined ? {} : { guardrails: rest.guardrails }),
  });
  return plan.id;
}

const historyOf = (person: Principal, project: string, planId: string) =>
  services.projects
    .project(person.org, project)
    .history(50)
    .then((entries) => entries.filter(({ by }) => by === planId));

/** Somebody else changes the project. */
async function commitElsewhere(person: Principal, project: string, path: string, content: string): Promise<void> {
  const port = services.projects.project(person.org, project);
  const bytes = new TextEncoder().encode(content);
  const blob = sha256(content);
  await port.putBlobs([{ digest: blob, bytes }]);
  const entry = { mode: '100644' as const, blob, sizeBytes: bytes.byteLength };
  const done = await port.commit({
    commitId: ulid(),
    expectedHead: null,
    mode: 'patch',
    changes: [{ path, entry }],
    message: 'somebody else',
    by: person.keyId,
  });
  if (!done.ok || done.value.status !== 'committed') throw new Error('not committed');
}

const resume = async (person: Principal, planId: string): Promise<void> => {
  const question = onlyPending(await until(person, planId, isWaiting));
  const answered = await answer(person, planId, question, { decision: 'answer', text: 'yes' });
  if (!answered.ok) throw new Error(answered.error.message);
};

describe('without a sandbox', () => {
  it('a write is in the project as soon as its call has ended, later calls read it, and nothing is left to apply', async () => {
    const { person, project } = await unboxed({ 'a.txt': 'old\n', 'b.txt': 'b\n' });
    const planId = await use(person, project, [
      write('a.txt', 'new\n'),
      edit('a.txt', 'new', 'newer'),
      ASK,
      { id: 'del', call: { tool: 'delete_file', arguments: { path: 'b.txt' } } },
      { id: 'search', call: { tool: 'search_code', arguments: { query: 'newer' } } },
      { id: 'say', say: FOUND },
    ]);
    const waiting = await until(person, planId, isWaiting);
    expect(await fileOf(person, project, 'a.txt')).toBe('newer\n');
    expect(waiting.plan).toMatchObject({ state: 'waiting', written: { writes: 2, files: 1, paths: ['a.txt'] } });
    await resume(person, planId);
    const { plan } = await until(person, planId, isTerminal);
    expect(plan).toMatchObject({ phase: 'apply', state: 'applied', written: { writes: 3, files: 2 } });
    expect(await fileOf(person, project, 'b.txt')).toBeNull();
    const head = (await services.projects.project(person.org, project).head())?.head;
    expect(plan.appliedHead).toBe(head);
    expect(await historyOf(person, project, planId)).toHaveLength(3);

    const gates = (await rowsOf(person, planId, 'gate_decided')).filter(({ data }) => data.gate === 'select_tool');
    expect(gates.map(({ data }) => [data.via, data.outcome])).toEqual([['empty_diff', 'proceed']]);
    const settled = (await rowsOf(person, planId, 'call_settled')).map(({ data }) => data.written?.commit_id ?? null);
    expect(settled).toEqual([`${planId}.c1`, `${planId}.c2`, `${planId}.c3`, null]);
    const diff = await call(person, '_cleveragents/plan/diff', { plan_id: planId });
    expect(diff.files.map(({ path, status }) => [path, status])).toEqual([
      ['a.txt', 'modified'],
      ['b.txt', 'deleted'],
    ]);
    expect(diff.patch).toContain('-old\n+newer\n');
    const { artifacts } = await call(person, '_cleveragents/plan/artifacts', { plan_id: planId });
    expect(artifacts.map(({ artifact_id, draft }) => [artifact_id, draft])).toEqual([
      ['result', false],
      ['changes.diff', false],
    ]);
    expect(artifacts[0]?.parts[0]?.data).toMatchObject({
      written_at_once: { writes: 3, head },
      files: [{ path: 'a.txt' }, { path: 'b.txt' }],
    });
    expect(artifacts[1]?.description).toBe('Unified diff of what was written to the project at once');
    const trail = await call(person, '_cleveragents/plan/guard/audit', { plan_id: planId });
    const written = trail.entries.filter(({ context }) => context['written'] !== undefined);
    expect(written.map(({ context }) => (context['written'] as { paths: string[] }).paths)).toEqual([['a.txt'], ['a.txt'], ['b.txt']]);
    const said = await planOf(person, planId).read();
    expect(JSON.stringify(said?.plan.messages)).toContain('newer');
  });

  it('the setting of the project wins over that of the org, and the plan keeps the one that it was made under', async () => {
    const { person, project } = await unboxed({ 'a.txt': 'old\n' });
    await call(person, '_cleveragents/config/set', { key: 'sandbox.strategy', value: 'workspace' });
    const first = await use(person, project, [ASK, write('a.txt', 'at once\n'), { id: 'again', ask: 'And now?' }]);
    await until(person, first, isWaiting);
    await call(person, '_cleveragents/config/set', { scope: 'project', project, key: 'sandbox.strategy', value: null });
    await resume(person, first);
    await until(person, first, ({ plan }) => plan.state === 'waiting' && plan.written !== undefined);
    expect(await fileOf(person, project, 'a.txt')).toBe('at once\n');
    const second = await use(person, project, [write('a.txt', 'later\n'), ASK]);
    await until(person, second, isWaiting);
    expect(await fileOf(person, project, 'a.txt')).toBe('at once\n');
    await cancel(person, first);
    await cancel(person, second);
  });

  it('a profile that does not require a sandbox does not take away the one that the project has', async () => {
    const person = await newOrg();
    const project = await addProject(person, { 'a.txt': 'old\n' });
    const planId = await use(person, project, [write('a.txt', 'new\n'), ASK]);
    await until(person, planId, isWaiting);
    expect(await fileOf(person, project, 'a.txt')).toBe('old\n');
    await cancel(person, planId);
  });

  it('a write counts as one to the outside that can be reverted, so a threshold that lets it into a workspace asks', async () => {
    const { person, project } = await unboxed({ 'a.txt': 'old\n' });
    const boxed = await addProject(person, { 'a.txt': 'old\n' });
    await call(person, '_cleveragents/config/set', { key: 'sandbox.strategy', value: 'none' });
    await call(person, '_cleveragents/config/set', { scope: 'project', project: boxed, key: 'sandbox.strategy', value: 'workspace' });
    const profile = { name: 'careful', extends: 'full-auto', execute_command: 0.75, require_checkpoints: true };
    await call(person, '_cleveragents/profile/add', { profile });
    const inside = await use(person, boxed, [write('a.txt', 'new\n'), ASK], { profile: 'careful' });
    expect(onlyPending(await until(person, inside, isWaiting)).kind).toBe('question');
    const planId = await use(person, project, [write('a.txt', 'new\n')], { profile: 'careful' });
    const approval = onlyPending(await until(person, planId, isWaiting));
    expect(approval).toMatchObject({ gate: 'execute_command', confidence: { value: 0.7, components: { risk: 0.5 } } });
    expect(await fileOf(person, project, 'a.txt')).toBe('old\n');
    await approve(person, planId, approval);
    await until(person, planId, isTerminal);
    expect(await fileOf(person, project, 'a.txt')).toBe('new\n');
    const [decided] = await rowsOf(person, planId, 'call_decided');
    expect(decided?.data.call).toMatchObject({ riskClass: 'external_write_revertible', scope: 'external', atOnce: true });
    await cancel(person, inside);
  });

  it('what is to be approved before it is applied is approved before it is written', async () => {
    const { person, project } = await unboxed({ 'a.txt': 'old\n' });
    const planId = await use(person, project, [write('a.txt', 'new\n')], { guardrails: { require_approval_for_apply: true } });
    const approval = onlyPending(await until(person, planId, isWaiting));
    expect(approval).toMatchObject({ kind: 'call', guard: 'write_approval' });
    expect(approval.reason).toContain('require_approval_for_apply');
    expect(await fileOf(person, project, 'a.txt')).toBe('old\n');
    await approve(person, planId, approval);
    expect((await until(person, planId, isTerminal)).plan.state).toBe('applied');
    expect(await fileOf(person, project, 'a.txt')).toBe('new\n');
  });

  it('a floor that comes to require a sandbox stops the writes of a plan at work', async () => {
    const { person, project } = await unboxed({ 'a.txt': 'old\n' });
    const planId = await use(person, project, [write('a.txt', 'first\n', 'one'), ASK, write('a.txt', 'second\n', 'two')]);
    await until(person, planId, isWaiting);
    await call(person, '_cleveragents/org/policy/set', { policy: { safety: { require_sandbox: true } } });
    await resume(person, planId);
    await until(person, planId, isSettled);
    expect((await rowsOf(person, planId, 'call_decided')).at(-1)?.data).toMatchObject({ allowed: false, guard: 'sandbox' });
    expect(await fileOf(person, project, 'a.txt')).toBe('first\n');
  });

  it('a plan that has to have a sandbox does not begin, and nothing is written', async () => {
    const { person, project } = await unboxed({ 'a.txt': 'old\n' });
    await call(person, '_cleveragents/profile/add', {
      profile: { name: 'boxed', extends: 'full-auto', require_sandbox: true, require_checkpoints: true },
    });
    const actionName = await addAction(person, { name: 'w', execute: [write('a.txt', 'new\n')] });
    const refused = await tryStart(person, { actionName, project, automationProfile: 'boxed' });
    expect(refused).toMatchObject({ ok: false, error: { kind: 'invalid_state', details: { sandbox_strategy: 'none' } } });
    expect(await fileOf(person, project, 'a.txt')).toBe('old\n');
  });

  it('an action that applies nothing keeps its workspace', async () => {
    const { person, project } = await unboxed({ 'a.txt': 'old\n' });
    const planId = await use(person, project, [write('a.txt', 'new\n')], { action: { apply: 'none' } });
    expect((await until(person, planId, isTerminal)).plan.state).toBe('applied');
    expect(await fileOf(person, project, 'a.txt')).toBe('old\n');
  });
});

/** Holds the first commit of the org's plans where `when` says. Looked at rather than awaited: objects do not wake each other. */
function holdFirstCommit(person: Principal, when: 'before' | 'after') {
  const held = { isReached: false, isReleased: false };
  const hold = async (): Promise<void> => {
    held.isReached = true;
    while (!held.isReleased) await pause(5);
  };
  let isFirst = true;
  FAULTS.commits.set(person.org, async (_request, commit) => {
    if (!isFirst) return commit();
    isFirst = false;
    if (when === 'before') await hold();
    const done = await commit();
    if (when === 'after') await hold();
    return done;
  });
  const reached = async (): Promise<void> => {
    await expect.poll(() => held.isReached, { timeout: 10_000 }).toBe(true);
  };
  return { reached, release: () => (held.isReleased = true) };
}

describe('a write that is interrupted', () => {
  it.each(['before', 'after'] as const)('by a crash %s the project took it is there once, and its call says what it did', async (when) => {
    const { person, project } = await unboxed({ 'a.txt': 'one\n' });
    const held = holdFirstCommit(person, when);
    const planId = await use(person, project, [edit('a.txt', 'one', 'two', 'first'), edit('a.txt', 'two', 'three', 'second')]);
    await held.reached();
    expect(Object.values((await stateOf(person, planId)).calls)[0]).toMatchObject({ status: 'sent', write: { commitId: `${planId}.c1` } });
    await crash(person, planId);
    await planOf(person, planId).read();
    await runDurableObjectAlarm(stubOf(person, planId));
    const { plan } = await until(person, planId, isTerminal);
    expect(plan).toMatchObject({ state: 'applied', written: { writes: 2 } });
    expect(await fileOf(person, project, 'a.txt')).toBe('three\n');
    expect(await historyOf(person, project, planId)).toHaveLength(2);
    const settled = await rowsOf(person, planId, 'call_settled');
    expect(settled.map(({ data }) => [data.outcome, data.result])).toMatchObject([
      ['succeeded', { inline: { path: 'a.txt', replacements: 1 } }],
      ['succeeded', { inline: { path: 'a.txt', replacements: 1 } }],
    ]);
    expect(await rowsOf(person, planId, 'call_sent')).toHaveLength(2);
  });

  it('by a crash, while others went on writing, is still done once', async () => {
    const { person, project } = await unboxed({ 'a.txt': 'one\n' });
    const held = holdFirstCommit(person, 'after');
    const planId = await use(person, project, [edit('a.txt', 'one', 'two')]);
    await held.reached();
    await commitElsewhere(person, project, 'a.txt', 'of another\n');
    await crash(person, planId);
    await planOf(person, planId).read();
    await runDurableObjectAlarm(stubOf(person, planId));
    const { plan } = await until(person, planId, isTerminal);
    expect(plan).toMatchObject({ state: 'applied', written: { writes: 1 } });
    expect(await fileOf(person, project, 'a.txt')).toBe('of another\n');
    expect(await historyOf(person, project, planId)).toHaveLength(1);
    // What the plan changed is its own, not what came after it.
    expect((await call(person, '_cleveragents/plan/diff', { plan_id: planId })).patch).toContain('-one\n+two\n');
  });

  it.each([
    ['before', 'old\n', 0],
    ['after', 'new\n', 1],
  ] as const)('by a cancel %s the project took it is told as it is', async (when, content, writes) => {
    const { person, project } = await unboxed({ 'a.txt': 'old\n' });
    const held = holdFirstCommit(person, when);
    const planId = await use(person, project, [write('a.txt', 'new\n')]);
    await held.reached();
    await crash(person, planId);
    expect((await cancel(person, planId)).ok).toBe(true);
    held.release();
    await runDurableObjectAlarm(stubOf(person, planId));
    await until(person, planId, ({ plan }) => plan.terminal && plan.ledger.reservations.length === 0);
    const [settled] = await rowsOf(person, planId, 'call_settled');
    expect(settled?.data).toMatchObject({ late: true, outcome: writes === 1 ? 'succeeded' : 'failed' });
    const snapshot = await planOf(person, planId).read();
    expect(snapshot?.plan.written?.writes ?? 0).toBe(writes);
    expect(await fileOf(person, project, 'a.txt')).toBe(content);
    expect(await historyOf(person, project, planId)).toHaveLength(writes);
  });
});

describe('a plan that is cancelled', () => {
  it('says that what it wrote stays, and shows it', async () => {
    const { person, project } = await unboxed({ 'a.txt': 'old\n' });
    const planId = await use(person, project, [write('a.txt', 'new\n'), ASK]);
    await until(person, planId, isWaiting);
    const view = await call(person, '_cleveragents/plan/cancel', { plan_id: planId, reason: 'enough' });
    expect(view).toMatchObject({ state: 'cancelled', written_at_once: { writes: 1, files: 1, paths: ['a.txt'] } });
    expect(await fileOf(person, project, 'a.txt')).toBe('new\n');
    const snapshot = await planOf(person, planId).read();
    if (snapshot === null) throw new Error('no plan');
    const [part] = statusOf(snapshot, null).message?.parts ?? [];
    expect(part?.kind === 'text' ? part.text : '').toBe(
      `Cancelled: enough What it wrote to ${project} at once stays there: 1 file; the head was ${view.written_at_once?.head.slice(0, 12)} after its last write.`,
    );
    const { artifacts } = await call(person, '_cleveragents/plan/artifacts', { plan_id: planId });
    expect(artifacts).toMatchObject([{ artifact_id: 'changes.diff', draft: false }]);
    expect(artifacts[0]?.description).toContain('What the plan has written to its project at once: 1 file');
  });
});

describe('writers that meet', () => {
  it('a head that moved elsewhere is read again and the write is made for it', async () => {
    const { person, project } = await unboxed({ 'a.txt': 'one\n', 'b.txt': 'b\n' });
    let moves = 0;
    FAULTS.commits.set(person.org, async (_request, commit) => {
      moves += 1;
      if (moves <= 2) await commitElsewhere(person, project, 'b.txt', `b${moves}\n`);
      return commit();
    });
    const planId = await use(person, project, [edit('a.txt', 'one', 'two')]);
    expect((await until(person, planId, isTerminal)).plan.state).toBe('applied');
    expect(await fileOf(person, project, 'a.txt')).toBe('two\n');
    expect(await fileOf(person, project, 'b.txt')).toBe('b2\n');
    expect(await rowsOf(person, planId, 'call_sent')).toHaveLength(3);
    expect((await call(person, '_cleveragents/plan/diff', { plan_id: planId })).files.map(({ path }) => path)).toEqual(['a.txt']);
  });

  it('a file that somebody else changed meanwhile is left alone and the call fails clearly', async () => {
    const { person, project } = await unboxed({ 'a.txt': 'one\n' });
    let isFirst = true;
    FAULTS.commits.set(person.org, async (_request, commit) => {
      if (isFirst) await commitElsewhere(person, project, 'a.txt', 'of another\n');
      isFirst = false;
      return commit();
    });
    const planId = await use(person, project, [write('a.txt', 'mine\n')]);
    const { plan } = await until(person, planId, isSettled);
    expect(plan).toMatchObject({ phase: 'execute', state: 'errored' });
    const [settled] = await rowsOf(person, planId, 'call_settled');
    expect(settled?.data.error).toMatchObject({ code: 'conflict' });
    expect(settled?.data.error?.message).toContain("'a.txt' was changed in the project");
    expect(await fileOf(person, project, 'a.txt')).toBe('of another\n');
    expect(await historyOf(person, project, planId)).toEqual([]);
  });

  const conflictOf = async (person: Principal, planId: string) =>
    (await rowsOf(person, planId, 'call_settled')).flatMap(({ data }) => (data.error?.code === 'conflict' ? [data.error.message] : []));
  const read = (path: string, id = idOf('r', path)) => ({ id, call: { tool: 'read_file', arguments: { path } } });
  const failed = (person: Principal, planId: string) =>
    until(person, planId, ({ plan }) => plan.phase === 'execute' && plan.state === 'errored');

  it('a write that waited for its approval does not overwrite what others changed meanwhile', async () => {
    const { person, project } = await unboxed({ 'a.txt': 'old\n', 'b.txt': 'b\n' });
    const planId = await use(person, project, [write('a.txt', 'mine\n')], { guardrails: { require_approval_for_writes: true } });
    const pending = onlyPending(await until(person, planId, isWaiting));
    await commitElsewhere(person, project, 'a.txt', 'of another\n');
    await approve(person, planId, pending);
    await failed(person, planId);
    expect(await conflictOf(person, planId)).toEqual([
      "'a.txt' was changed in the project since this plan last knew it; nothing was written. Read it again before writing it.",
    ]);
    expect(await fileOf(person, project, 'a.txt')).toBe('of another\n');
  });

  it('a write that waited is made where only other files were changed', async () => {
    const { person, project } = await unboxed({ 'a.txt': 'old\n', 'b.txt': 'b\n' });
    const planId = await use(person, project, [write('a.txt', 'mine\n')], { guardrails: { require_approval_for_writes: true } });
    const pending = onlyPending(await until(person, planId, isWaiting));
    await commitElsewhere(person, project, 'b.txt', 'of another\n');
    await approve(person, planId, pending);
    expect((await until(person, planId, isTerminal)).plan.state).toBe('applied');
    expect(await fileOf(person, project, 'a.txt')).toBe('mine\n');
  });

  it.each([
    ['read', { 'a.txt': 'old\n' }],
    ['looked for in vain', {}],
  ])('a write of what was %s before does not overwrite what others wrote since', async (_, files) => {
    const { person, project } = await unboxed({ 'b.txt': 'b\n', ...files });
    const planId = await use(person, project, [{ ...read('a.txt'), on_refused: 'continue' }, ASK, write('a.txt', 'mine\n')]);
    await until(person, planId, isWaiting);
    await commitElsewhere(person, project, 'a.txt', 'of another\n');
    await resume(person, planId);
    await failed(person, planId);
    expect(await conflictOf(person, planId)).toHaveLength(1);
    expect(await fileOf(person, project, 'a.txt')).toBe('of another\n');
  });

  it('a conflict stays until the file was read again, also where it had never been read and after the object is gone', async () => {
    const { person, project } = await unboxed({ 'a.txt': 'old\n' });
    const steps = [write('a.txt', 'mine\n', 'first'), ASK, write('a.txt', 'again\n', 'second')];
    const planId = await use(person, project, steps);
    await until(person, planId, isWaiting);
    await commitElsewhere(person, project, 'a.txt', 'of another\n');
    await resume(person, planId);
    await failed(person, planId);
    for (let n = 2; n <= 3; n += 1) {
      await crash(person, planId);
      const plan = await planOf(person, planId).read();
      expect(plan?.plan.state).toBe('errored');
      await call(person, '_cleveragents/plan/execute', { plan_id: planId });
      await expect.poll(async () => (await conflictOf(person, planId)).length, { timeout: 10_000 }).toBe(n);
      expect(await fileOf(person, project, 'a.txt')).toBe('of another\n');
    }
  });

  it('what was read again may be written', async () => {
    const { person, project } = await unboxed({ 'a.txt': 'old\n' });
    const planId = await use(person, project, [
      read('a.txt', 'before'),
      ASK,
      { ...write('a.txt', 'mine\n', 'early'), on_refused: 'continue' },
      read('a.txt', 'after'),
      write('a.txt', 'mine\n', 'late'),
    ]);
    await until(person, planId, isWaiting);
    await commitElsewhere(person, project, 'a.txt', 'of another\n');
    await resume(person, planId);
    expect((await until(person, planId, isTerminal)).plan.state).toBe('applied');
    expect(await conflictOf(person, planId)).toHaveLength(1);
    expect(await fileOf(person, project, 'a.txt')).toBe('mine\n');
  });

  it('what reads within its own call loses nothing: an edit and an addition are made in what others wrote', async () => {
    const { person, project } = await unboxed({ 'a.txt': 'one\n', 'b.txt': 'b\n' });
    const planId = await use(person, project, [
      read('a.txt'),
      read('b.txt'),
      ASK,
      edit('a.txt', 'one', 'two'),
      { id: 'add', call: { tool: 'write_file', arguments: { path: 'b.txt', content: 'mine\n', append: true } } },
    ]);
    await until(person, planId, isWaiting);
    await commitElsewhere(person, project, 'a.txt', 'zero\none\n');
    await commitElsewhere(person, project, 'b.txt', 'b\nof another\n');
    await resume(person, planId);
    expect((await until(person, planId, isTerminal)).plan.state).toBe('applied');
    expect(await fileOf(person, project, 'a.txt')).toBe('zero\ntwo\n');
    expect(await fileOf(person, project, 'b.txt')).toBe('b\nof another\nmine\n');
  });

  it('two plans that add to one file at the same time lose nothing', async () => {
    const { person, project } = await unboxed({ 'log.txt': '' });
    const steps = (name: string) =>
      Array.from({ length: 4 }, (_, n) => ({
        id: `${name}${n}`,
        call: { tool: 'write_file', arguments: { path: 'log.txt', content: `${name} ${n}\n`, append: true } },
      }));
    const plans = await Promise.all([use(person, project, steps('left')), use(person, project, steps('right'))]);
    for (const planId of plans) expect((await until(person, planId, isTerminal)).plan.state).toBe('applied');
    const lines = ((await fileOf(person, project, 'log.txt')) ?? '').trim().split('\n');
    for (const name of ['left', 'right'])
      expect(lines.filter((line) => line.startsWith(name))).toEqual([0, 1, 2, 3].map((n) => `${name} ${n}`));
    expect(lines).toHaveLength(8);
  });

  it('two plans that write to one project at the same time lose nothing', async () => {
    const { person, project } = await unboxed({ 'shared.txt': 'start\n' });
    const steps = (name: string) => Array.from({ length: 6 }, (_, n) => write(`${name}/${n}.txt`, `${name} ${n}\n`, `${name}${n}`));
    const plans = await Promise.all([use(person, project, steps('left')), use(person, project, steps('right'))]);
    for (const planId of plans)
      expect((await until(person, planId, isTerminal)).plan).toMatchObject({ state: 'applied', written: { writes: 6 } });
    for (const name of ['left', 'right'])
      for (let n = 0; n < 6; n += 1) expect(await fileOf(person, project, `${name}/${n}.txt`)).toBe(`${name} ${n}\n`);
    const commits = await Promise.all(plans.map((planId) => historyOf(person, project, planId)));
    expect(commits.map(({ length }) => length)).toEqual([6, 6]);
  });
});
