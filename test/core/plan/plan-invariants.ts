/**
 * What has to hold of every plan after every command (design section 4), computed from the log alone and on its own terms, so that the
 * fold and the guards are not checked against themselves.
 */
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { effectiveLimit, type GuardPolicy } from '../../../src/core/guard-policy.ts';
import { reservedMicroUsd } from '../../../src/core/ledger.ts';
import { parseCostUsd } from '../../../src/core/money.ts';
import { MAX_CHECKPOINTS } from '../../../src/core/plan/checkpoint.ts';
import type { LogRow } from '../../../src/core/plan/events.ts';
import { evolve } from '../../../src/core/plan/evolve.ts';
import { nextTask } from '../../../src/core/plan/next-task.ts';
import { haltOf, type Plan, pendingApprovals } from '../../../src/core/plan/plan.ts';
import { isWriteClass } from '../../../src/core/tool.ts';

/** As `expect`, for what is checked so often that a matcher for each would take most of the time. */
export function hold(condition: boolean, what: string): void {
  if (!condition) expect.fail(what);
}

/** The same once it is stored (a member that is undefined is none), compared fast; where it is not, the difference is shown. */
export function sameState(one: Plan | null, other: Plan | null): void {
  if (isDeepStrictEqual(one, other) || isDeepStrictEqual(asStored(one), asStored(other))) return;
  expect(one).toEqual(other);
}

const asStored = (plan: Plan | null): Plan | null => JSON.parse(JSON.stringify(plan)) as Plan | null;

/** Commands between two comparisons of whole states. */
const COMPARE_EVERY = 6;

const LIMITS = [
  'planCapMicroUsd',
  'profileCapMicroUsd',
  'maxCallsPerStep',
  'maxSteps',
  'maxWallClockSeconds',
  'maxCallsPerInvocation',
  'maxRetries',
] as const;
const FLAGS = [
  'requireApprovalForWrites',
  'requireApprovalForApply',
  'requireHumanApproval',
  'requireSandbox',
  'requireCheckpoints',
  'unattended',
] as const;

/** Whatever the first policy lets pass, the second one does too. Limits are left out where grants count with them. */
function notLooser(policy: GuardPolicy, than: GuardPolicy, { ofGrants = false } = {}): void {
  for (const name of LIMITS) {
    const limit = than[name];
    hold(ofGrants || limit === null || (policy[name]?.value ?? Number.POSITIVE_INFINITY) <= limit.value, `${name} is looser`);
  }
  for (const name of FLAGS) hold(policy[name] || !than[name], `${name} is looser`);
  hold(!policy.allowUnsafeTools || than.allowUnsafeTools, 'unsafe tools are allowed');
  for (const [name, value] of Object.entries(than.thresholds))
    hold(policy.thresholds[name as keyof GuardPolicy['thresholds']] >= value, `${name} is lower`);
  for (const { pattern } of than.denylist)
    hold(
      policy.denylist.some((each) => each.pattern.toLowerCase() === pattern.toLowerCase()),
      `${pattern} is not denied`,
    );
  for (const { pattern } of than.requiredConfirmations) {
    hold(
      policy.requiredConfirmations.some((each) => each.pattern.toLowerCase() === pattern.toLowerCase()),
      `${pattern} is not confirmed`,
    );
  }
  for (const list of than.allowlists) {
    hold(
      policy.allowlists.some(({ entries }) => entries.every((entry) => list.entries.includes(entry))),
      'an allowlist is wider',
    );
  }
}

/** An account of one plan, kept beside it row by row. */
export class Witness {
  private mirror: Plan | null = null;
  private readonly held = new Map<string, number>();
  private readonly allowed = new Map<string, number>();
  private readonly attempts = new Map<string, number>();
  private readonly barred = new Set<string>();
  private readonly consumed = new Set<string>();
  private settled = 0;
  private overrun = 0;
  private granted = 0;
  private retriesGranted = 0;
  private ended = false;
  private writes = 0;
  private checkpoints = 0;
  private seen = 0;
  private used = 0;
  /** The policy under which each approval was asked, and the one that nothing may loosen. */
  private readonly askedUnder = new Map<string, string>();
  private locked: GuardPolicy | null = null;

