import { describe, expect, it } from 'vitest';
import { TASK_STATE_NAMES, taskStateOf } from '../../../src/core/plan/task-state.ts';
import type { ThresholdName } from '../../../src/core/profile.ts';
import { ASKER, BOSS, call, createCommand, failed, OPEN, PlanDriver, profileOf, refusalOf, type Script, succeeded } from './plan-driver.ts';

/** A profile in which one gate asks and everything else proceeds. */
const asking = (...gates: readonly ThresholdName[]) =>
  profileOf('full-auto', { name: 'asking', ...Object.fromEntries(gates.map((gate) => [gate, 1])) });

const WORK: Script = { strategize: [{ decide: 'how?' }], execute: [{ calls: [call('files.write', { path: 'a' })] }] };

/** The phases and states in their order, each named once for as long as it lasts. */
function itinerary(driver: PlanDriver): readonly string[] {
  const seen = ['action/queued'];
  for (const row of driver.rows) {
    const to = 'to' in row.data ? row.data.to : undefined;
    const at = to === undefined ? undefined : `${to.phase}/${to.state}`;
    if (at !== undefined && at !== seen.at(-1)) seen.push(at);
  }
  return seen;
}

describe('a plan that nobody has to be asked about', () => {
  it('goes from action to applied by itself', () => {
    const driver = PlanDriver.run({}, WORK);
    expect(itinerary(driver)).toEqual([
      'action/queued',
      'strategize/running',
      'strategize/complete',
      'execute/running',
      'execute/complete',
      'apply/running',
      'apply/applied',
    ]);
    expect(driver.tools).toEqual(['files.write']);
    expect(driver.plan.artifacts.map(({ artifactId }) => artifactId)).toEqual(['result', 'changes.diff']);
    expect(driver.plan.appliedAt).toBe(driver.now);
  });

  it('ends without an apply when its action applies nothing', () => {
    const driver = PlanDriver.run({ apply: 'none' }, WORK);
    expect(driver.at).toBe('apply/applied (end)');
    expect(itinerary(driver)).not.toContain('apply/running');
  });

  it('ends without an apply when it has no project', () => {
    expect(PlanDriver.run({ project: null }, WORK).at).toBe('apply/applied (end)');
  });

  it('applies an empty diff without a gate, and records it', () => {
    const driver = PlanDriver.run({ profile: asking('select_tool') }, { execute: [{ say: 'nothing to change' }] });
    expect(driver.at).toBe('apply/applied (end)');
    expect(driver.rowsOf('gate_decided').at(-1)?.data).toMatchObject({ gate: 'select_tool', outcome: 'proceed', via: 'empty_diff' });
  });
});

