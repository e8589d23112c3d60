/** Reports from the field that need more than one part of the service to be told: approvals that outlive what they were about, and the trail. */
import { ulid } from 'ulid';
import { describe, expect, it } from 'vitest';
import { extensionError } from '../../src/a2a/errors.ts';
import { EXTENSION_URI } from '../../src/a2a/extension.ts';
import { findOperation, type OperationName, type ParamsInputOf, type ResultOf } from '../../src/api/operations.ts';
import { dispatchOperation } from '../../src/app/dispatch.ts';
import { sendMessage } from '../../src/app/send-message.ts';
import type { Principal } from '../../src/core/principal.ts';
import { BUILTIN_PROFILE_NAMES } from '../../src/core/profile.ts';
import {
  addAction,
  answer,
  approve,
  evict,
  isSettled,
  isTerminal,
  logOf,
  newOrg,
  onlyPending,
  performed,
  planOf,
  services,
  startSteps,
  stateOf,
  track,
  until,
} from './plan-support.ts';

async function call<N extends OperationName>(principal: Principal, name: N, params: ParamsInputOf<N>): Promise<ResultOf<N>> {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  const result = await dispatchOperation(found, params, { principal, idempotencyKey: null }, services);
  if (!result.ok) throw new Error(`${name}: ${JSON.stringify(result.error)}`);
  return result.value as unknown as ResultOf<N>;
}

async function refused(principal: Principal, name: OperationName, params: object) {
  const found = findOperation(name);
  if (found === null) throw new Error(`no operation ${name}`);
  const result = await dispatchOperation(found, params, { principal, idempotencyKey: null }, services);
  if (result.ok) throw new Error(`${name} was not refused`);
  return result.error;
}

const counting = (label: string, padding?: string) => ({
  call: { tool: 'test/counter', arguments: { label, ...(padding === undefined ? {} : { padding }) } },
});