  /** Takes in what a command wrote, and what the decider says the plan is now. */
  see(rows: readonly LogRow[], after: Plan, nowMs: number): void {
    for (const row of rows) this.row(JSON.parse(JSON.stringify(row)) as LogRow);
    // The same state, though this one only ever saw rows and snapshots that went through JSON. Comparing whole states takes most of the
    // time of a history; whoever plays it compares the last one with the replay of everything.
    this.seen += 1;
    if (this.seen % COMPARE_EVERY === 0 && rows.length > 0) {
      sameState(this.mirror, after);
      this.mirror = JSON.parse(JSON.stringify(this.mirror)) as Plan;
    }
    this.state(after, nowMs);
  }

  private row(row: LogRow): void {
    if (this.ended) hold(row.type === 'call_settled' && row.data.late === true, `${row.type} after the end`);
    const before = this.mirror;
    this.mirror = evolve(this.mirror, row);
    const halted = before?.halts.some(({ reason }) => reason !== null) ?? false;
    switch (row.type) {
      case 'call_decided': {
        const { call, allowed, reserved_micro_usd: amount, consumed_approval: approval } = row.data;
        const key = `${call.id}.${call.attempt}`;
        hold(allowed === (call.status === 'authorised'), `${key} is ${call.status}`);
        hold(!(allowed && halted), 'authorised while it is halted');
        hold(row.data.policy_digest === before?.policyDigest, `${key} is decided under another policy`);
        if (!allowed) {
          hold(amount === 0, `${key} is refused and reserves ${amount}`);
          hold(row.data.reason !== null && row.data.reason !== undefined, 'a refusal has a reason');
          break;
        }
        hold(!this.barred.has(call.id), `${call.id} was refused and is allowed later`);
        hold(!this.allowed.has(key), `${key} is allowed twice`);
        hold(amount === call.estimateMicroUsd, `${key} reserves ${amount}, not ${call.estimateMicroUsd}`);
        hold(
          row.data.guards.every((verdict) => verdict.allowed),
          `${key} is allowed against a guard`,
        );
        if (isWriteClass(call.riskClass) && before !== null) {
          const { checkpoint, checkpoint_id: id } = row.data;
          const possible = before.external === undefined && before.sandbox.checkpointsEnabled && before.tree !== null;
          hold((id !== undefined) === possible, `${key} writes without a checkpoint`);
          hold(id !== undefined || before.external !== undefined || !before.policy.requireCheckpoints, `${key} needs a checkpoint`);
          if (checkpoint !== undefined) {
            expect(checkpoint).toMatchObject({ id, tree: before.tree });
            this.checkpoints += 1;
          }
        } else hold(row.data.checkpoint_id === undefined, `${key} has a checkpoint and writes nothing`);
        this.allowed.set(key, amount);
        this.held.set(key, amount);
        this.attempts.set(call.id, (this.attempts.get(call.id) ?? 0) + 1);
        if (approval !== undefined) {
          const key = `${approval} ${call.id}`;
          expect(this.consumed.has(key), `${approval} is consumed twice`).toBe(false);
          this.consumed.add(key);
        }
        // What the org or the plan denies ran only because a human approved exactly this call; a step's approval is for the calls it has shown.
        for (const guard of Object.keys(call.overridden)) {
          const given = before?.approvals.find((each) => each.id === call.overridden[guard]);
          expect(given?.kind).toBe('call');
          const shown = guard === 'step_approval' ? (given?.subject.calls ?? []).map((each) => each.call_id) : [];
          expect(given?.callIds).toEqual(shown.length > 0 ? shown : [call.id]);
          expect(given?.callIds).toContain(call.id);
          expect(given?.status).toBe('approved');
          expect(given?.decided?.by.kind).toBe('human');
          expect(this.askedUnder.get(given?.id ?? ''), 'approved under another policy').toBe(before?.policyDigest);
        }
        break;
      }
      case 'plan_created':
        this.locked = row.data.policy;
        break;
      case 'approval_opened':
        this.askedUnder.set(row.data.approval.id, before?.policyDigest ?? '');
        break;
      case 'halted':
      case 'halt_cleared': {
        const known = before?.halts.find(({ level }) => level === row.data.level);
        expect(known === undefined || row.data.epoch > known.epoch, 'epochs grow').toBe(true);
        break;
      }
      case 'guard_revised': {
        if (row.data.origin === 'org') this.locked = row.data.locked ?? row.data.policy;
        notLooser(row.data.policy, this.locked ?? row.data.policy);
        if (row.data.loosens) expect(row.actor.kind).toBe('human');
        else if (before !== null) notLooser(row.data.policy, before.policy, { ofGrants: true });
        for (const id of row.data.withdrawn) {
          const call = before?.calls[id];
          expect(call?.status === 'authorised' && call.scope === 'external', `${id} may have begun`).toBe(true);
          const key = `${id}.${call?.attempt}`;
          this.held.delete(key);
          this.allowed.delete(key);
          this.attempts.set(id, (this.attempts.get(id) ?? 1) - 1);
          if (call !== undefined) for (const used of [...this.consumed]) if (used.endsWith(` ${id}`)) this.consumed.delete(used);
        }
        const { grants } = row.data;
        if (grants !== undefined) {
          expect(grants.cost_micro_usd <= this.granted && grants.retries <= this.retriesGranted, 'a revision grants nothing').toBe(true);
          this.granted = grants.cost_micro_usd;
          this.retriesGranted = grants.retries;
        }
        break;
      }
      case 'check_recorded':
        if (!row.data.allowed) hold((row.data.charged_micro_usd ?? 0) === 0, 'a refused check spends nothing');
        this.settled += row.data.charged_micro_usd ?? 0;
        break;
      case 'imported':
        this.settled += row.data.settled_micro_usd;
        this.overrun += row.data.overrun_micro_usd;
        break;
      case 'call_sent':
        hold(!halted, 'sent while it is halted');
        hold(this.held.has(`${row.data.call_id}.${row.data.attempt}`), 'sent without an authorisation');
        hold(
          (row.data.write !== undefined) === (before?.calls[row.data.call_id]?.atOnce === true),
          'a write is sent by what writes at once',
        );
        break;
      case 'call_settled': {
        const { call_id: id, attempt, outcome, charge, changes, written } = row.data;
        const sent = before?.calls[id]?.write;
        // What a plan without a sandbox says that it changed is what it recorded before it was sent, and the project then had.
        if (before?.calls[id]?.atOnce === true) {
          expect(written !== undefined, `${id} changes what it did not write`).toBe(changes.length > 0);
          if (written !== undefined) {
            expect(written.commit_id).toBe(sent?.commitId);
            expect(changes).toEqual(sent?.changes);
            this.writes += 1;
          }
        } else hold(written === undefined, `${id} has written and does not write at once`);
        const key = `${id}.${attempt}`;
        if (outcome === 'succeeded' || charge !== null) hold(this.allowed.has(key), `${key} ran without a decision`);
        if (outcome === 'refused') {
          this.barred.add(id);
          hold((this.attempts.get(id) ?? 0) <= 0, `${id} ran and is called refused`);
        }
        const reserved = this.held.get(key) ?? 0;
        if (charge !== null) {
          hold(Number.isSafeInteger(charge.charged_micro_usd) && charge.charged_micro_usd >= 0, `${key} is charged what is no amount`);
          this.settled += Math.min(reserved, charge.charged_micro_usd);
          this.overrun += Math.max(0, charge.charged_micro_usd - reserved);
        }
        if (outcome !== 'unknown') this.held.delete(key);
        break;
      }
      case 'approval_decided': {
        if (row.data.kind !== 'question') hold(row.actor.kind === 'human', 'no human has approved');
        const approval = before?.approvals.find((each) => each.id === row.data.approval_id);
        hold(approval?.status === 'pending', `${row.data.approval_id} is ${approval?.status}`);
        hold(row.data.digest === approval?.digest, 'another digest is decided');
        if (row.data.decision === 'approve' && row.data.kind !== 'next_step') {
          expect(halted, 'approved while it is halted').toBe(false);
          expect(this.askedUnder.get(row.data.approval_id), 'asked under another policy').toBe(before?.policyDigest);
        }
        hold(approval?.expiresAt === null || (approval?.expiresAt ?? '') > row.at, 'answered after its expiry');
        if (row.data.decision === 'deny') for (const id of approval?.callIds ?? []) this.barred.add(id);
        break;
      }
      case 'limit_granted': {
        const { cost_usd: usd, retries } = row.data.grant;
        const cost = parseCostUsd(usd ?? 0);
        this.granted += cost.ok ? cost.value : 0;
        this.retriesGranted += retries ?? 0;
        break;
      }
      default:
    }
    if (this.mirror.terminal && !this.ended) {
      this.ended = true;
      // What was never sent gives its money back with the end.
      for (const call of Object.values(this.mirror.calls)) if (call.status === 'authorised') this.held.delete(`${call.id}.${call.attempt}`);
    }
    hold(this.mirror.checkpointsMade === this.checkpoints, 'the account of checkpoints is wrong');
    hold(this.mirror.checkpoints.length === Math.min(this.checkpoints, MAX_CHECKPOINTS), 'not the newest checkpoints are kept');
    hold((this.mirror.writtenAtOnce?.writes ?? 0) === this.writes, 'the account of what was written is wrong');
    this.money(this.mirror, row.type === 'call_decided' && row.data.allowed ? row.data.call.id : null);
  }

