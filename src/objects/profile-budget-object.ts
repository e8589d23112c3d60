import type { BudgetHolders, BudgetWarning, OrgLog } from '../app/ports.ts';
import { budgetWarningEntry } from '../core/org-log/budget-warning.ts';
import { BudgetNodeBase } from './budget-node.ts';
import type { NodeLinks } from './node/node-runner.ts';
import type { NodeName } from './node/node-store.ts';

/** What the object of a profile's spending needs from the rest of the deployment. */
export interface ProfileBudgetObjectParts {
  readonly holders: BudgetHolders;
  readonly orgLog: Pick<OrgLog, 'append'>;
}

/**
 * What all plans of an org spend under one profile, for `safety.max_total_cost` (design section 7): a root above plans. The limit is the
 * one in the profile document that is locked in each plan, and comes with its asks; an edit of the profile changes no plan that runs.
 */
export abstract class ProfileBudgetObjectBase<Env = unknown> extends BudgetNodeBase<Env> {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env, 'profile');
  }

  /** Bindings of this deployment; called when something is needed, never in the constructor. */
  protected abstract parts(): ProfileBudgetObjectParts;

  protected override recordWarning({ org, id }: NodeName, mark: BudgetWarning): Promise<void> {
    return this.parts().orgLog.append(org, budgetWarningEntry({ level: 'profile', id }, mark));
  }

  protected override links({ org, id }: NodeName): NodeLinks {
    const { holders } = this.parts();
    return {
      parent: null,
      recall: (planId, recall) => holders.recall(org, { kind: 'plan', id: planId, from: { kind: 'profile', name: id } }, recall),
    };
  }
}
