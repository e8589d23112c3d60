/**
 * Tool calls: every guard for each call in order, then the confidence gate for what is left (design section 7). Authorising a call
 * reserves its cost in the same row, so there is no moment at which a call is allowed and its money is not held.
 */
import { digestOf } from '../../digest.ts';
import { evaluateGate } from '../../gates.ts';
import type { GuardFacts, GuardVerdict, UpperRefusal } from '../../guards/guard.ts';
import { evaluateGuards, type GuardReport } from '../../guards/guards.ts';
import { unfitVerdict } from '../../guards/unfit-call.ts';
import { dueWarning, reservedMicroUsd } from '../../ledger.ts';
import { addMicroUsd, parseCostUsd, toUsd } from '../../money.ts';
import { isWriteClass, riskierOf } from '../../tool.ts';
import { writesAtOnce } from '../at-once.ts';
import { type CheckpointBody, checkpointObstacle } from '../checkpoint.ts';
import type { CallFacts } from '../commands.ts';
import { elapsedMs } from '../evolve.ts';
import { isExternal, isTaintedOutside } from '../external/external.ts';
import { type Approval, type Call, type Grant, haltOf, type Plan, pendingApprovals, type Step } from '../plan.ts';
import type { ProposedCall } from '../proposal.ts';
import type { PublicPlan } from '../snapshot.ts';
import { SYSTEM, type Work } from '../work.ts';
import { askForOutside, withDeadline } from './ask-for-outside.ts';
import { callConfidence } from './confidence-of.ts';
import { passGate } from './gate.ts';
import { limitDetails } from './limit-details.ts';
import { failUnattended, openApproval, shownCalls } from './open-approval.ts';

/** Decides a proposed batch: makes its calls, runs the guards, authorises what fits and opens the approvals for the rest. */
export function decideBatch(
  work: Work,
  stepId: string,
  proposed: readonly ProposedCall[],
  facts: readonly CallFacts[],
  step: Step,
  cursor: Plan['cursor'],
): void {
  const plan = work.plan();
  const calls = proposed.map((each, index) => makeCall(work, plan, each, facts[index], step, index));
  const issues = new Map(calls.map((call, index) => [call.id, facts[index]?.issues ?? []]));
  decideCalls(work, calls, { step: { ...step, id: stepId, callIds: calls.map((call) => call.id) }, cursor, issues });
}

/** Decides again what an approval, a grant or a retry has made possible; the guards run as if for the first time. A halted plan leaves it for later. */
export function redecide(work: Work, callIds: readonly string[]): void {
  const plan = work.plan();
  // An executor outside asks again by itself; until then nothing is reserved for it.
  if (haltOf(plan) !== null || isExternal(plan)) return;
  const calls = callIds
    .flatMap((id) => plan.calls[id] ?? [])
    .filter((call) => call.status === 'asked' || call.status === 'cleared' || call.status === 'retrying')
    .map((call) => (call.status === 'retrying' ? { ...call, attempt: call.attempt + 1 } : call));
  if (calls.length > 0) decideCalls(work, calls, null);
}

/** A budget above was raised: what was held by it is decided again. Nothing else is touched. */
export function retryBudget(work: Work): void {
  for (const approval of pendingApprovals(work.plan())) {
    if (!isHeldAbove(approval)) continue;
    work.emit('approval_closed', SYSTEM, { approval_id: approval.id, status: 'revoked', reason: 'a budget above the plan was raised' });
    redecide(
      work,
      approval.callIds.filter((id) => work.plan().calls[id]?.status === 'asked'),
    );
  }
  openGateIfDue(work);
}

/** Whether calls wait for a budget of the session or the org: nobody can grant it in the plan. */
function isHeldAbove({ kind, guard, suggestedGrant }: Approval): boolean {
  return kind === 'limit' && guard === 'budget_cap' && suggestedGrant === null;
}

interface BatchStart {
  readonly step: Step;
  readonly cursor: Plan['cursor'];
  readonly issues: ReadonlyMap<string, CallFacts['issues']>;
}

export type Ruling = { readonly call: Call; readonly report: GuardReport; readonly kind: 'ok' | 'call' | 'limit' | 'refused' };

