import type {
  BudgetHolders,
  BudgetWarning,
  FloorWord,
  HeadsQuery,
  OrgLogHeads,
  OrgLogPage,
  OrgLogQuery,
  OrgPolicyStore,
} from '../app/ports.ts';
import type { HaltChange } from '../core/halt-word.ts';
import { budgetWarningEntry } from '../core/org-log/budget-warning.ts';
import type { OrgLogEntry } from '../core/org-log/org-event.ts';
import type { ListedPlan, PlanReport } from '../core/org-log/plan-report.ts';
import type { RefusalNote } from '../core/org-log/refusals.ts';
import type { LogPosition, LogStretch } from '../core/plan/chain.ts';
import type { HaltWord } from '../core/plan/plan.ts';
import { BudgetNodeBase } from './budget-node.ts';
import { BudgetRetry } from './node/budget-retry.ts';
import { earliest } from './node/earliest.ts';
import { HaltSwitch } from './node/halt-switch.ts';
import type { NodeLinks } from './node/node-runner.ts';
import type { NodeName } from './node/node-store.ts';
import type { TellPlans } from './node/tell-plans.ts';
import { OrgFloor } from './org/org-floor.ts';
import { OrgLogBook, type OrgLogParts, type Recorded } from './org/org-log.ts';

/** What an org's object needs from the rest of the deployment. */
export interface OrgObjectParts extends OrgLogParts {
  readonly holders: BudgetHolders;
  readonly tellPlans: TellPlans;
  readonly orgPolicies: Pick<OrgPolicyStore, 'latest'>;
}

/** One org: the budget node above its sessions, the kill switch of all its plans, the floor that binds them, and the org's own log. */
export abstract class OrgObjectBase<Env = unknown> extends BudgetNodeBase<Env> {
  private readonly orders = {
    nowMs: () => this.nowMs(),
    rearm: () => this.rearm(),
    report: (problem: string, cause: unknown) => this.report(problem, cause),
  };
  private readonly halts = new HaltSwitch(this.ctx.storage, 'org', this.orders);
  private readonly floors = new OrgFloor(this.ctx.storage, this.orders);
  private readonly retry = new BudgetRetry(this.ctx.storage, this.orders);
  private readonly log = new OrgLogBook(this.ctx.storage.sql, {
    parts: () => this.parts(),
    nowMs: () => this.nowMs(),
    transact: (write) => this.ctx.storage.transactionSync(write),
    background: (work) => this.ctx.waitUntil(work),
    changed: () => this.rearm(),
    report: (problem, cause) => this.report(problem, cause),
  });

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env, 'org');
  }

  /** Bindings of this deployment; called when something is needed, never in the constructor. */
  protected abstract parts(): OrgObjectParts;

  async haltWord(): Promise<HaltWord | null> {
    return this.halts.word();
  }

  async changeHalt({ org }: NodeName, change: HaltChange): Promise<HaltWord | null> {
    return this.halts.change({ org, sessionId: null }, change);
  }

  async haltTold(epoch: number): Promise<void> {
    this.halts.told(epoch);
  }

  async floor(): Promise<FloorWord | null> {
    return this.floors.word();
  }

  async announceFloor({ org }: NodeName, version: number): Promise<void> {
    this.floors.announce(org, version);
  }

  async putFloor(floor: FloorWord): Promise<void> {
    this.floors.put(floor);
  }

  async floorTold(version: number): Promise<void> {
    this.floors.told(version);
  }

  async logAppend(org: string, entries: readonly OrgLogEntry[]): Promise<Recorded> {
    return this.log.append(org, entries);
  }

  async logRefused(org: string, batchId: string, notes: readonly RefusalNote[]): Promise<Recorded> {
    return this.log.refused(org, batchId, notes);
  }

  async logReported(org: string, reports: readonly PlanReport[]): Promise<Recorded> {
    return this.log.reported(org, reports);
  }

  async logPage(query: OrgLogQuery): Promise<OrgLogPage | null> {
    return this.log.page(query);
  }

  async logVerify(org: string, from: LogPosition | null): Promise<LogStretch | null> {
    return this.log.verify(org, from);
  }

  async logHeads(options: HeadsQuery): Promise<OrgLogHeads | null> {
    return this.log.heads(options);
  }

  async logPlan(planId: string): Promise<ListedPlan | null> {
    return this.log.plan(planId);
  }

  async logPlans(afterPlanId: string, limit: number): Promise<readonly ListedPlan[]> {
    return this.log.plans(afterPlanId, limit);
  }

  protected override moreMoney({ org }: NodeName): void {
    this.retry.begin({ org, sessionId: null });
  }

  protected override async recordWarning({ org }: NodeName, mark: BudgetWarning): Promise<void> {
    this.log.append(org, [budgetWarningEntry({ level: 'org', id: org }, mark)]);
  }

  protected override async wake(): Promise<void> {
    await super.wake();
    await this.log.wake();
    const { tellPlans, orgPolicies } = this.parts();
    await this.halts.wake(tellPlans);
    await this.floors.wake(tellPlans, orgPolicies);
    await this.retry.wake(tellPlans);
  }

  protected override otherWakeAtMs(): number | null {
    return earliest(super.otherWakeAtMs(), this.halts.wakeAtMs(), this.floors.wakeAtMs(), this.retry.wakeAtMs(), this.log.wakeAtMs());
  }

  protected override links({ org }: NodeName): NodeLinks {
    const { holders } = this.parts();
    return { parent: null, recall: (sessionId, recall) => holders.recall(org, { kind: 'session', id: sessionId }, recall) };
  }
}
