import { maskText } from '../../core/audit/mask.ts';
import { ok } from '../../core/result.ts';
import { examinePlan, type PlanCheck, type PlanCheckName } from '../examine-plan.ts';
import { effectiveOf } from '../guard-view.ts';
import type { Handlers } from '../handler.ts';

/** Asks what `plan/use` asks, by the same code, and makes nothing of it. */
export const preflightHandlers = {
  '_cleveragents/plan/preflight': async (params, call, services) => {
    const examined = await examinePlan(
      {
        actionName: params.action_name,
        arguments: params.arguments ?? {},
        project: params.project,
        automationProfile: params.automation_profile,
        environmentProfile: params.environment_profile,
        guardrails: params.guardrails,
        fieldPrefix: '',
      },
      // Without a session the plan would get one of its own, which nothing has halted.
      params.session_id ?? services.ids.ulid(),
      call.principal,
      services,
    );
    const { checks, profile, project, sandbox, policy } = examined;
    const binding = profile === null || policy === null ? null : effectiveOf(profile.document, policy);
    return ok({
      would_run: checks.every(isPassed),
      profile: profile?.name ?? null,
      profile_level: profile?.level ?? null,
      thresholds: binding?.thresholds ?? null,
      effective: binding?.effective ?? null,
      project: project?.name ?? null,
      sandbox_strategy: sandbox?.strategy ?? null,
      checkpoints_enabled: sandbox?.checkpointsEnabled ?? null,
      checks: checks.map(viewOf),
    });
  },
} satisfies Pick<Handlers, '_cleveragents/plan/preflight'>;

const isPassed = ({ refusal, waitsFor }: PlanCheck): boolean => refusal === null && waitsFor === null;

function viewOf(check: PlanCheck) {
  const { name, refusal, waitsFor } = check;
  if (isPassed(check)) return { name, ok: true };
  if (refusal === null) return { name, ok: false, reason: `not checked: it depends on the check '${waitsFor ?? ''}', which fails` };
  const [reason = '', told] = maskText(refusal.message).split(/\s*Remediation: /, 2);
  const remediation = told ?? (refusal.kind === 'too_large' ? SEND_LESS : REMEDIATIONS[name]);
  return { name, ok: false, reason, remediation };
}

const SEND_LESS = 'Send less: put long contents into files of the project and name them.';

/** Where the refusal itself does not say what helps. */
const REMEDIATIONS: Readonly<Record<PlanCheckName, string>> = {
  action: 'Name an action that exists (action/list), or add it.',
  arguments: 'Give the arguments that the schema of the action asks for (action/show).',
  guardrails: 'Correct the field that is named.',
  project: 'Name a project that exists (project/list), or create it.',
  profile: 'Name a profile that exists (profile/list), at the level that is named.',
  policy: 'Correct the stored setting that is named.',
  sandbox: 'Use sandbox.strategy workspace, or a profile that requires no sandbox.',
  checkpoints: 'Enable checkpoints, or use a profile that requires none.',
  halts: 'Clear the halt (halt/clear) once its reason is gone.',
  budget: 'Raise the cap of the org.',
  session: 'Use another session_id.',
};