/** All guards for each call in order, then the gate; everything that follows from it is in the same commit. */
export function decideCalls(
  work: Work,
  calls: readonly Call[],
  start: BatchStart | null,
  issues: BatchStart['issues'] = start?.issues ?? new Map(),
): void {
  const plan = work.plan();
  const rulings = ruleWithMoney(work, calls, start, issues);
  const asks = rulings.filter((each) => each.kind === 'call' || each.kind === 'limit');
  const firstAsk = asks[0]?.report.first;
  const gate = callGate(plan);
  const threshold = plan.policy.thresholds[gate];
  const { lowest, says: gateSays } = judgeGate(plan, rulings);
  const doomed = plan.policy.unattended && (asks.length > 0 || gateSays === 'fail');

  let begin = start;
  let checkpointId: string | null = null;
  for (const { call, report, kind } of rulings) {
    const held = kind === 'ok' && !call.gatePassed && gateSays !== 'proceed';
    // Where the plan ends with this decision nothing is left open: what was not refused by itself does not run either.
    const isRefused = kind === 'refused' || doomed;
    const ranBefore = call.attempt > 1 && call.external === undefined;
    const status: Call['status'] = isRefused
      ? ranBefore
        ? 'failed'
        : 'refused'
      : kind !== 'ok'
        ? 'asked'
        : held
          ? 'cleared'
          : 'authorised';
    // The gate of a batch speaks of what is clean. Of what a guard has refused, what its own confidence would say: it is asked about then.
    const ownSays = evaluateGate({
      threshold,
      confidence: call.confidence?.value ?? null,
      unattended: plan.policy.unattended,
    });
    const confidenceVerdict =
      kind === 'ok'
        ? gateVerdict(plan, gate, call, gateSays, held)
        : gateVerdict(plan, gate, call, ownSays, !call.gatePassed && ownSays !== 'proceed');
    const first = report.first ?? (held ? confidenceVerdict : doomed ? ENDS_WITH_ITS_BATCH : null);
    const consumed = status === 'authorised' ? consumedApproval(plan, call) : null;
    const needsCheckpoint = status === 'authorised' && isWriteClass(call.riskClass);
    // What is authorised together is before the same files; one checkpoint stands for all of it.
    const checkpoint: CheckpointBody | null = needsCheckpoint && checkpointId === null ? checkpointBefore(work, call, begin) : null;
    checkpointId = checkpoint?.id ?? checkpointId;
    work.emit('call_decided', call.external?.by ?? SYSTEM, {
      call: {
        ...call,
        ...(status === 'authorised' ? withDeadline(call, work.context.now) : {}),
        status,
        approvable: report.approvableGuards,
        reason: first?.reason ?? null,
        retryAt: null,
        error: status === 'authorised' ? null : call.error,
        gatePassed: call.gatePassed || (kind === 'ok' && !held),
      },
      allowed: status === 'authorised',
      event_type: first?.eventType ?? 'call_allowed',
      guard: first?.guard ?? null,
      reason: first?.reason ?? null,
      guards: [...report.verdicts, confidenceVerdict],
      policy_digest: plan.policyDigest,
      reserved_micro_usd: status === 'authorised' ? call.estimateMicroUsd : 0,
      ...(consumed === null ? {} : { consumed_approval: consumed }),
      ...(checkpoint === null ? {} : { checkpoint }),
      ...(needsCheckpoint && checkpointId !== null ? { checkpoint_id: checkpointId } : {}),
      ...(begin === null ? {} : { step: begin.step, cursor: begin.cursor }),
    });
    begin = null;
  }
  if (doomed) {
    failUnattended(
      work,
      firstAsk?.reason ?? `${gate} needs a human: confidence ${lowest?.value ?? 'none'} against threshold ${threshold}.`,
    );
    return;
  }
  if (isExternal(plan)) {
    for (const ruling of rulings) askForOutside(work, ruling);
    return;
  }
  openApprovals(work, rulings);
  openGateIfDue(work);
}

