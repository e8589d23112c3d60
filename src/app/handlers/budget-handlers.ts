import type { BudgetView } from '../../api/budget.ts';
import { type Caps, isLooserCap } from '../../core/budget/node-state.ts';
import { CAP_WINDOWS, type CapWindow, dayOf, windowKey } from '../../core/budget/window.ts';
import { effectiveLimit } from '../../core/guard-policy.ts';
import { reservedMicroUsd, spentMicroUsd } from '../../core/ledger.ts';
import { parseCapUsd, toUsd } from '../../core/money.ts';
import { SpendByTool } from '../../core/plan/spend-by-tool.ts';
import { hasRole } from '../../core/principal.ts';
import { invalidField, notFound, type Refusal } from '../../core/refusal.ts';
import { err, ok, type Result } from '../../core/result.ts';
import { approvingCaller } from '../caller.ts';
import type { CallContext, Handlers } from '../handler.ts';
import type { BudgetNodePort, BudgetNodeView, BudgetRef, Spending } from '../ports.ts';
import { findProfile } from '../profiles.ts';
import { pushToPlans } from '../push-to-plans.ts';
import type { Services } from '../services.ts';
import { planPort, readPlan } from './plan-handlers.ts';

/** Rows of a plan's log that are read at once. */
const LOG_PAGE = 500;

/** Tools and plans that one answer lists. */
const MAX_TOLD = 100;

/** What is spent at each level, and the caps above plans. A plan's own cap is raised by an approval or a guard revision. */
export const budgetHandlers = {
  '_cleveragents/budget/show': async (params, call, services) => {
    const { org } = call.principal;
    const day = params.day ?? dayOf(services.clock.nowMs());
    switch (params.level) {
      case 'org': {
        const stray = strayId(params, null);
        return stray === null ? ok(await nodeViewOf(org, { kind: 'org' }, day, services)) : err(stray);
      }
      case 'session': {
        const id = params.session_id;
        const stray = strayId(params, 'session_id');
        if (stray !== null || id === undefined) return err(stray ?? missing('session_id'));
        if ((await services.sessions.get(org, id)) === null) return err(notFound('session', id));
        return ok(await nodeViewOf(org, { kind: 'session', id }, day, services));
      }
      case 'profile': {
        const stray = strayId(params, 'profile');
        if (stray !== null || params.profile === undefined) return err(stray ?? missing('profile'));
        return profileView(org, params.profile, day, services);
      }
      case 'plan': {
        const stray = strayId(params, 'plan_id');
        if (stray !== null || params.plan_id === undefined) return err(stray ?? missing('plan_id'));
        return planBudget(params.plan_id, day, call, services);
      }
    }
  },

  '_cleveragents/budget/set': async (params, call, services) => {
    const { org } = call.principal;
    const change = capsChange(params);
    if (!change.ok) return change;
    const target = await targetOf(params, org, services);
    if (!target.ok) return target;
    const mayLoosen = await mayRaise(target.value, call, services);
    if (!mayLoosen.ok) return mayLoosen;
    const node = services.budgets.node(org, target.value);
    const known = await capsOf(node);
    const changed = CAP_WINDOWS.filter((window) => change.value[window] !== undefined && change.value[window] !== known[window]);
    const loosens = changed.some((window) => isLooserCap(change.value[window] ?? null, known[window]));
    if (loosens && !mayLoosen.value) return err(mayNotRaise(target.value, call));
    // Those below are told again, whether or not anything changes.
    let set = changed.length === 0 ? await node.setCaps(change.value, { mayLoosen: mayLoosen.value, again: true }) : null;
    if (set === null || (!set.ok && set.error === 'would_change')) {
      await call.changing();
      set = await node.setCaps(change.value, { mayLoosen: mayLoosen.value });
    }
    if (!set.ok) return err(mayNotRaise(target.value, call));
    // Calls that were held by the old cap are decided again; who cannot be told now goes on when it is asked to.
    const told = set.value.loosened
      ? await pushToPlans({ org, sessionId: target.value.kind === 'session' ? target.value.id : null }, { type: 'retry_budget' }, services)
      : null;
    return ok({
      budget: await nodeViewOf(org, target.value, dayOf(services.clock.nowMs()), services),
      unreached: [...set.value.unreached],
      not_told: [...(told?.unreached ?? [])],
    });
  },
} satisfies Pick<Handlers, '_cleveragents/budget/show' | '_cleveragents/budget/set'>;

