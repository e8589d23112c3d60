import type { OrgLogEntry } from './org-event.ts';

/** A budget node that is nearly used up, as an entry of its org's log. Its id is the same however often it is told of one window and cap. */
export function budgetWarningEntry(
  of: { readonly level: 'org' | 'session' | 'profile'; readonly id: string },
  mark: { readonly window: string; readonly windowKey: string; readonly capMicroUsd: number; readonly usedMicroUsd: number },
): OrgLogEntry {
  const { window, windowKey, capMicroUsd, usedMicroUsd } = mark;
  return {
    id: JSON.stringify(['budget_warning', of.level, of.id, windowKey, capMicroUsd]),
    fact: {
      type: 'budget_warning',
      actor: { kind: 'system', id: 'budget' },
      data: { ...of, window, window_key: windowKey, cap_micro_usd: capMicroUsd, used_micro_usd: usedMicroUsd },
    },
  };
}
