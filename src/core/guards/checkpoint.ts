import { isWriteClass } from '../tool.ts';
import type { Guard } from './guard.ts';

/** Under `require_checkpoints` nothing is written that could not be gone back from. No approval replaces the checkpoint. */
export const checkpointGuard: Guard = {
  name: 'checkpoint',
  events: { allowed: 'checkpoint_allowed', refused: 'checkpoint_blocked' },
  check: ({ requireCheckpoints }, { effectiveClass, shownName }, { noCheckpoint }) => {
    if (!requireCheckpoints || noCheckpoint == null || !isWriteClass(effectiveClass)) return null;
    return {
      reason: `Tool '${shownName}' needs a checkpoint before it writes, and ${noCheckpoint}. Remediation: make a new plan with checkpoints enabled, or use a profile without require_checkpoints.`,
      approval: 'none',
    };
  },
};
