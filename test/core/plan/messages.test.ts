import { describe, expect, it } from 'vitest';
import { parsePlainDecision } from '../../../src/a2a/plain-decision.ts';
import type { Answer } from '../../../src/core/plan/commands.ts';
import { AGENT, ASKER, BOSS, call, OPERATOR, PlanDriver, profileOf, refusalOf, type Script } from './plan-driver.ts';

const WORK: Script = { execute: [{ calls: [call('files.write')] }] };
const atApply = (): PlanDriver => PlanDriver.run({ profile: profileOf('full-auto', { name: 'reviews', select_tool: 1 }) }, WORK);
const atCall = (): PlanDriver => PlanDriver.run({ guardrails: { tool_denylist: ['files.write'] } }, WORK);
const atQuestion = (): PlanDriver => PlanDriver.run({}, { execute: [{ ask: 'which branch?' }] });

/** Sends a text as the edge does: what it decides, if it is on the closed list, comes with it. */
function send(driver: PlanDriver, text: string, rest: Parameters<PlanDriver['say']>[1] = {}) {
  const plain = parsePlainDecision(text);
  return driver.say(text, { plain: plain === null ? null : { decision: plain.decision, phase: plain.phase ?? null }, ...rest });
}

const answerTo = (driver: PlanDriver, rest: Partial<Answer> = {}): Answer => ({
  approvalId: driver.only.id,
  decision: 'approve',
  digest: driver.only.digest,
  reason: null,
  text: null,
  grant: null,
  ...rest,
});

describe('plain text to a plan whose one pending thing is a phase gate', () => {
  it.each(['approve', 'Approved.', 'yes', 'LGTM', 'go ahead', 'Approved — proceed with the apply phase.'])('%s approves it', (text) => {
    const driver = atApply();
    expect(send(driver, text).ok).toBe(true);
    expect(driver.at).toBe('apply/running');
    expect(driver.rowsOf('approval_decided')[0]?.data.by.id).toBe('boss');
  });

  it.each(['deny', 'no', 'rejected'])('%s denies it', (text) => {
    const driver = atApply();
    send(driver, text);
    expect(driver.only.kind).toBe('next_step');
  });

  it.each([
    'yes, after you rename it',
    'Approved — proceed with the execute phase.',
    'approve the other one',
    'ok?',
    'what does it change?',
    '',
  ])('%j leaves it waiting, and is kept without an effect', (text) => {
    const driver = atApply();
    const { id } = driver.only;
    expect(send(driver, text).ok).toBe(true);
    expect(driver.only.id).toBe(id);
    expect(driver.at).toBe('execute/waiting');
    expect(driver.rowsOf('message_received')[0]?.data.disposition).toBe('kept');
    expect(driver.plan.guidance).toEqual([]);
  });

  it('decides nothing where a digest is required of everybody: words carry none', () => {
    const driver = atApply();
    send(driver, 'approve', { by: { ...BOSS, requireDigest: true } });
    expect(driver.at).toBe('execute/waiting');
  });

  it.each([
    { name: 'an agent', by: AGENT },
    { name: 'an operator', by: OPERATOR },
    { name: 'the requester, where they are separate', by: { ...ASKER, separateRequester: true } },
  ])('is refused and recorded from $name', ({ by }) => {
    const driver = atApply();
    expect(refusalOf(send(driver, 'approve', { by })).kind).toBe('forbidden');
    expect(driver.rowsOf('approval_refused')).toHaveLength(1);
    expect(driver.at).toBe('execute/waiting');
  });
});

describe('plain text to a plan that waits for something else', () => {
  it('never decides a call', () => {
    const driver = atCall();
    send(driver, 'approve');
    expect(driver.only.kind).toBe('call');
    expect(driver.tools).toEqual([]);
  });

  it('never decides the gate of a batch', () => {
    const driver = PlanDriver.run({ profile: profileOf('full-auto', { name: 'asks', execute_command: 1 }) }, WORK);
    send(driver, 'approve');
    expect(driver.only.gate).toBe('execute_command');
    expect(driver.tools).toEqual([]);
  });

  it('answers a question, whatever it says', () => {
    const driver = atQuestion();
    send(driver, 'no');
    driver.run();
    expect(driver.plan.results).toMatchObject([{ status: 'succeeded', values: [{ inline: 'no' }] }]);
    expect(driver.at).toBe('apply/applied (end)');
  });

  it('answers how to go on', () => {
    const driver = atApply();
    send(driver, 'no');
    send(driver, 'rename the file first');
    expect(driver.at).toBe('execute/running');
    expect(driver.plan.guidance).toEqual(['rename the file first']);
  });

  it('an earlier answer does not answer a later question', () => {
    const driver = PlanDriver.run({}, { execute: [{ ask: 'first?' }, { ask: 'second?' }] });
    const first = driver.only;
    send(driver, 'one');
    driver.run();
    expect(driver.only.reason).toBe('second?');
    expect(refusalOf(driver.answer(first.id, 'answer', { text: 'two' })).kind).toBe('invalid_state');
    expect(driver.only.reason).toBe('second?');
  });
});

