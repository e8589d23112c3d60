/**
 * Everything wired: which adapters stand behind the ports, which tools and actors the plans get. Called by exactly two roots, the
 * Worker and the Worker under test.
 */
import { ulid } from 'ulid';
import { type CardSigner, makeCardSigner } from './a2a/card-signature.ts';
import { parseExtensionsHeader } from './a2a/extension.ts';
import { parseProtocolVersions } from './a2a/version.ts';
import { type IdentityTokens, makeIdentityTokens } from './app/identity-tokens.ts';
import { renderPush } from './app/push-notification.ts';
import { pushPage } from './app/push-to-plans.ts';
import type { Services } from './app/services.ts';
import { sweep } from './app/sweep.ts';
import type { ActionDocument } from './core/action.ts';
import { type AuditKeys, makeAuditKeys } from './core/audit/ed25519.ts';
import type { JsonObject } from './core/json.ts';
import { PUSH_TIMING } from './core/push/judge-attempt.ts';
import type { PushUrlRules } from './core/push/push-url.ts';
import type { Actor } from './engine/actors/actor.ts';
import { type ActorRegistry, makeActorRegistry } from './engine/actors/registry.ts';
import { outsideFactsOf } from './engine/outside-facts.ts';
import type { ToolPackage } from './engine/tools/tool.ts';
import { makeToolbox, type Toolbox } from './engine/tools/toolbox.ts';
import { WORKSPACE_TOOL_PACKAGE } from './engine/tools/workspace-tools.ts';
import { createApp } from './http/app.ts';
import type { TellPlans } from './objects/node/tell-plans.ts';
import { OrgObjectBase, type OrgObjectParts } from './objects/org-object.ts';
import { PlanObjectBase, type PlanObjectParts } from './objects/plan-object.ts';
import { ProfileBudgetObjectBase, type ProfileBudgetObjectParts } from './objects/profile-budget-object.ts';
import { SessionObjectBase, type SessionObjectParts } from './objects/session-object.ts';
import { sha256 } from './objects/sha256.ts';
import { makeBudgetHolders, makeBudgets } from './storage/budgets.ts';
import { makeActionStore } from './storage/d1/action-store.ts';
import { makeAuditStore } from './storage/d1/audit-store.ts';
import { makeConfigStore } from './storage/d1/config-store.ts';
import { makeIdempotencyStore } from './storage/d1/idempotency-store.ts';
import { makeKeyStore } from './storage/d1/key-store.ts';
import { makeOrgPolicyStore } from './storage/d1/org-policy-store.ts';
import { makeOutcomeStore } from './storage/d1/outcome-store.ts';
import { makePlanIndex } from './storage/d1/plan-index.ts';
import { makeProfileStore } from './storage/d1/profile-store.ts';
import { makeProjectStore } from './storage/d1/project-store.ts';
import { makeSessionStore } from './storage/d1/session-store.ts';
import { makeFloors, makeHalts } from './storage/halts.ts';
import { makeIssuerKeys } from './storage/issuer-keys.ts';
import { makeProjects } from './storage/objects.ts';
import { makeOrgLog } from './storage/org-log.ts';
import { makePlans } from './storage/plans.ts';
import { RefusalDesk } from './storage/refusal-desk.ts';

/** Bindings and variables of a deployment (wrangler.toml). */
export interface Env {
  readonly DB: D1Database;
  readonly PLANS: DurableObjectNamespace;
  readonly PROJECTS: DurableObjectNamespace;
  readonly SESSIONS: DurableObjectNamespace;
  readonly ORGS: DurableObjectNamespace;
  readonly PROFILE_BUDGETS: DurableObjectNamespace;
  /** Public origin of the deployment; absent: the origin of each request. */
  readonly PUBLIC_URL?: string;
  /** `open` answers without keys, on loopback only. */
  readonly AUTH_MODE?: string;
  readonly OPEN_ORG?: string;
  /** Org whose public actions are listed on the public Agent Card. */
  readonly PUBLIC_ORG?: string;
  /** Secret: Ed25519 private key as JWK that signs the heads of the logs. Absent: nothing is signed, and the health check says so. */
  readonly AUDIT_SIGNING_KEY?: string;
  /** Public keys that signed before the one in use, as a JSON list of JWKs: what they signed stays verifiable. */
  readonly AUDIT_PUBLIC_KEYS?: string;
  /** Secret: Ed25519 private key as JWK that signs the Agent Card, another one than that of the logs. Absent: the card is not signed. */
  readonly CARD_SIGNING_KEY?: string;
  /** The identity provider whose tokens are accepted beside keys: issuer, the audience that stands for this deployment, and its keys. */
  readonly OIDC_ISSUER?: string;
  readonly OIDC_AUDIENCE?: string;
  readonly OIDC_JWKS_URL?: string;
  /** What stands before the names of our claims; default `cleveragents_`. */
  readonly OIDC_CLAIM_PREFIX?: string;
  /** The org of all its tokens; absent: their claim says it. */
  readonly OIDC_ORG?: string;
  /** `off`: no extended card. */
  readonly EXTENDED_CARD?: string;
  /** Versions of A2A that are served, with commas between; by default every one that there is. */
  readonly A2A_VERSIONS?: string;
  /** `off`: no streams; the card says so, and methods that open one are refused. */
  readonly STREAMING?: string;
  /** `off`: no push notifications; the card says so, and webhooks are refused. */
  readonly PUSH_NOTIFICATIONS?: string;
  /** `on`: notifications may go to this machine, over http as well. For development and tests only. */
  readonly PUSH_LOOPBACK?: string;
  /** URIs, with commas between, of extensions that clients have to name in each message. */
  readonly REQUIRED_EXTENSIONS?: string;
}