/** What is recorded with the first write that a decision authorises; null where checkpoints are off, or nothing of ours. */
function checkpointBefore(work: Work, call: Call, start: BatchStart | null): CheckpointBody | null {
  const plan = work.plan();
  if (isExternal(plan) || plan.tree === null || checkpointObstacle(plan) !== null) return null;
  const step = start?.step ?? plan.step;
  const isNewStep = start !== null && start.step.number !== plan.step?.number;
  const decisions = plan.decisions.filter((each) => !each.superseded);
  return {
    id: `${plan.id}.k${plan.checkpointsMade + 1}`,
    tree: plan.tree,
    phase: plan.phase,
    cursor: work.store(step?.startCursor ?? null),
    decision: decisions.at(-1)?.id ?? null,
    counters: {
      attempt: plan.attempt,
      step: step?.number ?? plan.stepsUsed,
      callsInStep: isNewStep ? 0 : plan.callsInStep,
      callsInInvocation: plan.callsInInvocation,
      decisions: decisions.length,
      results: plan.results.length,
      spentMicroUsd: plan.ledger.settledMicroUsd + plan.ledger.overrunMicroUsd,
    },
    call: call.id,
    reason: `before ${call.tool} (${call.id}${call.attempt > 1 ? `, attempt ${call.attempt}` : ''})`,
  };
}

/** An executor outside may be allowed a call while a question about it is still open; only an approval that was given is consumed. */
function consumedApproval(plan: Plan, { approvalId, external }: Call): string | null {
  if (external === undefined || approvalId === null) return approvalId;
  return plan.approvals.find((each) => each.id === approvalId)?.status === 'approved' ? approvalId : null;
}

/** A call that no guard refused, in a batch with which an unattended plan ends. */
const ENDS_WITH_ITS_BATCH: GuardVerdict = {
  guard: 'batch',
  eventType: 'tool_blocked',
  allowed: false,
  reason: 'Not run: another call of its batch needs a human, and nobody is there to ask.',
  requiresApproval: false,
  approval: 'none',
};

/** The gate of a batch: calls in Strategize inform a decision, calls in Execute do the work. */
function callGate(plan: Plan): 'edit_code' | 'execute_command' {
  return plan.phase === 'strategize' ? 'edit_code' : 'execute_command';
}

/** What the batch's gate says, at the lowest confidence among the calls that no guard refused and no human let pass. */
function judgeGate(plan: Plan, rulings: readonly Ruling[]) {
  const clean = rulings.filter((each) => each.kind === 'ok' && !each.call.gatePassed);
  const lowest = clean
    .map((each) => each.call.confidence)
    .reduce((a, b) => (a === null || b === null ? null : b.value < a.value ? b : a), clean[0]?.call.confidence ?? null);
  const threshold = plan.policy.thresholds[callGate(plan)];
  const says =
    clean.length === 0
      ? ('proceed' as const)
      : evaluateGate({ threshold, confidence: lowest?.value ?? null, unattended: plan.policy.unattended });
  return { lowest, says };
}

/** The guards, and for those calls that would run now and cost something also the budgets above the plan. */
function ruleWithMoney(work: Work, calls: readonly Call[], start: BatchStart | null, issuesOf: BatchStart['issues']): readonly Ruling[] {
  const rulings = rule(work, calls, start, issuesOf, () => false);
  const passes = judgeGate(work.plan(), rulings).says === 'proceed';
  // Every call that may run is asked about, whether or not it was allowed without the budgets above: what they refuse makes room in the
  // plan's own limits for what comes behind. More calls are clean then, never fewer at a higher confidence, so the gate does not open by it.
  const mayRun = (call: Call): boolean => passes || call.gatePassed;
  const costs = rulings.some(({ call }) => call.estimateMicroUsd > 0 && mayRun(call));
  return costs ? rule(work, calls, start, issuesOf, mayRun) : rulings;
}

