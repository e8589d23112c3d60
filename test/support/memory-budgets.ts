/**
 * The budget nodes of orgs outside workerd: the same runner and the same tables as their objects, over Node's SQLite. Only what the
 * platform gives (storage, alarms, one object per name) is replaced.
 */
import type { BudgetHolder, BudgetRef, Budgets } from '../../src/app/ports.ts';
import type { Recall, RecallReply } from '../../src/core/budget/protocol.ts';
import { NodeRunner } from '../../src/objects/node/node-runner.ts';
import { type NodeName, NodeStore } from '../../src/objects/node/node-store.ts';
import { makeSql } from './sqlite.ts';

export interface MemoryBudgets extends Budgets {
  /** Who answers recalls of plans; until then none is reached. */
  plans: ((org: string, holder: BudgetHolder & { readonly kind: 'plan' }, recall: Recall) => Promise<RecallReply | null>) | null;
}

export function makeMemoryBudgets(nowMs: () => number = Date.now): MemoryBudgets {
  const runners = new Map<string, NodeRunner>();
  const nameOf = (org: string, ref: BudgetRef): NodeName => ({
    org,
    id: ref.kind === 'org' ? org : ref.kind === 'session' ? ref.id : ref.name,
  });
  const runnerOf = (org: string, ref: BudgetRef): NodeRunner => {
    const key = JSON.stringify([org, ref.kind, nameOf(org, ref).id]);
    const known = runners.get(key) ?? makeRunner(ref.kind);
    runners.set(key, known);
    return known;
  };
  const makeRunner = (level: BudgetRef['kind']): NodeRunner =>
    new NodeRunner({
      level,
      store: new NodeStore(makeSql()),
      links: ({ org, id }) => ({
        parent: level === 'session' ? budgets.node(org, { kind: 'org' }) : null,
        recall: async (child, recall) => {
          if (level === 'org') return runnerOf(org, { kind: 'session', id: child }).recall({ org, id: child }, recall);
          return (
            (await budgets.plans?.(
              org,
              { kind: 'plan', id: child, from: level === 'session' ? { kind: 'session', id } : { kind: 'profile', name: id } },
              recall,
            )) ?? null
          );
        },
      }),
      nowMs,
      transact: (write) => write(),
      stepped: () => {},
      warned: () => {},
      moreMoney: () => {},
      report: (problem, cause) => console.error(problem, cause),
    });
  const budgets: MemoryBudgets = {
    plans: null,
    node(org, ref) {
      const node = runnerOf(org, ref);
      const name = nameOf(org, ref);
      return {
        ask: (child, ask) => node.ask(name, child, ask),
        freed: async (child, freed) => node.freed(name, child, freed),
        close: async (child, close) => node.close(name, child, close),
        setCaps: (change, options) => node.setCaps(name, change, options),
        show: async (day) => node.show(day),
      };
    },
  };
  return budgets;
}