describe('a structured answer', () => {
  it('decides alone', () => {
    const driver = atCall();
    expect(driver.say('here you are', { answers: [answerTo(driver)] }).ok).toBe(true);
    driver.run();
    expect(driver.tools).toEqual(['files.write']);
  });

  it.each([
    { text: 'deny', decision: 'approve' },
    { text: 'approve', decision: 'deny' },
    { text: 'Approved — proceed with the strategize phase.', decision: 'approve' },
  ] as const)('beside the text "$text" decides nothing when it says $decision', ({ text, decision }) => {
    const driver = atApply();
    expect(refusalOf(send(driver, text, { answers: [answerTo(driver, { decision })] })).kind).toBe('invalid');
    expect(driver.only.gate).toBe('select_tool');
    expect(driver.rowsOf('approval_refused')).toHaveLength(1);
  });

  it('beside a text that says the same decides', () => {
    const driver = atApply();
    send(driver, 'Approved — proceed with the apply phase.', { answers: [answerTo(driver)] });
    expect(driver.at).toBe('apply/running');
  });

  it('repeated by the same caller answers the task as it is, and runs nothing twice', () => {
    const driver = atCall();
    const answers = [answerTo(driver)];
    driver.say('', { answers });
    driver.run();
    const { length } = driver.rows;
    expect(driver.say('', { answers }).ok).toBe(true);
    expect(driver.rows).toHaveLength(length);

    const open = PlanDriver.run(
      { guardrails: { tool_denylist: ['files.write'] } },
      { execute: [...(WORK.execute ?? []), { ask: 'and now?' }] },
    );
    const given = [answerTo(open)];
    open.say('', { answers: given });
    open.run();
    const before = open.rows.length;
    expect(open.say('', { answers: given }).ok).toBe(true);
    expect(open.rows).toHaveLength(before);
    expect(open.tools).toEqual(['files.write']);
    expect(refusalOf(open.say('', { answers: given, by: AGENT })).kind, 'but not by somebody else').toBe('forbidden');
  });

  it('that differs from the one given is not a repeat', () => {
    const driver = PlanDriver.run({}, { execute: [{ ask: 'first?' }, { ask: 'second?' }] });
    const blue = answerTo(driver, { decision: 'answer', text: 'blue' });
    driver.say('', { answers: [blue] });
    driver.run();
    expect(refusalOf(driver.say('', { answers: [{ ...blue, text: 'red' }] })).kind).toBe('invalid_state');
  });

  it('of several counts together or not at all', () => {
    const driver = PlanDriver.run(
      { guardrails: { tool_denylist: ['files.*'] } },
      { execute: [{ calls: [call('files.read'), call('files.write')] }] },
    );
    const [first, second] = driver.pending.map(
      (approval) =>
        ({ approvalId: approval.id, decision: 'approve', digest: approval.digest, reason: null, text: null, grant: null }) as const,
    );
    if (first === undefined || second === undefined) throw new Error('two are pending');
    expect(driver.say('', { answers: [first, { ...second, digest: '0'.repeat(64) }] }).ok).toBe(false);
    expect(driver.callStates()).toEqual(['asked', 'asked']);
    expect(driver.rows.at(-1)?.type).toBe('approval_refused');
    expect(driver.say('', { answers: [first, second] }).ok).toBe(true);
    driver.run();
    expect(driver.tools).toEqual(['files.read', 'files.write']);
  });
});

describe('a message', () => {
  it('to a working plan is guidance that its actor sees with the next proposal', () => {
    const driver = PlanDriver.run({}, { ...WORK, outcome: () => null });
    driver.say('use tabs');
    expect(driver.plan).toMatchObject({ guidance: ['use tabs'], guidanceSeen: 0, state: 'running' });
    expect(driver.rowsOf('message_received')[0]?.data.disposition).toBe('guidance');
  });

  it.each(['applied', 'cancelled', 'rejected', 'failed'])('to a plan that has ended (%s) is refused and not kept', (end) => {
    const driver =
      end === 'applied'
        ? PlanDriver.run({}, WORK)
        : end === 'cancelled'
          ? atApply()
          : end === 'rejected'
            ? PlanDriver.make({ rejection: 'no' })
            : PlanDriver.run({ profile: 'ci' }, { execute: [{ fail: 'broken' }] });
    if (end === 'cancelled') driver.cancel();
    const { length } = driver.rows;
    const { messages, ledger } = driver.plan;
    const refusal = refusalOf(send(driver, 'approve'));
    expect(refusal).toMatchObject({ kind: 'invalid_state', details: { reason: 'UNSUPPORTED_OPERATION' } });
    expect(refusal.message).toContain('start a new task in the same context');
    expect(driver.rows).toHaveLength(length);
    expect(driver.plan).toMatchObject({ messages, ledger });
  });
});
