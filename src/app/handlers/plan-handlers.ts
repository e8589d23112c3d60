import type { Artifact } from '../../a2a/model.ts';
import { maskText } from '../../core/audit/mask.ts';
import type { JsonObject, JsonValue } from '../../core/json.ts';
import type { ContentPart } from '../../core/plan/proposal.ts';
import { type PlanSnapshot, valueIn } from '../../core/plan/snapshot.ts';
import type { Refusal } from '../../core/refusal.ts';
import { notFound } from '../../core/refusal.ts';
import { err, ok, type Result } from '../../core/result.ts';
import { actorOf, approvingCaller } from '../caller.ts';
import { effectiveOf } from '../guard-view.ts';
import type { CallContext, Handlers } from '../handler.ts';
import { keptChanges } from '../kept-changes.ts';
import { planSummaryOf, planViewOf } from '../plan-view.ts';
import type { OutsideCommand, PlanPort } from '../ports.ts';
import { resumeIssue } from '../resume-issue.ts';
import type { Services } from '../services.ts';
import { bodyOf, startPlan } from '../start-plan.ts';
import { contentOf } from '../task-view.ts';

export const planHandlers = {
  '_cleveragents/plan/use': async (params, call, services) => {
    const key = params.idempotency_key ?? call.idempotencyKey;
    const { idempotency_key: _key, ...body } = params;
    const started = await startPlan(
      {
        actionName: params.action_name,
        arguments: params.arguments ?? {},
        project: params.project,
        automationProfile: params.automation_profile,
        environmentProfile: params.environment_profile,
        guardrails: params.guardrails,
        sessionId: params.session_id,
        input: '',
        message: null,
        idempotency: key === null ? null : { key, body: { operation: 'plan/use', ...bodyOf(body as unknown as JsonObject) } },
        fieldPrefix: '',
      },
      call.principal,
      services,
    );
    return shown(started, services);
  },

  '_cleveragents/plan/execute': async (params, call, services) => {
    const caller = await approvingCaller(call.principal, services);
    if (!caller.ok) return caller;
    const read = await readPlan(params.plan_id, call, services);
    if (!read.ok) return read;
    const issue = await resumeIssue(read.value, services);
    if (issue !== null) return err(issue);
    return shown(
      await commandPlan(params.plan_id, call, services, {
        type: 'execute',
        by: caller.value,
        digest: params.digest ?? null,
        head: await headOf(params.plan_id, call, services),
      }),
      services,
    );
  },

  '_cleveragents/plan/apply': async (params, call, services) => {
    const caller = await approvingCaller(call.principal, services);
    if (!caller.ok) return caller;
    return shown(
      await commandPlan(params.plan_id, call, services, {
        type: 'apply',
        by: caller.value,
        digest: params.digest ?? null,
        approve: params.approve ?? false,
      }),
      services,
    );
  },

  '_cleveragents/plan/cancel': async (params, call, services) =>
    shown(
      await commandPlan(params.plan_id, call, services, { type: 'cancel', by: actorOf(call.principal), reason: params.reason ?? null }),
      services,
    ),

  '_cleveragents/plan/prompt': async (params, call, services) => {
    // A plan that asks for its next step takes guidance as the answer, from somebody who may decide.
    const caller = await approvingCaller(call.principal, services);
    if (!caller.ok) return caller;
    return shown(
      await commandPlan(params.plan_id, call, services, {
        type: 'message',
        by: caller.value,
        messageId: services.ids.ulid(),
        parts: [{ kind: 'text', text: params.guidance }],
        metadata: null,
        text: params.guidance,
        answers: [],
        plain: null,
      }),
      services,
    );
  },

  '_cleveragents/plan/status': async (params, call, services) => shown(await readPlan(params.plan_id, call, services), services),

  '_cleveragents/plan/diff': async (params, call, services) => {
    const diff = await planPort(params.plan_id, call, services).diff();
    if (diff === null) return unknownPlan(params.plan_id);
    const binary = diff.files.filter((file) => file.binary).length;
    return ok({
      plan_id: params.plan_id,
      base: diff.base,
      result: diff.result,
      digest: diff.digest,
      files: diff.files.map((file) => ({ ...file })),
      totals: { files: diff.files.length, additions: diff.additions, deletions: diff.deletions, binary },
      patch: diff.patch,
    });
  },

  '_cleveragents/plan/artifacts': async (params, call, services) => {
    const read = await readPlan(params.plan_id, call, services);
    if (!read.ok) return read;
    const snapshot = read.value;
    const { plan } = snapshot;
    const isDraft = plan.action.apply === 'project' && plan.project !== null && plan.state !== 'applied';
    const made = plan.artifacts.map((artifact) => ({
      artifact_id: artifact.artifactId,
      ...(artifact.name === null ? {} : { name: artifact.name }),
      ...(artifact.description === null ? {} : { description: artifact.description }),
      draft: isDraft,
      parts: artifact.parts.map((part) => partView(valueIn(snapshot, part))),
    }));
    const kept = await keptChanges(snapshot, planPort(params.plan_id, call, services));
    return ok({
      artifacts: kept === null ? made : [...made, keptView(kept)],
      next_page_token: '',
    });
  },

  '_cleveragents/plan/tree': async (params, call, services) => {
    const read = await readPlan(params.plan_id, call, services);
    if (!read.ok) return read;
    const { decisions } = read.value.plan;
    return ok({
      plan_id: params.plan_id,
      root: decisions.find((decision) => decision.parentId === null)?.id ?? null,
      decisions: decisions.map((decision) => ({
        decision_id: decision.id,
        parent_id: decision.parentId,
        type: decision.type,
        question: maskText(decision.question),
        chosen: maskText(decision.chosen),
        alternatives: decision.alternatives.map(maskText),
        rationale: maskText(decision.rationale),
        confidence: decision.confidence?.value ?? null,
        components: decision.confidence === null ? null : { ...decision.confidence.components },
        threshold: decision.threshold,
        superseded: decision.superseded,
        step: decision.step,
        attempt: decision.attempt,
        created_at: decision.createdAt,
      })),
    });
  },

  '_cleveragents/plan/list': async (params, call, services) => {
    const page = await services.planIndex.list({
      org: call.principal.org,
      pageSize: params.page_size,
      ...(params.session_id === undefined ? {} : { sessionId: params.session_id }),
      ...(params.action_name === undefined ? {} : { actionName: params.action_name }),
      ...(params.project === undefined ? {} : { project: params.project }),
      ...(params.phase === undefined ? {} : { phase: params.phase }),
      ...(params.state === undefined ? {} : { state: params.state }),
      ...(params.page_token === undefined ? {} : { pageToken: params.page_token }),
    });
    if (!page.ok) return page;
    return ok({ plans: page.value.rows.map(planSummaryOf), next_page_token: page.value.nextPageToken, total_size: page.value.totalSize });
  },

  '_cleveragents/plan/profile/show': async (params, call, services) => {
    const read = await readPlan(params.plan_id, call, services);
    if (!read.ok) return read;
    const { plan } = read.value;
    const { profile, policy } = plan;
    return ok({
      plan_id: params.plan_id,
      name: profile.name,
      level: profile.level,
      digest: profile.digest,
      document: profile.document as unknown as JsonObject,
      ...effectiveOf(profile.document, policy, plan),
    });
  },
} satisfies Partial<Handlers>;