/* ---------------------------------------------------------------- showing */

/** The levels above plans. */
export async function nodeViewOf(org: string, ref: BudgetRef, day: string, services: Services): Promise<BudgetView> {
  const [shown, told] = await Promise.all([services.budgets.node(org, ref).show(day), toldOf(org, ref, day, services)]);
  return viewOf(org, ref, shown, told);
}

/** What plans told of their spending. Asked for here and not by the nodes: those hear of money only, so that no decision waits for more. */
function toldOf(org: string, ref: BudgetRef, day: string, { planIndex }: Services): Promise<Spending> {
  return planIndex.spending({ org, of: ref, day, limit: MAX_TOLD });
}

function viewOf(org: string, ref: BudgetRef, shown: BudgetNodeView, told: Spending): BudgetView {
  const { day, caps, children, childCount, warnings } = shown;
  return {
    level: ref.kind,
    id: ref.kind === 'org' ? org : ref.kind === 'session' ? ref.id : ref.name,
    day,
    windows: caps.map(({ window, capMicroUsd, spentMicroUsd, leasedMicroUsd, remainingMicroUsd, excessMicroUsd }) => {
      const key = windowKey(window, day);
      return {
        window,
        cap_usd: usdOrNull(capMicroUsd),
        spent_usd: toUsd(spentMicroUsd),
        leased_usd: toUsd(leasedMicroUsd),
        // Told later than the leases are: what has ended meanwhile is not held any more.
        reserved_usd: toUsd(Math.min(told.reservedIn[window], leasedMicroUsd)),
        remaining_usd: usdOrNull(remainingMicroUsd),
        excess_usd: toUsd(excessMicroUsd),
        // What is leased and not used comes back when somebody needs it: used up is only what is spent.
        exceeded: capMicroUsd !== null && spentMicroUsd >= capMicroUsd,
        warned_at: warnings.find((mark) => mark.windowKey === key && mark.capMicroUsd === capMicroUsd)?.at ?? null,
      };
    }),
    children: children.map(({ child, spentMicroUsd, leasedMicroUsd }) => ({
      level: ref.kind === 'org' ? 'session' : 'plan',
      id: child,
      spent_usd: toUsd(spentMicroUsd),
      leased_usd: toUsd(leasedMicroUsd),
      reserved_usd: toUsd(Math.min(told.reservedByChild.get(child) ?? 0, leasedMicroUsd)),
    })),
    child_count: childCount,
    told: {
      ...amountsOf(told),
      tools: told.tools.map(({ tool, ...each }) => ({ tool, ...amountsOf(each) })),
      tool_count: told.toolCount,
      plans: told.plans.map(({ planId, sessionId, at, ...each }) => ({
        plan_id: planId,
        session_id: sessionId,
        ...amountsOf(each),
        as_of: at,
      })),
      plan_count: told.planCount,
    },
  };
}

const amountsOf = ({ spentMicroUsd: spent, reservedMicroUsd: reserved }: Pick<Spending, 'spentMicroUsd' | 'reservedMicroUsd'>) => ({
  spent_usd: toUsd(spent),
  reserved_usd: toUsd(reserved),
});

