import { isToolName } from '../names.ts';
import type { Guard } from './guard.ts';

/**
 * Only a tool that is known can run. It stands after the denylist, so that a disguised name of a denied tool is reported as denied,
 * and before the allowlist, so that no human is asked about something that cannot run.
 */
export const toolGuard: Guard = {
  name: 'tool',
  events: { allowed: 'tool_allowed', refused: 'tool_blocked' },
  check: (_policy, { toolName, canonicalName, shownName }) => {
    if (typeof toolName !== 'string')
      return { reason: `The tool's name must be text, not ${shownName}. Remediation: name a tool.`, approval: 'none' };
    if (toolName.trim() === '') return { reason: "The tool's name is blank. Remediation: name a tool.", approval: 'none' };
    if (canonicalName !== null) return null;
    const what = isToolName(toolName) ? 'is not known' : 'is not a usable name';
    return { reason: `Tool '${toolName}' ${what}. Remediation: use the name of a registered tool.`, approval: 'none' };
  },
};