export function planPort(planId: string, call: CallContext, services: Services): PlanPort {
  return services.plans.plan(call.principal.org, planId);
}

/** A foreign id reaches an object of the caller's own org that holds nothing, so it answers exactly like an unknown one. */
export async function readPlan(planId: string, call: CallContext, services: Services): Promise<Result<PlanSnapshot, Refusal>> {
  const snapshot = await planPort(planId, call, services).read();
  return snapshot === null ? unknownPlan(planId) : ok(snapshot);
}

export async function commandPlan(
  planId: string,
  call: CallContext,
  services: Services,
  command: OutsideCommand,
): Promise<Result<PlanSnapshot, Refusal>> {
  return (await planPort(planId, call, services).command(command)) ?? unknownPlan(planId);
}

export function unknownPlan(planId: string): { readonly ok: false; readonly error: Refusal } {
  return err(notFound('plan', planId));
}

function shown(result: Result<PlanSnapshot, Refusal>, services: Services) {
  return result.ok ? ok(planViewOf(result.value, services.clock.nowMs())) : result;
}

/** The head of the plan's project, for a plan that is to start again on it. */
async function headOf(planId: string, call: CallContext, services: Services): Promise<string | null> {
  const snapshot = await planPort(planId, call, services).read();
  const project = snapshot?.plan.project;
  if (!project) return null;
  return (await services.projects.project(call.principal.org, project.name).head())?.head ?? null;
}

function keptView({ artifactId, name, description, parts, metadata }: Artifact) {
  return {
    artifact_id: artifactId,
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
    draft: metadata?.['draft'] === true,
    parts: (contentOf(parts) as readonly JsonValue[]).map(partView),
  };
}

function partView(value: JsonValue) {
  const part = value as unknown as ContentPart;
  return {
    ...(part.kind === 'text' ? { text: part.text } : {}),
    ...(part.kind === 'raw' ? { base64: part.base64 } : {}),
    ...(part.kind === 'url' ? { url: part.url } : {}),
    ...(part.kind === 'data' ? { data: part.data } : {}),
    ...(part.mediaType === undefined ? {} : { media_type: part.mediaType }),
    ...(part.filename === undefined ? {} : { filename: part.filename }),
    ...(part.metadata === undefined ? {} : { metadata: part.metadata }),
  };
}