/** The cap shown is that of the profile as it is now; each plan is held to the one that is locked in it. */
async function profileView(org: string, name: string, day: string, services: Services): Promise<Result<BudgetView, Refusal>> {
  const found = await findProfile(name, org, services);
  if (!found.ok) return found;
  const ref = { kind: 'profile', name } as const;
  const [shown, told] = await Promise.all([services.budgets.node(org, ref).show(day), toldOf(org, ref, day, services)]);
  if (found.value === null && shown.childCount === 0 && told.planCount === 0) return err(notFound('profile', name));
  const capUsd = found.value?.document.safety.max_total_cost ?? null;
  const cap = capUsd === null ? null : parseCapUsd(capUsd);
  const capMicroUsd = cap?.ok === true ? cap.value : null;
  const caps = shown.caps.map((shownCap) => {
    const used = Math.max(shownCap.spentMicroUsd + shownCap.leasedMicroUsd, told.spentIn[shownCap.window]);
    // Both hear of charges a moment after they were made; of those under a built-in profile, which can have no limit, only the index does.
    const spentMicroUsd = Math.max(shownCap.spentMicroUsd, told.spentIn[shownCap.window]);
    const each = { ...shownCap, spentMicroUsd, leasedMicroUsd: used - spentMicroUsd };
    if (each.window !== 'total' || capMicroUsd === null) return each;
    return {
      ...each,
      capMicroUsd,
      remainingMicroUsd: Math.max(0, capMicroUsd - used),
      excessMicroUsd: Math.max(0, used - capMicroUsd),
    };
  });
  return ok(viewOf(org, ref, { ...shown, caps }, told));
}

async function planBudget(planId: string, day: string, call: CallContext, services: Services): Promise<Result<BudgetView, Refusal>> {
  const read = await readPlan(planId, call, services);
  if (!read.ok) return read;
  const { plan } = read.value;
  const { ledger } = plan;
  const cap = plan.policy.planCapMicroUsd;
  const capMicroUsd = effectiveLimit(cap, ledger.grantedMicroUsd);
  const spent = spentMicroUsd(ledger);
  const reserved = reservedMicroUsd(ledger);
  const byTool = new SpendByTool();
  const warnedAt = await foldLog(planId, plan.seq, byTool, call, services);
  return ok({
    level: 'plan',
    id: planId,
    day,
    windows: [
      {
        window: 'total',
        cap_usd: usdOrNull(capMicroUsd),
        spent_usd: toUsd(spent),
        leased_usd: toUsd(reserved),
        reserved_usd: toUsd(reserved),
        remaining_usd: capMicroUsd === null ? null : toUsd(Math.max(0, capMicroUsd - spent - reserved)),
        excess_usd: capMicroUsd === null ? 0 : toUsd(Math.max(0, spent + reserved - capMicroUsd)),
        exceeded: capMicroUsd !== null && spent + reserved >= capMicroUsd,
        warned_at: warnedAt,
      },
    ],
    children: [],
    child_count: 0,
    plan: {
      session_id: plan.sessionId,
      profile: plan.profile.name,
      ...(cap === null ? {} : { cap_source: cap.field }),
      granted_usd: toUsd(ledger.grantedMicroUsd),
      overrun_usd: toUsd(ledger.overrunMicroUsd),
      days: ledger.days.map(({ day: charged, chargedMicroUsd }) => ({ day: charged, spent_usd: toUsd(chargedMicroUsd) })),
      tools: byTool.result(ledger).map((each) => ({
        tool: each.tool,
        calls: each.calls,
        spent_usd: toUsd(each.spentMicroUsd),
        reserved_usd: toUsd(each.reservedMicroUsd),
      })),
    },
  });
}

/** The log up to the row at which the ledger was read, so that both say the same. Answers when the plan was warned. */
async function foldLog(
  planId: string,
  lastSeq: number,
  byTool: SpendByTool,
  call: CallContext,
  services: Services,
): Promise<string | null> {
  const port = planPort(planId, call, services);
  let warnedAt: string | null = null;
  for (let from = 0; from < lastSeq; ) {
    const rows = (await port.log(from, Math.min(LOG_PAGE, lastSeq - from))) ?? [];
    for (const row of rows) {
      byTool.add(row);
      if (row.type === 'budget_warning') warnedAt = row.at;
    }
    const last = rows.at(-1);
    if (last === undefined) break;
    from = last.seq;
  }
  return warnedAt;
}