describe('a gate that asks', () => {
  const rows: readonly {
    readonly gate: ThresholdName;
    readonly script?: Script;
    readonly asksAt: string;
    readonly approved: string;
    readonly denied: string;
    readonly guided: string;
  }[] = [
    { gate: 'decompose_task', asksAt: 'action', approved: 'strategize/running', denied: 'next_step', guided: 'next_step' },
    { gate: 'edit_code', asksAt: 'strategize', approved: 'strategize/running', denied: 'next_step', guided: 'strategize/running' },
    { gate: 'create_tool', asksAt: 'strategize', approved: 'execute/running', denied: 'next_step', guided: 'strategize/running' },
    {
      gate: 'execute_command',
      script: { execute: [{ decide: 'which?' }] },
      asksAt: 'execute',
      approved: 'execute/running',
      denied: 'next_step',
      guided: 'execute/running',
    },
    { gate: 'execute_command', asksAt: 'execute', approved: 'execute/running', denied: 'execute/running', guided: 'execute/running' },
    {
      gate: 'modify_config',
      script: {
        execute: WORK.execute ?? [],
        outcome: (each) => (each.attempt === 1 ? failed({ transient: true, dispatched: false }) : succeeded()),
      },
      asksAt: 'execute',
      approved: 'execute/running',
      denied: 'execute/running',
      guided: 'execute/running',
    },
    { gate: 'select_tool', asksAt: 'execute', approved: 'apply/running', denied: 'next_step', guided: 'execute/running' },
    {
      gate: 'access_network',
      script: { ...WORK, apply: () => ({ status: 'moved', head: 'd'.repeat(64) }) },
      asksAt: 'apply',
      approved: 'strategize/running',
      denied: 'apply/constrained',
      guided: 'apply/constrained',
    },
  ];

  const waiting = ({ gate, script = WORK }: (typeof rows)[number]): PlanDriver => PlanDriver.run({ profile: asking(gate) }, script);
  const whereTo = (driver: PlanDriver): string => (driver.pending[0]?.kind === 'next_step' ? 'next_step' : driver.at);

  describe.each(
    rows.map((row) => ({
      name: `${row.gate}${row.script?.execute?.some((move) => 'decide' in move) === true ? ' for a decision' : ''}`,
      row,
    })),
  )('$name', ({ row }) => {
    it('makes the plan wait with exactly one approval that names it', () => {
      const driver = waiting(row);
      expect(driver.at).toBe(`${row.asksAt}/waiting`);
      expect(driver.only).toMatchObject({ kind: 'gate', gate: row.gate, threshold: 1, status: 'pending' });
      expect(driver.only.confidence?.value).toBeTypeOf('number');
      expect(driver.rowsOf('gate_decided').at(-1)?.data ?? driver.rowsOf('call_decided').at(-1)?.data).toMatchObject({
        outcome: 'ask',
        gate: row.gate,
      });
    });

    it('lets it go on when approved, and records by which approval', () => {
      const driver = waiting(row);
      const { id } = driver.only;
      expect(driver.approve().ok).toBe(true);
      expect(driver.at).toBe(row.approved);
      expect(driver.rowsOf('gate_decided').at(-1)?.data).toMatchObject({
        gate: row.gate,
        outcome: 'proceed',
        via: 'approval',
        approval_id: id,
      });
    });

    it('does what the table says when denied', () => {
      const driver = waiting(row);
      expect(driver.deny().ok).toBe(true);
      expect(whereTo(driver)).toBe(row.denied);
    });

    it('does what the table says when denied with guidance', () => {
      const driver = waiting(row);
      expect(driver.deny(driver.only, { text: 'use the other folder' }).ok).toBe(true);
      expect(whereTo(driver)).toBe(row.guided);
    });
  });

  it('tells the actor why a batch was refused, and nothing of it ran', () => {
    const driver = PlanDriver.run({ profile: asking('execute_command') }, WORK);
    driver.deny(driver.only, { reason: 'not on a Friday' });
    driver.run();
    expect(driver.tools).toEqual([]);
    expect(driver.plan.results.at(-1)).toMatchObject({ status: 'refused', reason: 'not executed: denied by boss: not on a Friday' });
    expect(driver.at).toBe('execute/errored');
    expect(driver.plan.failure?.last.message).toContain('not on a Friday');
  });

  it('hands guidance to the actor of the phase that would have been left', () => {
    const driver = PlanDriver.run({ profile: asking('create_tool') }, WORK);
    driver.deny(driver.only, { text: 'split it in two' });
    expect(driver.plan.guidance).toEqual(['split it in two']);
    expect(driver.plan.decisions.map(({ superseded }) => superseded)).toEqual([false, true]);
  });

  it('asks again, with a new approval, when the next step is to retry', () => {
    const driver = PlanDriver.run({ profile: asking('decompose_task') }, WORK);
    const first = driver.only.id;
    driver.deny();
    expect(driver.only.subject.choices).toEqual(['guide', 'retry', 'cancel']);
    driver.answer(driver.only.id, 'answer', { text: 'Retry.' });
    driver.run();
    expect(driver.only).toMatchObject({ kind: 'gate', gate: 'decompose_task' });
    expect(driver.only.id).not.toBe(first);
  });

  it('ends the plan when the next step is to cancel', () => {
    const driver = PlanDriver.run({ profile: asking('select_tool') }, WORK);
    driver.deny();
    driver.answer(driver.only.id, 'answer', { text: 'cancel' });
    expect(driver.at).toBe('execute/cancelled (end)');
  });

  it('takes the guidance itself, not the word guide', () => {
    const driver = PlanDriver.run({ profile: asking('select_tool') }, WORK);
    driver.deny();
    expect(refusalOf(driver.answer(driver.only.id, 'answer', { text: 'guide' })).message).toContain('the guidance itself');
    driver.answer(driver.only.id, 'answer', { text: 'rename it first' });
    expect(driver.at).toBe('execute/running');
    expect(driver.plan.guidance).toEqual(['rename it first']);
  });

  it('lets confidence decide between 0 and 1: at the threshold it proceeds, below it asks', () => {
    const at = (confidence: number) =>
      PlanDriver.run(
        { profile: profileOf('full-auto', { name: 'half', edit_code: 0.5 }) },
        { strategize: [{ decide: 'how?', confidence }] },
      );
    expect(at(0.5).at).toBe('apply/applied (end)');
    expect(at(0.499999).only.gate).toBe('edit_code');
    expect(at(80).only.gate).toBe('edit_code');
  });
});

