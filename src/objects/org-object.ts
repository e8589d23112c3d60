import type { BudgetHolders, FloorWord, OrgPolicyStore } from '../app/ports.ts';
import type { HaltChange } from '../core/halt-word.ts';
import type { HaltWord } from '../core/plan/plan.ts';
import { BudgetNodeBase } from './budget-node.ts';
import { earliest } from './node/earliest.ts';
import { HaltSwitch } from './node/halt-switch.ts';
import type { NodeLinks } from './node/node-runner.ts';
import type { NodeName } from './node/node-store.ts';
import type { TellPlans } from './node/tell-plans.ts';
import { OrgFloor } from './org/org-floor.ts';

/** What an org's object needs from the rest of the deployment. */
export interface OrgObjectParts {
  readonly holders: BudgetHolders;
  readonly tellPlans: TellPlans;
  readonly orgPolicies: Pick<OrgPolicyStore, 'latest'>;
}

/** One org: the budget node above its sessions, the kill switch of all its plans, and the floor that binds them. */
export abstract class OrgObjectBase<Env = unknown> extends BudgetNodeBase<Env> {
  private readonly orders = {
    nowMs: () => this.nowMs(),
    rearm: () => this.rearm(),
    report: (problem: string, cause: unknown) => this.report(problem, cause),
  };
  private readonly halts = new HaltSwitch(this.ctx.storage, 'org', this.orders);
  private readonly floors = new OrgFloor(this.ctx.storage, this.orders);

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

  protected override async wake(): Promise<void> {
    await super.wake();
    const { tellPlans, orgPolicies } = this.parts();
    await this.halts.wake(tellPlans);
    await this.floors.wake(tellPlans, orgPolicies);
  }

  protected override otherWakeAtMs(): number | null {
    return earliest(super.otherWakeAtMs(), this.halts.wakeAtMs(), this.floors.wakeAtMs());
  }

  protected override links({ org }: NodeName): NodeLinks {
    const { holders } = this.parts();
    return { parent: null, recall: (sessionId, recall) => holders.recall(org, { kind: 'session', id: sessionId }, recall) };
  }
}