/** Guards for each call in order; what is allowed counts for the next one. */
function rule(
  work: Work,
  calls: readonly Call[],
  start: BatchStart | null,
  issuesOf: BatchStart['issues'],
  mayRun: (call: Call) => boolean,
): readonly Ruling[] {
  const plan = work.plan();
  const outsideStep = isExternal(plan) ? calls[0]?.step : undefined;
  const facts = factsOf(plan, work.context.now, outsideStep ?? start?.step.number ?? plan.step?.number ?? plan.stepsUsed);
  let callsInStep = start !== null && start.step.number !== plan.step?.number ? 0 : facts.callsInStep;
  let callsInInvocation = plan.callsInInvocation;
  let reserved = reservedMicroUsd(plan.ledger);
  let fromAbove = 0;
  return calls.map((call) => {
    const evaluate = (upperRefusal: UpperRefusal | null): GuardReport =>
      evaluateGuards(
        plan.policy,
        {
          toolName: call.named,
          catalogue: work.context.catalogue,
          unknownTools: isExternal(plan) ? 'accept' : 'refuse',
          riskClass: call.riskClass,
          costMicroUsd: call.external?.isPriceKnown === false && isLimited(work, plan) ? null : call.estimateMicroUsd,
          skillCategory: null,
          operation: call.external?.operation ?? null,
          protectedPaths: call.protectedPaths,
          hosts: call.hosts ?? null,
          changesOutside: call.scope === 'external' && isWriteClass(call.riskClass),
          appliesAtOnce: call.atOnce === true,
        },
        {
          ...facts,
          callsInStep,
          callsInInvocation,
          reservedMicroUsd: reserved,
          retriesOfCall: call.attempt - 1,
          approvedGuards: new Map(Object.entries(call.overridden)),
          upperRefusal,
        },
      );
    const own = evaluate(null);
    const above = own.allowed && mayRun(call) ? work.refusalAbove(fromAbove + call.estimateMicroUsd) : null;
    // The node above knows nothing yet of the calls of this batch that come before.
    const report =
      above === null ? own : evaluate(above.kind === 'exceeded' ? { ...above, usedMicroUsd: above.usedMicroUsd + fromAbove } : above);
    const unfit = unfitVerdict(
      {
        toolName: call.named,
        issues: issuesOf.get(call.id) ?? [],
        appliesAtOnce: call.atOnce === true,
        isStrategy: plan.phase === 'strategize',
      },
      report.guard,
    );
    if (unfit !== null) return { call, report: refusedFor(report, unfit), kind: 'refused' };
    if (report.allowed) {
      callsInStep += 1;
      callsInInvocation += 1;
      reserved = addMicroUsd(reserved, call.estimateMicroUsd);
      if (mayRun(call)) fromAbove = addMicroUsd(fromAbove, call.estimateMicroUsd);
      return { call, report, kind: 'ok' };
    }
    // An executor outside asks again by itself once the budget above was raised.
    const isFinal = report.approval === 'none' || (above !== null && isExternal(plan));
    return { call, report, kind: isFinal ? 'refused' : (report.approval as 'call' | 'limit') };
  });
}

/** What guards are told of the plan; one place, so that a call and a question about a call are judged by the same numbers. */
export function factsOf(plan: PublicPlan & { readonly calls?: Plan['calls'] }, now: string, stepNumber: number): GuardFacts {
  return {
    running: !plan.terminal && (plan.phase === 'execute' || plan.phase === 'strategize'),
    halted: haltOf(plan)?.reason ?? null,
    workedMs: workedMs(plan, now),
    stepNumber,
    callsInStep: plan.external === undefined ? plan.callsInStep : (plan.external.callsByStep[stepNumber] ?? 0),
    callsInInvocation: plan.callsInInvocation,
    retriesOfCall: 0,
    spentMicroUsd: plan.ledger.settledMicroUsd,
    reservedMicroUsd: reservedMicroUsd(plan.ledger),
    overrunMicroUsd: plan.ledger.overrunMicroUsd,
    upperRefusal: null,
    grants: {
      costMicroUsd: plan.ledger.grantedMicroUsd,
      calls: plan.grants.calls.step === stepNumber ? plan.grants.calls.amount : 0,
      steps: plan.grants.steps,
      seconds: plan.grants.seconds,
      retries: plan.grants.retries,
    },
    tainted: isExternal(plan) ? isTaintedOutside({ tainted: plan.tainted, calls: plan.calls ?? {} }) : plan.tainted,
    noCheckpoint: checkpointObstacle(plan),
    approvedGuards: new Map(),
  };
}