describe('a plan that failed', () => {
  it('in Strategize is strategized again by execute, as a new attempt', () => {
    const driver = PlanDriver.run({}, { strategize: [{ decide: 'how?' }, { fail: 'no idea' }] });
    expect(driver.at).toBe('strategize/errored');
    expect(taskStateOf(driver.plan)).toBe('input-required');
    driver.execute();
    driver.run(WORK);
    expect(driver.at).toBe('apply/applied (end)');
    expect(driver.plan.attempt).toBe(2);
    expect(driver.plan.failure?.first.message).toBe('no idea');
  });

  it('in Execute does the failed step again from its start, and not what went well before it', () => {
    let isBroken = true;
    const script: Script = {
      execute: [{ calls: [call('files.write', { path: 'a' })] }, { calls: [call('files.write', { path: 'b' })] }],
      outcome: (each) => (each.step === 2 && isBroken ? failed() : succeeded()),
    };
    const driver = PlanDriver.run({ guardrails: { max_steps: 2 } }, script);
    expect(driver.at).toBe('execute/errored');
    isBroken = false;
    driver.execute();
    driver.run();
    expect(driver.at).toBe('apply/applied (end)');
    expect(driver.performed.map((each) => each.arguments)).toEqual([
      { inline: { path: 'a' } },
      { inline: { path: 'b' } },
      { inline: { path: 'b' } },
    ]);
    expect(driver.plan.stepsUsed, 'doing a step again is not another step').toBe(2);
  });

  it('goes on behind a step that went well when the actor failed after it', () => {
    const driver = PlanDriver.run({}, { execute: [{ calls: [call('files.write')] }, { say: 'half way' }, { fail: 'stuck' }] });
    driver.execute();
    driver.run({ execute: [{ calls: [call('files.write')] }, { say: 'half way' }, { say: 'unstuck' }] });
    expect(driver.tools).toEqual(['files.write']);
    expect(driver.rowsOf('message_said').map(({ data }) => JSON.stringify(data.message.parts))).toHaveLength(2);
  });

  it('keeps its first error beside the latest', () => {
    const driver = PlanDriver.run({}, { execute: [{ fail: 'first' }] });
    driver.execute();
    driver.run({ execute: [{ fail: 'second' }] });
    expect(driver.plan.failure).toMatchObject({ first: { message: 'first' }, last: { message: 'second' } });
  });

  it('goes on with guidance from a message', () => {
    const driver = PlanDriver.run({}, { execute: [{ fail: 'where?' }] });
    expect(driver.say('in src').ok).toBe(true);
    expect(driver.at).toBe('execute/running');
    expect(driver.plan.guidance).toEqual(['in src']);
  });
});

