import type { CardSigner } from '../a2a/card-signature.ts';
import type { ProtocolVersion } from '../a2a/version.ts';
import type { ActionDocument } from '../core/action.ts';
import type { AuditKeys } from '../core/audit/ed25519.ts';
import type { Sha256 } from '../core/digest.ts';
import type { JsonObject } from '../core/json.ts';
import type { CallFacts } from '../core/plan/commands.ts';
import type { PushUrlRules } from '../core/push/push-url.ts';
import type { ToolCatalogue } from '../core/tool.ts';
import type { IdentityTokens } from './identity-tokens.ts';
import type {
  ActionStore,
  AuditStore,
  Budgets,
  Clock,
  ConfigStore,
  Floors,
  Halts,
  IdempotencyStore,
  Ids,
  KeyStore,
  OrgLog,
  OrgPolicyStore,
  OutcomeStore,
  PlanIndex,
  Plans,
  ProfileStore,
  ProjectStore,
  Projects,
  SessionStore,
} from './ports.ts';

/** What is known of the actors of this deployment, without running one. */
export interface ActorDirectory {
  names(): readonly string[];
  /** The answer to a first message that needs no plan, or null when it needs one. */
  immediateReply(action: ActionDocument, args: JsonObject, message: { readonly text: string; readonly messageId: string }): string | null;
}

/** Settings of the deployment, read once at the root. */
export interface Settings {
  readonly version: string;
  /** Public origin, without a trailing slash; null: the origin of each request. */
  readonly publicUrl: string | null;
  /** `open` answers without keys as the org's development admin, on loopback only (conformance suites). */
  readonly authMode: 'bearer' | 'open';
  /** Org that `open` requests belong to. */
  readonly openOrg: string;
  /** The org whose public actions are on the public card; null: none are. Another org cannot speak for the deployment. */
  readonly publicOrg: string | null;
  /** The A2A versions that are served, the preferred one first. */
  readonly protocolVersions: readonly ProtocolVersion[];
  /** Whether answers can be streamed; the card says so. */
  readonly streaming: boolean;
  /** Whether callers get an extended card. */
  readonly extendedCard: boolean;
  /** Whether webhooks can be registered, and where they may lead. */
  readonly pushNotifications: boolean;
  readonly pushRules: PushUrlRules;
  /** Extensions, by URI, that a client has to name in each message. */
  readonly requiredExtensions: readonly string[];
}

/** Everything the service works with; made by `compose`, replaced piece by piece in nothing but other deployments. */
export interface Services {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly sha256: Sha256;
  readonly settings: Settings;
  readonly keys: KeyStore;
  readonly actions: ActionStore;
  readonly profiles: ProfileStore;
  readonly orgPolicies: OrgPolicyStore;
  readonly projectStore: ProjectStore;
  readonly projects: Projects;
  readonly sessions: SessionStore;
  readonly config: ConfigStore;
  readonly planIndex: PlanIndex;
  readonly audit: AuditStore;
  readonly auditKeys: AuditKeys;
  readonly cardSigner: CardSigner;
  readonly tokens: IdentityTokens;
  readonly idempotency: IdempotencyStore;
  readonly outcomes: OutcomeStore;
  readonly plans: Plans;
  readonly orgLog: OrgLog;
  readonly halts: Halts;
  readonly floors: Floors;
  readonly budgets: Budgets;
  readonly catalogue: ToolCatalogue;
  /**
   * What the arguments of a call of a registered tool say of it, beside any tree; null: nothing. `protectedPaths`: those of the project that
   * its plan works on; null: the usual ones, below any directory.
   */
  readonly callFacts: (
    call: { readonly toolName: string; readonly arguments: JsonObject; readonly isWrite: boolean | null },
    protectedPaths: readonly string[] | null,
  ) => CallFacts | null;
  readonly actors: ActorDirectory;
}