/** Whether money is limited at any level: then a price has to be known. */
function isLimited(work: Work, { policy }: Plan): boolean {
  return policy.planCapMicroUsd !== null || policy.profileCapMicroUsd !== null || work.isLimitedAbove();
}

/** Time in which the plan has worked, up to `now`. */
export function workedMs(plan: Pick<Plan, 'workedMs' | 'workingSince'>, now: string): number {
  return plan.workedMs + (plan.workingSince === null ? 0 : elapsedMs(plan.workingSince, now));
}

function makeCall(work: Work, plan: Plan, proposed: ProposedCall, facts: CallFacts | undefined, step: Step, index: number): Call {
  const { sha256, catalogue } = work.context;
  const spec = catalogue.find(proposed.tool)?.spec ?? null;
  const declared = parseCostUsd(proposed.declaredCostUsd ?? 0);
  const estimateMicroUsd = addMicroUsd(spec?.priceMicroUsd ?? 0, declared.ok ? declared.value : 0);
  // Without a sandbox it leaves the plan, and the project's history takes it back.
  const atOnce = spec?.scope === 'workspace' && isWriteClass(spec.riskClass) && writesAtOnce(plan);
  const ownClass = spec?.riskClass ?? 'external_write';
  const riskClass = atOnce ? riskierOf(ownClass, 'external_write_revertible') : ownClass;
  const argumentsDigest = digestOf(sha256, proposed.arguments);
  const id = `c${plan.nextCall + index}`;
  const known: CallFacts = facts ?? { issues: [], known: 0, newInKnownFolder: 0, unknown: 0, protectedPaths: [], bytes: 0 };
  return {
    id,
    step: step.number,
    index,
    tool: spec?.name ?? proposed.tool,
    named: proposed.tool,
    arguments: work.store(proposed.arguments),
    argumentsDigest,
    digest: digestOf(sha256, {
      tool: spec?.name ?? proposed.tool,
      arguments: argumentsDigest,
      estimate: estimateMicroUsd,
      step: step.number,
    }),
    riskClass,
    scope: atOnce ? 'external' : (spec?.scope ?? 'external'),
    idempotent: atOnce || (spec?.idempotent ?? false),
    ...(atOnce ? { atOnce: true as const } : {}),
    ...(atOnce && known.head !== undefined ? { askedHead: known.head } : {}),
    estimateMicroUsd,
    confidence: callConfidence(plan, riskClass, proposed, known),
    status: 'asked',
    attempt: 1,
    retryAt: null,
    protectedPaths: known.protectedPaths,
    ...(known.hosts === undefined ? {} : { hosts: known.hosts }),
    approvable: [],
    overridden: {},
    approvalId: null,
    gatePassed: false,
    idempotencyKey: `${plan.id}.${id}`,
    result: null,
    error: null,
    reason: null,
  };
}

function gateVerdict(plan: Plan, gate: 'edit_code' | 'execute_command', call: Call, says: string, held: boolean): GuardVerdict {
  const threshold = plan.policy.thresholds[gate];
  const confidence = call.confidence?.value ?? null;
  const approval = plan.approvals.find((each) => each.id === call.approvalId && (each.kind === 'call' || each.kind === 'gate'));
  return {
    guard: 'confidence',
    eventType: held ? 'gate_blocked' : 'gate_allowed',
    allowed: !held,
    reason: held
      ? `Confidence ${confidence ?? 'none'} against threshold ${threshold} of ${gate}. Remediation: request human approval.`
      : call.gatePassed && approval !== undefined
        ? `approved by ${approval.id}`
        : null,
    requiresApproval: held && says === 'ask',
    approval: held ? 'call' : 'none',
    limitField: gate,
    limit: threshold,
    ...(confidence === null ? {} : { actual: confidence }),
  };
}

/** The report of a call that is refused for good by something that is no guard of the policy. */
function refusedFor(report: GuardReport, verdict: GuardVerdict): GuardReport {
  const { guard, eventType } = verdict;
  return { ...report, allowed: false, first: verdict, eventType, guard, approval: 'none', verdicts: [verdict, ...report.verdicts] };
}

/**
 * One approval per refused call, one for all calls of a step that only wait for the step's approval, and one for everything that stands
 * behind a limit: calls that come to it one by one join those that are asked about already, in a new question, since an approval is for
 * exactly what it has shown.
 */