  private money(plan: Plan, authorised: string | null): void {
    const reserved = [...this.held.values()].reduce((sum, amount) => sum + amount, 0);
    const { settledMicroUsd, overrunMicroUsd, grantedMicroUsd } = plan.ledger;
    hold(reservedMicroUsd(plan.ledger) === reserved, `reserved is ${reservedMicroUsd(plan.ledger)}, not ${reserved}`);
    hold(settledMicroUsd === this.settled, `settled is ${settledMicroUsd}, not ${this.settled}`);
    hold(overrunMicroUsd === this.overrun, `overrun is ${overrunMicroUsd}, not ${this.overrun}`);
    hold(grantedMicroUsd === this.granted, `granted is ${grantedMicroUsd}, not ${this.granted}`);
    const cap = effectiveLimit(plan.policy.planCapMicroUsd, this.granted);
    const used = this.settled + reserved;
    // A cap that was lowered below what is spent takes nothing back, and lets nothing be added.
    hold(
      cap === null || used <= (authorised === null ? Math.max(cap, this.used) : cap),
      `over the cap: ${this.settled} + ${reserved} > ${cap}`,
    );
    this.used = used;
    const retries = effectiveLimit(plan.policy.maxRetries, this.retriesGranted);
    const count = authorised === null ? 0 : (this.attempts.get(authorised) ?? 0);
    hold(retries === null || count <= retries + 1, `${count} attempts of ${authorised}`);
  }

