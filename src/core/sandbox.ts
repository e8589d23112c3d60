/** What stands between a plan and its project, as the settings of the project, else of the org, say; locked in a plan when it is made. */
export interface SandboxSettings {
  /** `workspace`: changes wait in the plan until they are applied. `none`: each write goes to the project's head at once. */
  readonly strategy: SandboxStrategy;
  /** Whether a checkpoint is recorded with each authorised write. */
  readonly checkpointsEnabled: boolean;
}

export const SANDBOX_STRATEGIES = ['workspace', 'none'] as const;
export type SandboxStrategy = (typeof SANDBOX_STRATEGIES)[number];

/** Where nothing is set. */
export const DEFAULT_SANDBOX: SandboxSettings = { strategy: 'workspace', checkpointsEnabled: true };