export function openApprovals(work: Work, rulings: readonly Ruling[]): void {
  const ofStep = rulings.filter(({ kind, report }) => kind === 'call' && report.guard === STEP_APPROVAL);
  if (ofStep.length > 1) openStepApproval(work, ofStep);
  for (const { call, report, kind } of rulings) {
    if (kind !== 'call' || report.first === null || (ofStep.length > 1 && report.guard === STEP_APPROVAL)) continue;
    openApproval(work, {
      kind: 'call',
      reason: report.first.reason ?? 'A guard refused the call.',
      subject: { call: { tool: call.tool, arguments: call.arguments, class: call.riskClass } },
      binds: { call: call.digest, call_id: call.id },
      guard: report.first.guard,
      callIds: [call.id],
      confidence: call.confidence,
      estimateMicroUsd: call.estimateMicroUsd,
    });
  }
  const limited = rulings.filter((each) => each.kind === 'limit');
  const first = limited[0]?.report.first;
  if (limited[0] === undefined || first === undefined || first === null) return;
  const joined = takeOverLimit(work, first, limited[0].call);
  const calls = [...joined, ...limited.map(({ call }) => call).filter((call) => !joined.some((each) => each.id === call.id))];
  const plan = work.plan();
  const details = limitDetails(first, limited[0].call.estimateMicroUsd);
  openApproval(work, {
    kind: 'limit',
    reason: first.reason ?? 'A limit was reached.',
    subject: { calls: shownCalls(work, calls), ...(details === null ? {} : { details }) },
    binds: { guard: first.guard, calls: calls.map((call) => [call.id, call.digest]), spent: plan.ledger.settledMicroUsd },
    guard: first.guard,
    callIds: calls.map((call) => call.id),
    estimateMicroUsd: addMicroUsd(...calls.map((call) => call.estimateMicroUsd)),
    suggestedGrant: suggestGrant(plan, first, calls),
  });
}

const STEP_APPROVAL = 'step_approval';

/** The step is asked about once, with the calls it has now: what comes to it later was not shown, and is asked about by itself. */
function openStepApproval(work: Work, rulings: readonly Ruling[]): void {
  const calls = rulings.map(({ call }) => call);
  const least = calls.reduce((a, b) => ((b.confidence?.value ?? -1) < (a.confidence?.value ?? -1) ? b : a));
  openApproval(work, {
    kind: 'call',
    reason: rulings[0]?.report.first?.reason ?? 'The step requires human approval.',
    subject: { calls: shownCalls(work, calls) },
    binds: { guard: STEP_APPROVAL, step: least.step, calls: calls.map((call) => [call.id, call.digest]) },
    guard: STEP_APPROVAL,
    callIds: calls.map((call) => call.id),
    confidence: least.confidence,
    estimateMicroUsd: addMicroUsd(...calls.map((call) => call.estimateMicroUsd)),
  });
}

/** The calls that wait behind the same limit, taken out of the question that is open about it: the new one shows them as well. */
function takeOverLimit(work: Work, verdict: GuardVerdict, call: Call): readonly Call[] {
  const plan = work.plan();
  const before = limitQuestions(plan, verdict, call);
  for (const { id } of before) {
    work.emit('approval_closed', SYSTEM, {
      approval_id: id,
      status: 'revoked',
      reason: isExternal(plan)
        ? 'another call stands behind the same limit; all of them are asked about together'
        : 'another call of its batch stands behind the same limit; both are asked about together',
    });
  }
  return before.flatMap(({ callIds }) => callIds.flatMap((id) => plan.calls[id] ?? [])).filter((each) => each.status === 'asked');
}

/** The open questions about a limit that a call which stands behind it as well has to join. Outside, steps go side by side: each is asked about by itself. */
export function limitQuestions(plan: Plan, { guard, exceededLevel = 'plan' }: GuardVerdict, call: Call): readonly Approval[] {
  return pendingApprovals(plan).filter(
    (each) =>
      each.kind === 'limit' &&
      each.guard === guard &&
      each.callIds.length > 0 &&
      isHeldAbove(each) === (exceededLevel !== 'plan') &&
      (!isExternal(plan) || guard === 'budget_cap' || each.callIds.every((id) => (plan.calls[id]?.step ?? call.step) === call.step)),
  );
}