describe('execute and apply by command', () => {
  it('answer their own gates, as an approval by the caller', () => {
    const driver = PlanDriver.run({ profile: 'manual' }, WORK);
    expect(driver.execute().ok).toBe(true);
    driver.run();
    driver.approve();
    driver.run();
    expect(driver.only.gate).toBe('create_tool');
    expect(driver.execute().ok).toBe(true);
    driver.run();
    expect(driver.only.gate).toBe('execute_command');
    driver.approve();
    driver.run();
    expect(driver.only.gate).toBe('select_tool');
    expect(driver.apply({ digest: driver.only.digest }).ok).toBe(true);
    driver.run();
    expect(driver.at).toBe('apply/applied (end)');
    expect(driver.rowsOf('approval_decided').map(({ data }) => [data.kind, data.by.id, data.reason])).toEqual([
      ['gate', 'boss', 'plan/execute'],
      ['gate', 'boss', null],
      ['gate', 'boss', 'plan/execute'],
      ['gate', 'boss', null],
      ['gate', 'boss', 'plan/apply'],
    ]);
  });

  it('answer nothing else, and name what is pending', () => {
    const atCalls = PlanDriver.run({ profile: asking('execute_command') }, WORK);
    const refusal = refusalOf(atCalls.execute());
    expect(refusal).toMatchObject({
      kind: 'invalid_state',
      details: { pending: [{ gate: 'execute_command', approval_id: atCalls.only.id }] },
    });
    expect(refusalOf(atCalls.apply()).message).toContain('execute_command');
    const atApply = PlanDriver.run({ profile: asking('select_tool') }, WORK);
    expect(refusalOf(atApply.execute()).kind).toBe('invalid_state');
    expect(atApply.tools).toEqual(['files.write']);
    const atStart = PlanDriver.run({ profile: asking('decompose_task') }, WORK);
    expect(refusalOf(atStart.apply()).message).toContain('decompose_task');
    for (const driver of [atCalls, atApply, atStart]) expect(driver.pending).toHaveLength(1);
  });

  it('are acknowledged by a plan at work, and nothing runs twice', () => {
    const driver = PlanDriver.run({}, { ...WORK, outcome: () => null });
    expect(driver.callStates()).toEqual(['authorised']);
    const { length } = driver.rows;
    expect(driver.execute().ok).toBe(true);
    expect(driver.execute().ok).toBe(true);
    expect(driver.rows).toHaveLength(length);
    driver.settle('c1', succeeded());
    driver.run({ ...WORK });
    expect(driver.rowsOf('call_decided')).toHaveLength(1);
    expect(driver.at).toBe('apply/applied (end)');
  });

  it.each(['strategize/running', 'strategize/complete', 'execute/running', 'execute/complete', 'apply/running'])(
    'execute changes nothing at %s',
    (at) => {
      const driver = PlanDriver.make({}, WORK);
      while (driver.at !== at && driver.turn()) {}
      expect(driver.at).toBe(at);
      const { length } = driver.rows;
      expect(driver.execute().ok).toBe(true);
      expect(driver.rows).toHaveLength(length);
    },
  );

  it('refuse a digest that is not the one pending, and record it', () => {
    const driver = PlanDriver.run({ profile: asking('select_tool') }, WORK);
    expect(refusalOf(driver.apply({ digest: '0'.repeat(64) })).kind).toBe('invalid_state');
    expect(driver.rowsOf('approval_refused')).toHaveLength(1);
    expect(driver.at).toBe('execute/waiting');
  });

  it('want the digest where it is required of everybody', () => {
    const driver = PlanDriver.run({ profile: asking('select_tool') }, WORK);
    const by = { ...BOSS, requireDigest: true };
    expect(refusalOf(driver.apply({ by })).kind).toBe('invalid');
    expect(driver.apply({ by, digest: driver.only.digest }).ok).toBe(true);
    const early = PlanDriver.run({ profile: asking('decompose_task') }, WORK);
    expect(refusalOf(early.execute({ by })).kind).toBe('invalid');
  });

  it('need the right to approve, and obey the separation from the requester', () => {
    const driver = PlanDriver.run({ profile: asking('decompose_task') }, WORK);
    expect(refusalOf(driver.execute({ by: { ...ASKER, mayApprove: false } })).kind).toBe('forbidden');
    expect(refusalOf(driver.execute({ by: { ...ASKER, separateRequester: true } })).message).toContain('separate_requester');
    expect(driver.execute({ by: ASKER }).ok).toBe(true);
  });

  it('under require_approval_for_apply takes approve: true and the digest, both', () => {
    const driver = PlanDriver.run({ guardrails: { require_approval_for_apply: true } }, WORK);
    expect(driver.only).toMatchObject({ gate: 'select_tool', guard: 'apply_approval' });
    const { digest } = driver.only;
    expect(refusalOf(driver.apply({ approve: false, digest })).kind).toBe('invalid');
    expect(refusalOf(driver.apply({ approve: true })).kind).toBe('invalid');
    expect(driver.apply({ approve: true, digest }).ok).toBe(true);
    driver.run();
    expect(driver.at).toBe('apply/applied (end)');
  });

  it('are refused by a plan that has ended, with phase and state', () => {
    const driver = PlanDriver.run({}, WORK);
    for (const refused of [driver.execute(), driver.apply()]) {
      expect(refusalOf(refused)).toMatchObject({ kind: 'invalid_state', details: { phase: 'apply', state: 'applied' } });
    }
  });

  it('are refused by a plan that was cancelled, which stays as it is', () => {
    const driver = PlanDriver.make({ profile: 'manual' }, WORK);
    expect(driver.cancel().ok).toBe(true);
    const { length } = driver.rows;
    for (const refused of [driver.execute(), driver.apply()]) {
      expect(refusalOf(refused)).toMatchObject({ kind: 'invalid_state', details: { phase: 'action', state: 'cancelled' } });
    }
    expect(driver.rows).toHaveLength(length);
  });

  it('have nothing to apply before Execute has ended', () => {
    const driver = PlanDriver.make({}, WORK);
    expect(refusalOf(driver.apply()).message).toContain('nothing to apply yet');
  });
});

