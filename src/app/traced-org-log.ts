import type { OrgLog } from './ports.ts';

/** The org's log as one request reaches it: whatever it has recorded there names its trace id. */
export function tracedOrgLog(orgLog: OrgLog, traceId: string): OrgLog {
  return {
    ...orgLog,
    append: (org, { id, fact }) => orgLog.append(org, { id, fact: { ...fact, trace_id: traceId } }),
    refused: (org, note) => orgLog.refused(org, { ...note, traceIds: [traceId] }),
  };
}