export const VERSION = '0.1.0';

export interface Parts {
  readonly toolPackages: readonly ToolPackage[];
  /** Beside those that every deployment has. */
  readonly actors?: readonly Actor[];
}

export function compose({ toolPackages, actors: more }: Parts) {
  const actors = makeActorRegistry(more);
  const made = makeToolbox([WORKSPACE_TOOL_PACKAGE, ...toolPackages]);
  if (!made.ok) throw new Error(`the tools of this deployment contradict each other: ${made.error.message}`);
  const toolbox = made.value;

  /** One plan's object, with the adapters of this deployment. */
  class PlanObject extends PlanObjectBase<Env> {
    private connected: PlanObjectParts | null = null;

    protected override parts(): PlanObjectParts {
      this.connected ??= {
        index: makePlanIndex(this.env.DB),
        audit: makeAuditStore(this.env.DB),
        auditKeys: auditKeysOf(this.env),
        outcomes: makeOutcomeStore(this.env.DB),
        projects: makeProjects(this.env.PROJECTS),
        budgets: budgetsOf(this.env),
        halts: haltsOf(this.env),
        floors: makeFloors(this.env.ORGS),
        orgLog: makeOrgLog(this.env.ORGS, refusals),
        toolbox,
        findActor: actors.find,
        push: {
          render: renderPush,
          rules: pushRulesOf(this.env),
          timing: PUSH_TIMING,
          userAgent: `CleverAgents/${VERSION}`,
          fetch: (url, init) => fetch(url, init),
          random: () => Math.random(),
        },
      };
      return this.connected;
    }
  }

  /** One session: the budget node between its plans and the org. */
  class SessionObject extends SessionObjectBase<Env> {
    protected override parts(): SessionObjectParts {
      return {
        budgets: budgetsOf(this.env),
        holders: holdersOf(this.env),
        tellPlans: tellPlansOf(this.env),
        orgLog: makeOrgLog(this.env.ORGS, refusals),
      };
    }
  }

  /** One org: the budget node above its sessions. */
  class OrgObject extends OrgObjectBase<Env> {
    protected override parts(): OrgObjectParts {
      return {
        holders: holdersOf(this.env),
        tellPlans: tellPlansOf(this.env),
        orgPolicies: makeOrgPolicyStore(this.env.DB),
        audit: makeAuditStore(this.env.DB),
        auditKeys: auditKeysOf(this.env),
      };
    }
  }

  /** What an org spends under one profile. */
  class ProfileBudgetObject extends ProfileBudgetObjectBase<Env> {
    protected override parts(): ProfileBudgetObjectParts {
      return { holders: holdersOf(this.env), orgLog: makeOrgLog(this.env.ORGS, refusals) };
    }
  }

  const app = createApp((env: Env) => connect(env, toolbox, actors));
  const worker: ExportedHandler<Env> = {
    fetch: (request, env, context) => app.fetch(request, env, context),
    scheduled: async (_event, env) => sweep(connect(env, toolbox, actors)),
  };
  return { PlanObject, SessionObject, OrgObject, ProfileBudgetObject, worker, connect: (env: Env) => connect(env, toolbox, actors) };
}

function connect(env: Env, toolbox: Toolbox, actors: ActorRegistry): Services {
  return {
    clock: { nowMs: () => Date.now() },
    ids: { ulid: () => ulid(), secret: randomSecret },
    sha256,
    settings: {
      version: VERSION,
      publicUrl: env.PUBLIC_URL?.replace(/\/+$/, '') || null,
      authMode: env.AUTH_MODE === 'open' ? 'open' : 'bearer',
      openOrg: env.OPEN_ORG ?? 'dev',
      publicOrg: env.PUBLIC_ORG ?? null,
      protocolVersions: parseProtocolVersions(env.A2A_VERSIONS),
      streaming: env.STREAMING !== 'off',
      extendedCard: env.EXTENDED_CARD !== 'off',
      pushNotifications: env.PUSH_NOTIFICATIONS !== 'off',
      pushRules: pushRulesOf(env),
      requiredExtensions: parseExtensionsHeader(env.REQUIRED_EXTENSIONS),
    },
    keys: makeKeyStore(env.DB),
    actions: makeActionStore(env.DB),
    profiles: makeProfileStore(env.DB),
    orgPolicies: makeOrgPolicyStore(env.DB),
    projectStore: makeProjectStore(env.DB),
    projects: makeProjects(env.PROJECTS),
    sessions: makeSessionStore(env.DB),
    config: makeConfigStore(env.DB),
    planIndex: makePlanIndex(env.DB),
    audit: makeAuditStore(env.DB),
    auditKeys: auditKeysOf(env),
    cardSigner: cardSignerOf(env),
    tokens: tokensOf(env),
    idempotency: makeIdempotencyStore(env.DB),
    outcomes: makeOutcomeStore(env.DB),
    plans: makePlans(env.PLANS),
    orgLog: makeOrgLog(env.ORGS, refusals),
    halts: haltsOf(env),
    floors: makeFloors(env.ORGS),
    budgets: budgetsOf(env),
    catalogue: toolbox.catalogue,
    callFacts: (call, protectedPaths) => outsideFactsOf(toolbox, call, protectedPaths),
    actors: { names: () => actors.names, immediateReply: (action, args, message) => immediateReply(actors, action, args, message) },
  };
}