describe('an apply', () => {
  const moved = { status: 'moved', head: 'd'.repeat(64) } as const;

  it('to a head that has moved writes nothing and goes back with a fresh workspace', () => {
    let applies = 0;
    const driver = PlanDriver.run(
      {},
      {
        ...WORK,
        apply: (plan) => (++applies === 1 ? moved : { status: 'applied', head: plan.apply?.diff.result ?? null, previous: null, files: 1 }),
      },
    );
    expect(driver.at).toBe('apply/applied (end)');
    expect(driver.plan.project?.base).toBe(moved.head);
    expect(driver.plan).toMatchObject({ attempt: 2, reversions: 1 });
    expect(driver.tools).toEqual(['files.write', 'files.write']);
    expect(driver.rowsOf('apply_constrained')[0]?.data.reason).toContain('nothing was written');
  });

  it('goes back by itself at most three times, then asks whatever the confidence', () => {
    const driver = PlanDriver.run({}, { ...WORK, apply: () => moved });
    expect(driver.plan.reversions).toBe(3);
    expect(driver.at).toBe('apply/waiting');
    expect(driver.only).toMatchObject({ gate: 'access_network', guard: 'reversion_limit' });
    driver.approve();
    expect(driver.at).toBe('strategize/running');
  });

  it('that stays constrained goes on by execute or by guidance, from the head that was found', () => {
    for (const goOn of [(driver: PlanDriver) => driver.execute(), (driver: PlanDriver) => driver.say('try again')]) {
      const driver = PlanDriver.run({ profile: asking('access_network') }, { ...WORK, apply: () => moved });
      driver.deny();
      expect(driver.at).toBe('apply/constrained');
      expect(goOn(driver).ok).toBe(true);
      expect(driver.at).toBe('strategize/running');
      expect(driver.plan.project?.base).toBe(moved.head);
      expect(driver.plan.changes).toEqual([]);
    }
  });

  it('that failed is asked for once more, with its gate', () => {
    const driver = PlanDriver.run(
      { profile: asking('select_tool') },
      { ...WORK, apply: () => ({ status: 'failed', reason: 'the project is away' }) },
    );
    driver.approve();
    driver.run();
    expect(driver.at).toBe('apply/errored');
    driver.execute();
    driver.run(WORK);
    expect(driver.only.gate).toBe('select_tool');
    driver.approve();
    driver.run();
    expect(driver.at).toBe('apply/applied (end)');
  });

  it('is finished only by the answer to itself', () => {
    const driver = PlanDriver.make({}, WORK);
    while (driver.at !== 'apply/running' && driver.turn()) {}
    const outcome = { status: 'applied', head: 'e'.repeat(64), previous: null, files: 1 } as const;
    expect(driver.do({ type: 'finish_apply', applyId: 'another', outcome }).ok).toBe(false);
    expect(driver.do({ type: 'finish_apply', applyId: driver.plan.apply?.id ?? '', outcome }).ok).toBe(true);
    expect(driver.do({ type: 'finish_apply', applyId: driver.plan.apply?.id ?? '', outcome }).ok).toBe(false);
  });
});

describe('cancel', () => {
  it.each(['decompose_task', 'edit_code', 'create_tool', 'execute_command', 'select_tool'] as const)(
    'while %s waits ends the plan and its approval',
    (gate) => {
      const driver = PlanDriver.run({ profile: asking(gate) }, WORK);
      const approval = driver.only;
      expect(driver.cancel('changed our mind').ok).toBe(true);
      expect(driver.plan).toMatchObject({ state: 'cancelled', terminal: true, cancelReason: 'changed our mind' });
      expect(taskStateOf(driver.plan)).toBe('canceled');
      expect(driver.plan.approvals.find(({ id }) => id === approval.id)?.status).toBe('revoked');
      expect(refusalOf(driver.approve(approval)).kind).toBe('invalid_state');
      expect(refusalOf(driver.cancel()).details).toMatchObject({ reason: 'TASK_NOT_CANCELABLE' });
      const { length } = driver.rows;
      driver.run();
      expect(driver.rows).toHaveLength(length);
    },
  );

  it('is refused while the project may already have been written', () => {
    const driver = PlanDriver.make({}, WORK);
    while (driver.at !== 'apply/running' && driver.turn()) {}
    expect(refusalOf(driver.cancel()).details).toMatchObject({ reason: 'TASK_NOT_CANCELABLE' });
    driver.run();
    expect(driver.at).toBe('apply/applied (end)');
  });
});