/** The smallest grant that lets everything behind the limit run, together with what is cleared and waits for its gate. Null: nothing here can be granted. */
function suggestGrant(plan: Plan, first: GuardVerdict, limited: readonly Call[]): Grant | null {
  const { actual = 0, limit = 0, exceededLevel = 'plan' } = first;
  // It is raised at its own level; the plan only goes on then.
  if (exceededLevel !== 'plan') return null;
  const cleared = (plan.step?.callIds ?? []).flatMap((id) => plan.calls[id] ?? []).filter((call) => call.status === 'cleared');
  switch (first.guard) {
    case 'budget_cap': {
      const cap = (plan.policy.planCapMicroUsd?.value ?? 0) + plan.ledger.grantedMicroUsd;
      const used = addMicroUsd(plan.ledger.settledMicroUsd, plan.ledger.overrunMicroUsd, reservedMicroUsd(plan.ledger));
      const coming = addMicroUsd(...[...cleared, ...limited].map((call) => call.estimateMicroUsd));
      return { cost_usd: toUsd(used + coming - cap) };
    }
    case 'step_limit':
      return { steps: Math.max(1, actual + 1 - limit) };
    case 'wall_clock':
      return { seconds: Math.max(60, Math.ceil((actual - limit) * 2)) };
    case 'retry_limit':
      return { retries: Math.max(1, actual + 1 - limit, ...limited.map((call) => call.attempt - 1 - limit)) };
    case 'actor_tool_calls':
      return { calls: Math.max(1, plan.callsInInvocation + cleared.length + limited.length - limit) };
    default:
      return { calls: Math.max(1, (isExternal(plan) ? actual : plan.callsInStep) + cleared.length + limited.length - limit) };
  }
}

/** The batch's gate opens once every guard's question about it is answered, for the calls that no human has approved one by one. */
export function openGateIfDue(work: Work): void {
  const plan = work.plan();
  const step = plan.step;
  if (step === null || plan.terminal || haltOf(plan) !== null || isExternal(plan)) return;
  const calls = step.callIds.flatMap((id) => plan.calls[id] ?? []);
  if (calls.some((call) => call.status === 'asked')) return;
  const waiting = calls.filter((call) => call.status === 'cleared' && !call.gatePassed);
  if (waiting.length === 0) return;
  const pending = pendingApprovals(plan);
  // A retry's gate is about one call; the batch's gate and the question how to go on are about these.
  if (pending.some((each) => each.kind === 'next_step' || (each.gate !== 'modify_config' && each.gate !== null))) return;
  if (openGate(work, waiting) === 'proceed')
    redecide(
      work,
      waiting.map((call) => call.id),
    );
}

/** The gate of calls that no guard refused, at the lowest confidence among them. */
export function openGate(work: Work, waiting: readonly Call[]): ReturnType<typeof passGate> {
  const lowest = waiting.reduce((a, b) => ((b.confidence?.value ?? -1) < (a.confidence?.value ?? -1) ? b : a)).confidence;
  return passGate(work, {
    gate: callGate(work.plan()),
    confidence: lowest,
    subject: { calls: shownCalls(work, waiting) },
    binds: waiting.map((call) => [call.id, call.digest]),
    subjectDigest: digestOf(
      work.context.sha256,
      waiting.map((call) => call.digest),
    ),
    callIds: waiting.map((call) => call.id),
    estimateMicroUsd: addMicroUsd(...waiting.map((call) => call.estimateMicroUsd)),
  });
}

/** The one warning of a plan, at 90 % of its cap. A plan that has just ended is past warning. */
export function warnOnce(work: Work): void {
  const { ledger, policy, terminal } = work.plan();
  if (terminal) return;
  const due = dueWarning(ledger, policy.planCapMicroUsd);
  if (due !== null)
    work.emit('budget_warning', SYSTEM, { level: 'plan', cap_micro_usd: due.capMicroUsd, spent_micro_usd: due.spentMicroUsd });
}