function pushRulesOf({ PUSH_LOOPBACK }: Env): PushUrlRules {
  return { allowLoopback: PUSH_LOOPBACK === 'on' };
}

function budgetsOf({ SESSIONS, ORGS, PROFILE_BUDGETS }: Env) {
  return makeBudgets({ sessions: SESSIONS, orgs: ORGS, profiles: PROFILE_BUDGETS });
}

function haltsOf({ SESSIONS, ORGS }: Env) {
  return makeHalts({ sessions: SESSIONS, orgs: ORGS });
}

function tellPlansOf({ DB, PLANS }: Env): TellPlans {
  const through = { planIndex: makePlanIndex(DB), plans: makePlans(PLANS) };
  return (of, afterPlanId, command) => pushPage(of, afterPlanId, command, through);
}

function holdersOf({ PLANS, SESSIONS }: Env) {
  return makeBudgetHolders({ plans: PLANS, sessions: SESSIONS });
}

/** Refusals on their way to the orgs' logs; what is counted together comes from all requests of the isolate. */
const refusals = new RefusalDesk({
  nowMs: () => Date.now(),
  newId: () => ulid(),
  wait: (ms) => scheduler.wait(ms),
  report: (problem, org, notes, cause) =>
    console.error(JSON.stringify({ level: 'error', problem, org, notes, cause: cause instanceof Error ? cause.message : String(cause) })),
});

/** The keys of the isolate: bindings do not change while it lives, and a key is imported once. */
let known: { readonly signingKey: string | undefined; readonly earlierKeys: string | undefined; readonly keys: AuditKeys } | null = null;

function auditKeysOf({ AUDIT_SIGNING_KEY: signingKey, AUDIT_PUBLIC_KEYS: earlierKeys }: Env): AuditKeys {
  if (known === null || known.signingKey !== signingKey || known.earlierKeys !== earlierKeys) {
    known = { signingKey, earlierKeys, keys: makeAuditKeys({ signingKey, earlierKeys, sha256 }) };
  }
  return known.keys;
}

/** What is made once of one or several variables, since it remembers keys and signatures. */
function oncePerIsolate<T>(make: (variables: readonly (string | undefined)[]) => T): (...variables: readonly (string | undefined)[]) => T {
  let made: { readonly of: string; readonly value: T } | null = null;
  return (...variables) => {
    const of = JSON.stringify(variables);
    if (made?.of !== of) made = { of, value: make(variables) };
    return made.value;
  };
}

const onceSigner = oncePerIsolate(([key]) => makeCardSigner(key, sha256));
const cardSignerOf = (env: Env): CardSigner => onceSigner(env.CARD_SIGNING_KEY);

const reportIssuer = (cause: unknown): void =>
  console.error(
    JSON.stringify({ level: 'error', problem: 'identity_provider', cause: cause instanceof Error ? cause.message : String(cause) }),
  );

const onceTokens = oncePerIsolate(([issuer, audience, jwksUrl, claimPrefix, org]) =>
  makeIdentityTokens(
    { issuer, audience, jwksUrl, claimPrefix, org },
    { keysAt: (url) => makeIssuerKeys({ url, nowMs: () => Date.now(), report: reportIssuer }), sha256 },
  ),
);
const tokensOf = (env: Env): IdentityTokens =>
  onceTokens(env.OIDC_ISSUER, env.OIDC_AUDIENCE, env.OIDC_JWKS_URL, env.OIDC_CLAIM_PREFIX, env.OIDC_ORG);

function immediateReply(
  actors: ActorRegistry,
  action: ActionDocument,
  args: JsonObject,
  { text, messageId }: { readonly text: string; readonly messageId: string },
): string | null {
  return (
    actors.find(action.actor)?.immediateReply?.({
      action,
      arguments: args,
      phase: 'execute',
      cursor: null,
      results: new Map(),
      input: text,
      messageIds: [messageId],
      guidance: [],
      earlierGuidance: [],
      attempt: 1,
      last: null,
    }) ?? null
  );
}

/** 256 bits, URL-safe. */
function randomSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}