describe('creation', () => {
  it('is done once: the same again answers the plan that is there, anything else is a conflict', () => {
    const driver = PlanDriver.make({}, WORK);
    const { length } = driver.rows;
    expect(driver.do(createCommand()).ok).toBe(true);
    expect(driver.rows).toHaveLength(length);
    expect(refusalOf(driver.do(createCommand({ input: 'something else' }))).kind).toBe('already_exists');
    expect(driver.rows).toHaveLength(length);
  });

  it.each([
    ['guardrails', { guardrails: { max_steps: 3 } }],
    ["the org's floor", { orgFloor: { tool_denylist: ['shell.run'] } }],
    ['profile', { profile: profileOf('auto') }],
  ])('under another policy (%s) is a conflict, not the plan that is there', (_case, options) => {
    const driver = PlanDriver.make({}, WORK);
    expect(refusalOf(driver.do(createCommand(options))).kind).toBe('already_exists');
    expect(driver.rowsOf('plan_created')).toHaveLength(1);
    expect(driver.plan.policy).toEqual(createCommand().policy);
  });

  it('can leave a rejected plan, which says why and takes nothing', () => {
    const driver = PlanDriver.make({ rejection: 'the budget of the org is used up' });
    expect(driver.at).toBe('action/rejected (end)');
    expect(taskStateOf(driver.plan)).toBe('rejected');
    expect(refusalOf(driver.execute()).kind).toBe('invalid_state');
    expect(refusalOf(driver.say('please')).kind).toBe('invalid_state');
  });

  it('has asked its first gate when it is answered', () => {
    expect(PlanDriver.make({ profile: 'manual' }).only.gate).toBe('decompose_task');
    expect(PlanDriver.make({ profile: OPEN }).at).toBe('strategize/running');
  });
});

it('reads from outside as one of the task states of A2A, in every state that was reached here', () => {
  const driver = PlanDriver.make({}, WORK);
  const seen = new Set([taskStateOf(driver.plan)]);
  while (driver.turn()) seen.add(taskStateOf(driver.plan));
  expect([...seen]).toEqual(['working', 'completed']);
  expect(TASK_STATE_NAMES).toHaveLength(8);
});

describe('a plan whose approvals are awaited elsewhere (approvals.task_state auth-required)', () => {
  const options = { approvalTaskState: 'auth-required' } as const;

  it('is auth-required while it waits for a gate, a call or a limit, and nothing else', () => {
    expect(taskStateOf(PlanDriver.make({ ...options, profile: 'manual' }).plan)).toBe('auth-required');
    const denied = { ...options, guardrails: { tool_denylist: ['files.read'] } };
    expect(taskStateOf(PlanDriver.run(denied, { execute: [{ calls: [call('files.read')] }] }).plan)).toBe('auth-required');
    const limited = { ...options, guardrails: { tool_budget: 0 } };
    expect(taskStateOf(PlanDriver.run(limited, { execute: [{ calls: [call('model.ask')] }] }).plan)).toBe('auth-required');
  });

  it('is input-required where words are needed, also beside an approval', () => {
    const asked = PlanDriver.run(options, { execute: [{ ask: 'where?' }] });
    expect(taskStateOf(asked.plan)).toBe('input-required');
    const denied = PlanDriver.make({ ...options, profile: 'manual' });
    denied.deny();
    expect(denied.only.kind).toBe('next_step');
    expect(taskStateOf(denied.plan)).toBe('input-required');
    const [gate] = PlanDriver.make({ ...options, profile: 'manual' }).plan.approvals;
    if (gate === undefined) throw new Error('no gate');
    const both = { ...asked.plan, approvals: [...asked.plan.approvals, gate] };
    expect(taskStateOf(both)).toBe('input-required');
  });

  it('is input-required where it was not set, and where it was set to that', () => {
    expect(taskStateOf(PlanDriver.make({ profile: 'manual' }).plan)).toBe('input-required');
    const set = PlanDriver.make({ profile: 'manual', approvalTaskState: 'input-required' });
    expect(taskStateOf(set.plan)).toBe('input-required');
    expect(set.plan.approvalTaskState).toBeUndefined();
  });

  it('goes on and ends like any other', () => {
    const driver = PlanDriver.make({ ...options, profile: 'manual' }, {});
    driver.approve();
    expect(taskStateOf(driver.plan)).toBe('working');
    driver.cancel();
    expect(taskStateOf(driver.plan)).toBe('canceled');
  });
});
