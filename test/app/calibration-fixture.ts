import type { OutcomeRow } from '../../src/app/ports.ts';

/** Outcomes of an org: two sure calls that went well, one unsure that did not, a gate that its plan judges, and one that nothing has judged. */
export function calibrationFixture(org: string): readonly OutcomeRow[] {
  const of = { org, actor: 'scripted/steps', action: 'edit', project: 'site', at: '2026-11-30T12:00:00.000Z' } as const;
  const call = { ...of, kind: 'call', riskClass: 'read', gate: 'execute_command', threshold: 0.7, outcome: 'ok' } as const;
  const gate = { ...of, kind: 'gate', riskClass: 'write', gate: 'create_tool', threshold: 0.3, outcome: null } as const;
  return [
    { ...call, planId: 'p1', seq: 5, confidence: 0.8 },
    { ...call, planId: 'p1', seq: 8, confidence: 0.8, project: null },
    { ...call, planId: 'p2', seq: 5, confidence: 0.6, outcome: 'failed' },
    { ...gate, planId: 'p1', seq: 3, confidence: 0.6 },
    { ...gate, planId: 'p2', seq: 3, confidence: 0.5 },
    { ...of, kind: 'plan', planId: 'p1', seq: 9, outcome: 'ok' },
  ];
}