/* ---------------------------------------------------------------- setting */

interface CapParams {
  readonly total_usd?: number | null;
  readonly monthly_usd?: number | null;
  readonly daily_usd?: number | null;
  readonly drop?: readonly CapWindow[];
}

function capsChange(params: CapParams): Result<Partial<Caps>, Refusal> {
  const change: { -readonly [W in keyof Caps]?: Caps[W] } = {};
  for (const [window, field] of [
    ['total', 'total_usd'],
    ['monthly', 'monthly_usd'],
    ['daily', 'daily_usd'],
  ] as const) {
    const isDropped = params.drop?.includes(window) === true;
    if (isDropped && params[field] !== undefined) return err(invalidField('drop', `${window} is set and dropped at once`));
    const given = isDropped ? null : params[field];
    if (given === undefined) continue;
    const cap = given === null ? ok(null) : parseCapUsd(given);
    if (!cap.ok) return err(invalidField(field, cap.error));
    change[window] = cap.value;
  }
  if (Object.keys(change).length === 0)
    return err(invalidField('total_usd', 'say at least one of total_usd, monthly_usd, daily_usd and drop'));
  return ok(change);
}

async function targetOf(
  params: { readonly level: 'org' | 'session'; readonly session_id?: string },
  org: string,
  services: Services,
): Promise<Result<Extract<BudgetRef, { kind: 'org' | 'session' }>, Refusal>> {
  const { level, session_id: id } = params;
  if (level === 'org') return id === undefined ? ok({ kind: 'org' }) : err(invalidField('session_id', 'is for the level session'));
  if (id === undefined) return err(missing('session_id'));
  return (await services.sessions.get(org, id)) === null ? err(notFound('session', id)) : ok({ kind: 'session', id });
}

/** The caps of a node as they are. */
async function capsOf(node: BudgetNodePort): Promise<Caps> {
  const { caps } = await node.show(null);
  const capOf = (wanted: CapWindow): number | null => caps.find(({ window }) => window === wanted)?.capMicroUsd ?? null;
  return { total: capOf('total'), monthly: capOf('monthly'), daily: capOf('daily') };
}

/**
 * Whether the caller may raise or remove caps. Those of the org stop every plan of it, so whoever may not decide about plans may not lower
 * them either. The key is read fresh: a right that was taken away a second ago is gone.
 */
async function mayRaise({ kind }: BudgetRef, call: CallContext, services: Services): Promise<Result<boolean, Refusal>> {
  const caller = await approvingCaller(call.principal, services);
  if (!caller.ok) return caller;
  if (kind === 'org' && !caller.value.mayApprove) {
    return err({
      kind: 'forbidden',
      message: 'setting the caps of the org is for keys of kind human with the role approver; raising or removing one needs admin',
      details: { needed_role: 'approver', needed_kind: 'human' },
    });
  }
  return ok(caller.value.mayApprove && (kind !== 'org' || hasRole(call.principal.roles, 'admin')));
}

function mayNotRaise({ kind }: BudgetRef, { principal }: CallContext): Refusal {
  const role = kind === 'org' ? 'admin' : 'approver';
  const message =
    principal.kind === 'human'
      ? `raising or removing a cap of the ${kind} needs the role ${role}`
      : `raising or removing a cap is for keys of kind human with the role ${role}; lowering one is not`;
  return { kind: 'forbidden', message, details: { needed_role: role, needed_kind: 'human' } };
}

const usdOrNull = (amountMicroUsd: number | null): number | null => (amountMicroUsd === null ? null : toUsd(amountMicroUsd));

const missing = (field: string): Refusal => invalidField(field, 'is required at this level');

/** An id that the level does not go by hides a mistake. */
function strayId(params: object, own: 'session_id' | 'plan_id' | 'profile' | null): Refusal | null {
  const stray = (['session_id', 'plan_id', 'profile'] as const).find((field) => field !== own && field in params);
  return stray === undefined ? null : invalidField(stray, 'does not go with this level');
}
