import { ulid } from 'ulid';
import { describe, expect, it } from 'vitest';
import type { Part } from '../../src/a2a/model.ts';
import { sendMessage } from '../../src/app/send-message.ts';
import type { Principal } from '../../src/core/principal.ts';
import { addAction, addProject, isTerminal, isWaiting, newOrg, onlyPending, planOf, services, start, until } from './plan-support.ts';

/** A plan whose diff waits under supervised. */
async function waitingDiff() {
  const person = await newOrg();
  const project = await addProject(person, { 'a.txt': 'old\n' });
  const actionName = await addAction(person, {
    name: `a-${ulid().toLowerCase()}`,
    execute: [{ call: { tool: 'write_file', arguments: { path: 'a.txt', content: 'new\n' } } }],
  });
  const made = await start(person, { actionName, project, automationProfile: 'supervised' });
  const waiting = await until(person, made.plan.id, isWaiting);
  return { person, planId: made.plan.id, sessionId: made.plan.sessionId, approval: onlyPending(waiting) };
}

const say = (principal: Principal, target: { taskId?: string; contextId?: string }, parts: readonly Part[]) =>
  sendMessage(
    { message: { messageId: ulid(), role: 'user', parts, ...target }, configuration: { returnImmediately: true } },
    { principal, idempotencyKey: null },
    services,
  );

const APPROVE: Part = { kind: 'text', text: 'approve' };
const by = (person: Principal) => ({
  actor: { kind: 'human', id: person.keyId } as const,
  mayApprove: true,
  separateRequester: false,
  requireDigest: false,
});

describe('words beside something else', () => {
  it.each<[string, Part]>([
    ['a file', { kind: 'raw', raw: 'AAAA', filename: 'changes.txt' }],
    ['a link', { kind: 'url', url: 'https://example.com/notes' }],
    ['data', { kind: 'data', data: { note: 'but first rename it' } }],
  ])('%s decide nothing', async (_what, beside) => {
    const { person, planId } = await waitingDiff();
    expect((await say(person, { taskId: planId }, [APPROVE, beside])).ok).toBe(true);
    expect((await planOf(person, planId).read())?.plan.state).toBe('waiting');
    expect((await say(person, { taskId: planId }, [APPROVE])).ok).toBe(true);
    await until(person, planId, isTerminal);
  });

  it('a misspelled answer are refused by the name of what is missing', async () => {
    const { person, planId, approval } = await waitingDiff();
    const data = { approvalId: approval.id, decision: 'deny', digest: approval.digest };
    expect(await say(person, { taskId: planId }, [APPROVE, { kind: 'data', data }])).toMatchObject({
      ok: false,
      error: { kind: 'invalid' },
    });
    expect((await planOf(person, planId).read())?.plan.state).toBe('waiting');
  });
});

describe('a diff that was denied with a reason', () => {
  it('waits for the next step, and what was said to it approves nothing that is asked later', async () => {
    const { person, planId, approval } = await waitingDiff();
    const port = planOf(person, planId);
    const answer = { approvalId: approval.id, digest: approval.digest, reason: 'do not ship this', text: null, grant: null } as const;
    expect((await port.command({ type: 'answer', by: by(person), answer: { ...answer, decision: 'deny' } }))?.ok).toBe(true);
    const asked = await until(person, planId, isWaiting);
    const next = onlyPending(asked);
    expect(next.kind).toBe('next_step');
    expect((await port.command({ type: 'apply', by: by(person), digest: approval.digest, approve: true }))?.ok).toBe(false);
    const retry = { approvalId: next.id, decision: 'answer', digest: next.digest, reason: null, text: 'retry', grant: null } as const;
    expect((await port.command({ type: 'answer', by: by(person), answer: retry }))?.ok).toBe(true);
    const again = onlyPending(
      await until(person, planId, ({ plan }) => plan.approvals.some((each) => each.status === 'pending' && each.gate === 'select_tool')),
    );
    expect(again.subject.diff?.digest).toBe(approval.subject.diff?.digest);
    expect(again.digest).not.toBe(approval.digest);
    expect((await port.command({ type: 'apply', by: by(person), digest: approval.digest, approve: true }))?.ok).toBe(false);
    expect((await port.command({ type: 'cancel', by: by(person).actor, reason: null }))?.ok).toBe(true);
  });
});

describe('a closed session', () => {
  it('takes no message, although a plan waits in it; the plan is answered by its task', async () => {
    const { person, planId, sessionId } = await waitingDiff();
    await services.sessions.close(person.org, sessionId, new Date().toISOString());
    expect(await say(person, { contextId: sessionId }, [APPROVE])).toMatchObject({ ok: false, error: { kind: 'invalid_state' } });
    expect((await planOf(person, planId).read())?.plan.state).toBe('waiting');
    expect((await say(person, { taskId: planId }, [APPROVE])).ok).toBe(true);
    await until(person, planId, isTerminal);
  });
});