  private state(plan: Plan, nowMs: number): void {
    const pending = pendingApprovals(plan);
    const isEnd = ['applied', 'cancelled', 'rejected'].includes(plan.state);
    hold((plan.state === 'waiting') === (!plan.terminal && pending.length > 0), `${plan.state} with ${pending.length} pending`);
    hold(!plan.terminal || pending.length === 0, 'something is pending after the end');
    hold(plan.terminal ? isEnd || plan.state === 'errored' : !isEnd, `${plan.state} is ${plan.terminal ? '' : 'not '}the end`);
    hold(pending.filter((each) => each.kind === 'next_step').length <= 1, 'asked twice how to go on');
    hold(!plan.policy.unattended || plan.approvals.length === 0, 'somebody is asked where nobody is');

    for (const call of Object.values(plan.calls)) {
      if (call.status !== 'authorised' && call.status !== 'sent') continue;
      const key = `${call.id}.${call.attempt}`;
      hold(this.allowed.has(key), `${key} is ${call.status} without a decision`);
      const held = plan.ledger.reservations.find((each) => each.id === key)?.amountMicroUsd;
      hold(
        (plan.terminal && call.status !== 'sent') || held === this.allowed.get(key),
        `${key} holds ${held}, not ${this.allowed.get(key)}`,
      );
    }
    // Money is held only for what is open now.
    for (const { id } of plan.ledger.reservations) {
      const call = Object.values(plan.calls).find((each) => `${each.id}.${each.attempt}` === id);
      hold(
        ['authorised', 'sent', 'unknown'].includes(call?.status ?? 'gone'),
        `${id} is held for a call that is ${call?.status ?? 'gone'}`,
      );
    }

    const task = nextTask(plan, nowMs);
    if (!plan.terminal && pending.length === 0 && task.kind === 'sleep' && task.atMs === null && plan.external === undefined) {
      // Nothing moves it from inside: then it says that it needs somebody.
      hold(plan.state === 'errored' || plan.state === 'constrained' || haltOf(plan) !== null, `stuck in ${plan.phase}/${plan.state}`);
    }
    this.tree(plan);
  }

  private tree(plan: Plan): void {
    const ids = new Set<string>();
    let roots = 0;
    for (const decision of plan.decisions) {
      if (decision.parentId === null) {
        roots += 1;
        hold(decision.type === 'prompt_definition', `the root is of type ${decision.type}`);
      } else hold(ids.has(decision.parentId), 'a parent is older than its child, so there is no cycle');
      hold(!ids.has(decision.id), `${decision.id} is there twice`);
      ids.add(decision.id);
    }
    hold(roots === 1, `${roots} roots`);
  }
}
