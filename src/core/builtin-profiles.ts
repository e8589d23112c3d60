import type { AutomationProfile, BuiltinProfileName, ThresholdName } from './profile.ts';

/** Thresholds in the column order of the table in the docs: decompose, create, select, edit, execute, c_file, delete, network, install, modify, approve. */
type Row = readonly [number, number, number, number, number, number, number, number, number, number, number];

const SAFE = { sandbox: true, checkpoints: true, unsafe: false } as const;

/** The eight profiles that everybody has (source: "Eight Built-In Profiles"). Their names are reserved. */
export const BUILTIN_PROFILES: ReadonlyMap<string, AutomationProfile> = new Map(
  (
    [
      builtin('manual', 'Human controls everything', [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], SAFE),
      builtin('review', 'Auto-strategize, human reviews before execute and apply', [0, 1, 1, 0, 0.8, 0.8, 0.8, 1, 0.8, 0, 0.8], SAFE),
      builtin(
        'supervised',
        'Auto through strategize and execute, human approves apply',
        [0, 0.2, 1, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0, 0.2],
        SAFE,
      ),
      builtin('cautious', 'Mostly auto with conservative thresholds', every(0.7), SAFE),
      builtin('trusted', 'Fully auto for well-tested domains', every(0.3), SAFE),
      builtin('auto', 'Fully automatic with safety nets', every(0), SAFE),
      { ...builtin('ci', 'CI/CD pipeline automation: nobody answers, so a question is a failure', every(0), SAFE), unattended: true },
      builtin('full-auto', 'Maximum autonomy, minimal guardrails: no sandbox, unsafe tools allowed', every(0), {
        sandbox: false,
        checkpoints: false,
        unsafe: true,
      }),
    ] satisfies readonly AutomationProfile[]
  ).map((profile) => [profile.name, profile]),
);

function every(threshold: number): Row {
  const t = threshold;
  return [t, t, t, t, t, t, t, t, t, t, t];
}

function builtin(
  name: BuiltinProfileName,
  description: string,
  [decompose, create, select, edit, execute, createFile, deleteContent, network, install, modify, approve]: Row,
  safety: { readonly sandbox: boolean; readonly checkpoints: boolean; readonly unsafe: boolean },
): AutomationProfile {
  const thresholds: Record<ThresholdName, number> = {
    decompose_task: decompose,
    create_tool: create,
    select_tool: select,
    edit_code: edit,
    execute_command: execute,
    create_file: createFile,
    delete_content: deleteContent,
    access_network: network,
    install_dependency: install,
    modify_config: modify,
    approve_plan: approve,
  };
  return {
    name,
    description,
    ...thresholds,
    safety: {
      require_sandbox: safety.sandbox,
      require_checkpoints: safety.checkpoints,
      allow_unsafe_tools: safety.unsafe,
      require_human_approval: false,
      allowed_skill_categories: [],
      max_cost_per_plan: null,
      max_total_cost: null,
      max_retries_per_step: 3,
      tainted_write_hosts: [],
    },
    guard: null,
  };
}