describe('an approval', () => {
  it('shows arguments as they will run, with what earlier steps answered filled in, and that is what runs', async () => {
    const person = await newOrg();
    const planId = await startSteps(
      person,
      [
        { id: 'who', ask: 'Whom?' },
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the template language of actions
        { id: 'count', call: { tool: 'test/counter', arguments: { label: person.org, padding: 'for ${steps.who.result}' } } },
      ],
      { guardrails: { required_confirmations: ['test/counter'] } },
    );
    await answer(person, planId, onlyPending(await until(person, planId, isSettled)), { decision: 'answer', text: 'Ada' });
    const asked = onlyPending(await until(person, planId, (snapshot) => isSettled(snapshot) && onlyPending(snapshot).kind === 'call'));
    expect(asked.subject.call).toMatchObject({ tool: 'test/counter', arguments: { inline: { label: person.org, padding: 'for Ada' } } });
    const { approvals } = await call(person, '_cleveragents/approval/list', { plan_id: planId });
    expect(approvals[0]?.call).toMatchObject({ arguments: { padding: 'for Ada' } });
    await approve(person, planId, asked);
    await until(person, planId, isTerminal);
    expect(performed(person.org).map(({ args }) => args['padding'])).toEqual(['for Ada']);
  });

  it('of a call that was denied answers nothing of the next one that is asked about, which goes on waiting', async () => {
    const person = await newOrg();
    const steps = [{ ...counting(person.org), on_refused: 'continue' }, counting(person.org)];
    const planId = await startSteps(person, steps, { guardrails: { required_confirmations: ['test/counter'] } });
    const first = onlyPending(await until(person, planId, isSettled));
    await answer(person, planId, first, { decision: 'deny', reason: 'not now' });
    const second = onlyPending(await until(person, planId, (snapshot) => isSettled(snapshot) && onlyPending(snapshot).id !== first.id));
    expect(await answer(person, planId, first)).toMatchObject({
      ok: false,
      error: { kind: 'invalid_state', details: { status: 'denied' } },
    });
    expect(onlyPending(await until(person, planId, isSettled)).id).toBe(second.id);
    expect(performed(person.org)).toEqual([]);
    await approve(person, planId, second);
    await until(person, planId, isTerminal);
    expect(performed(person.org)).toHaveLength(1);
  });

  it('of two that wait is not given by a bare word: nothing runs, and both are named to whoever said it', async () => {
    const person = await newOrg();
    const calls = ['a', 'b'].map((padding) => counting(person.org, padding).call);
    const planId = await startSteps(person, [{ calls }], { guardrails: { required_confirmations: ['test/counter'] } });
    const waiting = (await until(person, planId, isSettled)).plan.approvals.filter(({ status }) => status === 'pending');
    expect(waiting).toHaveLength(2);
    const told = await sendMessage(
      {
        message: { messageId: ulid(), role: 'user', parts: [{ kind: 'text', text: 'approve' }], taskId: planId },
        configuration: { returnImmediately: true },
      } as never,
      { principal: person, idempotencyKey: null },
      services,
    );
    for (const { id } of waiting) expect(JSON.stringify(told)).toContain(id);
    expect(performed(person.org)).toEqual([]);
    const [first, second] = waiting;
    if (first === undefined || second === undefined) throw new Error('two wait');
    await approve(person, planId, second);
    await until(person, planId, (snapshot) => isSettled(snapshot) && performed(person.org).length === 1);
    expect(performed(person.org).map(({ args }) => args['padding'])).toEqual(['b']);
    expect(onlyPending(await until(person, planId, isSettled)).id).toBe(first.id);
  });

  it('that the profile asked for is denied after the object was away and the profile is gone: nothing runs, and nothing after it', async () => {
    const person = await newOrg();
    await call(person, '_cleveragents/profile/add', { profile: { name: 'careful', extends: 'auto', execute_command: 1 } });
    const planId = await startSteps(person, [counting(person.org, 'asked'), counting(person.org, 'dependent')], { profile: 'careful' });
    const asked = onlyPending(await until(person, planId, isSettled));
    expect(asked).toMatchObject({ kind: 'gate', gate: 'execute_command' });
    await evict(person, planId);
    await call(person, '_cleveragents/profile/update', { name: 'careful', profile: { execute_command: 0 } });
    await call(person, '_cleveragents/profile/delete', { name: 'careful' });
    await answer(person, planId, asked, { decision: 'deny', reason: 'not this' });
    const { plan } = await until(person, planId, isSettled);
    expect(plan).toMatchObject({ phase: 'execute', state: 'errored' });
    const { results } = await stateOf(person, planId);
    expect(results.map(({ status, reason }) => [status, reason])).toEqual([
      ['refused', `not executed: denied by ${person.keyId}: not this`],
    ]);
    expect(performed(person.org)).toEqual([]);
    const status = await call(person, '_cleveragents/plan/status', { plan_id: planId });
    expect(JSON.stringify(status)).toContain('not executed: denied by');
  });
});

it('each decision of a plan keeps the components of its confidence: gates, calls, decisions and what was asked', async () => {
  const person = await newOrg();
  const actionName = await addAction(person, {
    name: `a-${ulid().toLowerCase()}`,
    strategize: [{ decide: { type: 'strategy_choice', question: 'How?', chosen: 'so', alternatives: [], rationale: 'it is' } }],
    execute: [counting(person.org)],
    apply: 'none',
  });
  const { plan_id: planId } = await call(person, '_cleveragents/plan/use', { action_name: actionName, automation_profile: 'cautious' });
  track(person, planId);
  for (let snapshot = await until(person, planId, isSettled); !isTerminal(snapshot); snapshot = await until(person, planId, isSettled)) {
    await approve(person, planId, onlyPending(snapshot));
  }
  const parts = {
    success: expect.any(Number),
    familiarity: expect.any(Number),
    risk: expect.any(Number),
    invariantComplexity: expect.any(Number),
  };
  const seen = new Set<string>();
  for (const row of await logOf(person, planId)) {
    const confidence =
      row.type === 'call_decided'
        ? row.data.call.confidence
        : row.type === 'approval_opened'
          ? row.data.approval.confidence
          : row.type === 'gate_decided'
            ? row.data.confidence
            : row.type === 'decision_made' && row.data.decision.type !== 'prompt_definition'
              ? row.data.decision.confidence
              : undefined;
    if (confidence === undefined) continue;
    expect(confidence?.components, row.type).toEqual(parts);
    seen.add(row.type);
  }
  expect([...seen].sort()).toEqual(['approval_opened', 'call_decided', 'decision_made', 'gate_decided']);
});

