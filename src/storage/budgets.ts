import type {
  BudgetCapsChange,
  BudgetCapsOptions,
  BudgetHolders,
  BudgetNodePort,
  BudgetNodeView,
  BudgetRef,
  Budgets,
} from '../app/ports.ts';
import type { Ask, AskAnswer, Close, Freed, Recall, RecallReply } from '../core/budget/protocol.ts';
import type { Day } from '../core/budget/window.ts';
import { objectName, reachObject as reach } from './objects.ts';

/** What a budget node's object offers over RPC. It is told by each call who it is: it stores that with the first write. */
interface NodeRpc {
  ask(name: Name, child: string, ask: Ask): Promise<AskAnswer>;
  freed(name: Name, child: string, freed: Freed): Promise<void>;
  close(name: Name, child: string, close: Close): Promise<void>;
  setCaps(name: Name, change: BudgetCapsChange, options: BudgetCapsOptions): ReturnType<BudgetNodePort['setCaps']>;
  show(day: Day | null): Promise<BudgetNodeView>;
}

interface Name {
  readonly org: string;
  readonly id: string;
}

export interface NodeNamespaces {
  readonly sessions: DurableObjectNamespace;
  readonly orgs: DurableObjectNamespace;
  readonly profiles: DurableObjectNamespace;
}

/** The budget nodes of all orgs. Reaching one makes nothing. */
export function makeBudgets(namespaces: NodeNamespaces): Budgets {
  return {
    node(org, ref): BudgetNodePort {
      const { namespace, id } = addressOf(namespaces, org, ref);
      const name = { org, id };
      // A stub stays broken after its object was reset, so each call takes a new one.
      const open = (): NodeRpc => namespace.getByName(objectName(org, ref.kind, id)) as unknown as NodeRpc;
      return {
        ask: (child, ask) => reach('budgets.ask', () => open().ask(name, child, ask)),
        freed: (child, freed) => reach('budgets.freed', () => open().freed(name, child, freed)),
        close: (child, close) => reach('budgets.close', () => open().close(name, child, close)),
        setCaps: (change, options) => reach('budgets.setCaps', () => open().setCaps(name, change, options)),
        show: (day) => reach('budgets.show', () => open().show(day)),
      };
    },
  };
}

/** Those that hold money of a node, for its recalls. */
export function makeBudgetHolders(namespaces: {
  readonly plans: DurableObjectNamespace;
  readonly sessions: DurableObjectNamespace;
}): BudgetHolders {
  return {
    recall(org, holder, recall) {
      const namespace = holder.kind === 'plan' ? namespaces.plans : namespaces.sessions;
      const stub: unknown = namespace.getByName(objectName(org, holder.kind, holder.id));
      return reach(`budgets.recall.${holder.kind}`, () =>
        holder.kind === 'plan'
          ? (stub as PlanRpc).recall(holder.from, recall)
          : (stub as SessionRpc).recall({ org, id: holder.id }, recall),
      );
    },
  };
}

interface PlanRpc {
  recall(from: BudgetRef, recall: Recall): Promise<RecallReply | null>;
}

interface SessionRpc {
  recall(name: Name, recall: Recall): Promise<RecallReply>;
}

function addressOf({ sessions, orgs, profiles }: NodeNamespaces, org: string, ref: BudgetRef) {
  switch (ref.kind) {
    case 'session':
      return { namespace: sessions, id: ref.id };
    case 'org':
      return { namespace: orgs, id: org };
    case 'profile':
      return { namespace: profiles, id: ref.name };
  }
}
