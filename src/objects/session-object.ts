import type { BudgetHolders, Budgets, BudgetWarning, OrgLog } from '../app/ports.ts';
import type { Recall, RecallReply } from '../core/budget/protocol.ts';
import type { HaltChange } from '../core/halt-word.ts';
import { budgetWarningEntry } from '../core/org-log/budget-warning.ts';
import type { HaltWord } from '../core/plan/plan.ts';
import { BudgetNodeBase } from './budget-node.ts';
import { BudgetRetry } from './node/budget-retry.ts';
import { earliest } from './node/earliest.ts';
import { HaltSwitch } from './node/halt-switch.ts';
import type { NodeLinks } from './node/node-runner.ts';
import type { NodeName } from './node/node-store.ts';
import type { TellPlans } from './node/tell-plans.ts';

/** What a session's object needs from the rest of the deployment. */
export interface SessionObjectParts {
  readonly budgets: Budgets;
  readonly holders: BudgetHolders;
  readonly tellPlans: TellPlans;
  readonly orgLog: Pick<OrgLog, 'append'>;
}

/** One session: the budget node between its plans and the org, and the kill switch of its plans. */
export abstract class SessionObjectBase<Env = unknown> extends BudgetNodeBase<Env> {
  private readonly orders = {
    nowMs: () => this.nowMs(),
    rearm: () => this.rearm(),
    report: (problem: string, cause: unknown) => this.report(problem, cause),
  };
  private readonly halts = new HaltSwitch(this.ctx.storage, 'session', this.orders);
  private readonly retry = new BudgetRetry(this.ctx.storage, this.orders);

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env, 'session');
  }

  /** Bindings of this deployment; called when something is needed, never in the constructor. */
  protected abstract parts(): SessionObjectParts;

  /** The org wants back what is unused. */
  recall(name: NodeName, recall: Recall): Promise<RecallReply> {
    return this.node.recall(name, recall);
  }

  async haltWord(): Promise<HaltWord | null> {
    return this.halts.word();
  }

  async changeHalt({ org, id }: NodeName, change: HaltChange): Promise<HaltWord | null> {
    return this.halts.change({ org, sessionId: id }, change);
  }

  async haltTold(epoch: number): Promise<void> {
    this.halts.told(epoch);
  }

  protected override async wake(): Promise<void> {
    await super.wake();
    const { tellPlans } = this.parts();
    await this.halts.wake(tellPlans);
    await this.retry.wake(tellPlans);
  }

  protected override otherWakeAtMs(): number | null {
    return earliest(super.otherWakeAtMs(), this.halts.wakeAtMs(), this.retry.wakeAtMs());
  }

  protected override moreMoney({ org, id }: NodeName): void {
    this.retry.begin({ org, sessionId: id });
  }

  protected override recordWarning({ org, id }: NodeName, mark: BudgetWarning): Promise<void> {
    return this.parts().orgLog.append(org, budgetWarningEntry({ level: 'session', id }, mark));
  }

  protected override links({ org, id }: NodeName): NodeLinks {
    const { budgets, holders } = this.parts();
    return {
      parent: budgets.node(org, { kind: 'org' }),
      recall: (planId, recall) => holders.recall(org, { kind: 'plan', id: planId, from: { kind: 'session', id } }, recall),
    };
  }
}