it('by whatever way a plan is made without a profile, the one that it gets is a profile that there is', async () => {
  const person = await newOrg();
  const action = await addAction(person, { name: `a-${ulid().toLowerCase()}`, execute: [{ say: 'hi' }], apply: 'none' });
  const { plan_id: used } = await call(person, '_cleveragents/plan/use', { action_name: action });
  const outside = ulid();
  await call(person, '_cleveragents/guard/configure', { plan_id: outside });
  const sent = await sendMessage(
    {
      message: { messageId: ulid(), role: 'user', parts: [{ kind: 'text', text: 'go' }], metadata: { [EXTENSION_URI]: { action } } },
      configuration: { returnImmediately: true },
    } as never,
    { principal: person, idempotencyKey: null },
    services,
  );
  expect(sent.ok, JSON.stringify(sent)).toBe(true);
  const { plans } = await call(person, '_cleveragents/plan/list', {});
  expect(plans).toHaveLength(3);
  expect(plans.map(({ plan_id }) => plan_id)).toEqual(expect.arrayContaining([used, outside]));
  for (const { plan_id } of plans) {
    const { name, level } = await call(person, '_cleveragents/plan/profile/show', { plan_id });
    expect([name, level]).toEqual(['manual', 'default']);
    expect(BUILTIN_PROFILE_NAMES).toContain((await call(person, '_cleveragents/profile/show', { name })).name);
  }
});

it('a step without a usable tool is refused with its action, makes no plan, and stands in the log of the org', async () => {
  const person = await newOrg();
  for (const step of [
    { call: { arguments: {} } },
    ...[null, 7, '', []].map((tool) => ({ call: { tool, arguments: {} } })),
    { call: { tool: 'test/counter', arguments: {}, surprise: 1 } },
  ]) {
    const action = { name: 'bad', description: 'bad', actor: 'scripted/steps', apply: 'none', execute: [step] };
    expect(await refused(person, '_cleveragents/action/add', { action }), JSON.stringify(step)).toMatchObject({ kind: 'invalid' });
  }
  expect((await call(person, '_cleveragents/plan/list', {})).plans).toEqual([]);
  await expect
    .poll(async () => (await services.orgLog.page(person.org, { afterSeq: 0, limit: 100, types: ['access_refused'] }))?.rows ?? [])
    .toMatchObject([{ actor: { id: person.keyId }, data: { reason: 'change_invalid', operations: ['_cleveragents/action/add'] } }]);
});

it('a plan that ended by a denied call says so in the error of whatever is asked of it: plan, tool and guard', async () => {
  const person = await newOrg();
  const planId = await startSteps(person, [counting(person.org)], { profile: 'ci', guardrails: { tool_denylist: ['test/counter'] } });
  await until(person, planId, isTerminal);
  const error = extensionError(await refused(person, '_cleveragents/plan/execute', { plan_id: planId }));
  expect(error).toMatchObject({ code: -32_004, data: { plan_id: planId, tool: 'test/counter', guard: 'denylist' } });
  expect(performed(person.org)).toEqual([]);
  expect(await planOf(person, planId).verify()).toMatchObject({ valid: true });
});
