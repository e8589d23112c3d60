/**
 * Checkpoints: the tree of the plan's files, where its actor stood and its counters, as they were before an authorised write. Each is a part
 * of the row that authorises the write, so there is no write without one where they are on, and none is made for anything else.
 */
import type { Plan, Stored } from './plan.ts';

export interface CheckpointCounters {
  readonly attempt: number;
  readonly step: number;
  readonly callsInStep: number;
  readonly callsInInvocation: number;
  readonly decisions: number;
  readonly results: number;
  readonly spentMicroUsd: number;
}

/** What a row says of a checkpoint; where it stands in the log and when it was made, the row itself says. */
export interface CheckpointBody {
  /** `<plan id>.k<n>`. */
  readonly id: string;
  /** Digest of the files. Where writes go to the project at once: its head, exact once the write was made for one. */
  readonly tree: string;
  readonly phase: Plan['phase'];
  /** Where the actor stood before the step of the write. */
  readonly cursor: Stored;
  /** The newest decision that holds. */
  readonly decision: string | null;
  readonly counters: CheckpointCounters;
  /** The call before which it was made. */
  readonly call: string;
  readonly reason: string;
}

export interface Checkpoint extends CheckpointBody {
  readonly seq: number;
  readonly at: string;
}

/** So many of the newest are kept; the plan counts those that it let go. */
export const MAX_CHECKPOINTS = 50;

/** Why no checkpoint could be recorded now, as the words of a refusal; null: one can. An executor outside keeps its own files. */
export function checkpointObstacle({ external, sandbox, tree }: Pick<Plan, 'external' | 'sandbox' | 'tree'>): string | null {
  if (external !== undefined) return null;
  if (!sandbox.checkpointsEnabled) return 'checkpoints are off in this plan (sandbox.checkpoint.enabled)';
  return tree === null ? 'the state of its files is not known' : null;
}

/** What a reader of the plan sees of them. */
export interface PlanCheckpoints {
  readonly enabled: boolean;
  /** By the plan's policy as it is now. */
  readonly required: boolean;
  readonly made: number;
  /** The newest, oldest first. */
  readonly checkpoints: readonly Checkpoint[];
}

export function checkpointsOf({ sandbox, policy, checkpointsMade, checkpoints }: Plan): PlanCheckpoints {
  return { enabled: sandbox.checkpointsEnabled, required: policy.requireCheckpoints, made: checkpointsMade, checkpoints };
}

export function withCheckpoint(plan: Plan, checkpoint: Checkpoint): Plan {
  return {
    ...plan,
    checkpoints: [...plan.checkpoints, checkpoint].slice(-MAX_CHECKPOINTS),
    checkpointsMade: plan.checkpointsMade + 1,
  };
}
