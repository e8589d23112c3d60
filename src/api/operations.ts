import type * as z from 'zod';
import { actionAdd, actionList, actionShow } from './action.ts';
import { approvalDecide, approvalList } from './approval.ts';
import { auditExport, auditHead } from './audit.ts';
import { budgetSet, budgetShow } from './budget.ts';
import { profileCalibration } from './calibration.ts';
import { checkpointList } from './checkpoint.ts';
import { configGet, configList, configSet } from './config.ts';
import { planGuardAudit, planGuardAuditVerify, planGuardShow } from './guard.ts';
import {
  planGuardAllowlistAdd,
  planGuardAllowlistRemove,
  planGuardConfirmationAdd,
  planGuardConfirmationRemove,
  planGuardDenylistAdd,
  planGuardDenylistRemove,
  planGuardSet,
} from './guard-revision.ts';
import {
  guardAssociatePlanWithSession,
  guardAuthorize,
  guardCheckActorToolCalls,
  guardCheckBudgetHierarchy,
  guardCheckConfirmationRequired,
  guardCheckRetriesPerFailure,
  guardCheckStepLimit,
  guardCheckToolBudget,
  guardCheckWallClock,
  guardComplete,
  guardConfigure,
  guardEvaluate,
  guardGetAuditTrail,
  guardGetAuditTrailAsMetadata,
  guardLoadFromMetadata,
  guardSettle,
} from './guard-service.ts';
import { haltClear, haltSet, haltShow } from './halt.ts';
import { healthCheck, rpcDiscover } from './health.ts';
import { keyCreate, keyList, keyRevoke } from './key.ts';
import type { Operation } from './operation.ts';
import { orgPolicySet, orgPolicyShow } from './org.ts';
import { orgLogExport, orgLogHead, orgLogList, orgLogVerify } from './org-log.ts';
import {
  planApply,
  planArtifacts,
  planCancel,
  planDiff,
  planExecute,
  planList,
  planProfileShow,
  planPrompt,
  planStatus,
  planTree,
  planUse,
} from './plan.ts';
import { planPreflight } from './preflight.ts';
import { profileAdd, profileDelete, profileList, profileShow, profileUpdate } from './profile.ts';
import {
  projectBlobMissing,
  projectBlobPut,
  projectCommit,
  projectCreate,
  projectExport,
  projectFileRead,
  projectList,
  projectShow,
  projectTree,
} from './project.ts';
import { pushList, pushRetry } from './push.ts';
import { registryActionList, registryActorList, registryProjectList, registryToolList } from './registry.ts';
import { planRetire } from './retire.ts';
import { sessionClose, sessionCreate, sessionList, sessionShow } from './session.ts';

/** The one list of operations that are not A2A's own, by method name. What is not here is not served and not advertised. */
export const OPERATIONS = {
  '_cleveragents/plan/checkpoint/list': checkpointList,
  '_cleveragents/plan/preflight': planPreflight,
  '_cleveragents/plan/use': planUse,
  '_cleveragents/plan/execute': planExecute,
  '_cleveragents/plan/status': planStatus,
  '_cleveragents/plan/diff': planDiff,
  '_cleveragents/plan/artifacts': planArtifacts,
  '_cleveragents/plan/tree': planTree,
  '_cleveragents/plan/apply': planApply,
  '_cleveragents/plan/cancel': planCancel,
  '_cleveragents/plan/list': planList,
  '_cleveragents/plan/prompt': planPrompt,
  '_cleveragents/plan/guard/show': planGuardShow,
  '_cleveragents/plan/guard/audit': planGuardAudit,
  '_cleveragents/plan/guard/audit/verify': planGuardAuditVerify,
  '_cleveragents/plan/guard/set': planGuardSet,
  '_cleveragents/plan/guard/denylist/add': planGuardDenylistAdd,
  '_cleveragents/plan/guard/denylist/remove': planGuardDenylistRemove,
  '_cleveragents/plan/guard/allowlist/add': planGuardAllowlistAdd,
  '_cleveragents/plan/guard/allowlist/remove': planGuardAllowlistRemove,
  '_cleveragents/plan/guard/confirmation/add': planGuardConfirmationAdd,
  '_cleveragents/plan/guard/confirmation/remove': planGuardConfirmationRemove,
  '_cleveragents/budget/show': budgetShow,
  '_cleveragents/budget/set': budgetSet,
  '_cleveragents/halt/set': haltSet,
  '_cleveragents/halt/clear': haltClear,
  '_cleveragents/plan/retire': planRetire,
  '_cleveragents/halt/show': haltShow,
  '_cleveragents/push/list': pushList,
  '_cleveragents/push/retry': pushRetry,
  '_cleveragents/plan/profile/show': planProfileShow,
  '_cleveragents/audit/export': auditExport,
  '_cleveragents/audit/head': auditHead,
  '_cleveragents/guard/configure': guardConfigure,
  '_cleveragents/guard/authorize': guardAuthorize,
  '_cleveragents/guard/settle': guardSettle,
  '_cleveragents/guard/complete': guardComplete,
  '_cleveragents/guard/evaluate': guardEvaluate,
  '_cleveragents/guard/check_step_limit': guardCheckStepLimit,
  '_cleveragents/guard/check_tool_budget': guardCheckToolBudget,
  '_cleveragents/guard/check_wall_clock': guardCheckWallClock,
  '_cleveragents/guard/check_actor_tool_calls': guardCheckActorToolCalls,
  '_cleveragents/guard/check_retries_per_failure': guardCheckRetriesPerFailure,
  '_cleveragents/guard/check_confirmation_required': guardCheckConfirmationRequired,
  '_cleveragents/guard/check_budget_hierarchy': guardCheckBudgetHierarchy,
  '_cleveragents/guard/associate_plan_with_session': guardAssociatePlanWithSession,
  '_cleveragents/guard/get_audit_trail': guardGetAuditTrail,
  '_cleveragents/guard/get_audit_trail_as_metadata': guardGetAuditTrailAsMetadata,
  '_cleveragents/guard/load_from_metadata': guardLoadFromMetadata,
  '_cleveragents/action/add': actionAdd,
  '_cleveragents/action/show': actionShow,
  '_cleveragents/action/list': actionList,
  '_cleveragents/registry/action/list': registryActionList,
  '_cleveragents/registry/tool/list': registryToolList,
  '_cleveragents/registry/actor/list': registryActorList,
  '_cleveragents/registry/project/list': registryProjectList,
  '_cleveragents/profile/list': profileList,
  '_cleveragents/profile/show': profileShow,
  '_cleveragents/profile/add': profileAdd,
  '_cleveragents/profile/update': profileUpdate,
  '_cleveragents/profile/delete': profileDelete,
  '_cleveragents/profile/calibration': profileCalibration,
  '_cleveragents/approval/list': approvalList,
  '_cleveragents/approval/decide': approvalDecide,
  '_cleveragents/project/create': projectCreate,
  '_cleveragents/project/blob/missing': projectBlobMissing,
  '_cleveragents/project/blob/put': projectBlobPut,
  '_cleveragents/project/commit': projectCommit,
  '_cleveragents/project/show': projectShow,
  '_cleveragents/project/list': projectList,
  '_cleveragents/project/tree': projectTree,
  '_cleveragents/project/file/read': projectFileRead,
  '_cleveragents/project/export': projectExport,
  'session.create': sessionCreate,
  'session.list': sessionList,
  'session.show': sessionShow,
  'session.close': sessionClose,
  '_cleveragents/key/create': keyCreate,
  '_cleveragents/key/list': keyList,
  '_cleveragents/key/revoke': keyRevoke,
  '_cleveragents/config/get': configGet,
  '_cleveragents/config/set': configSet,
  '_cleveragents/config/list': configList,
  '_cleveragents/org/policy/show': orgPolicyShow,
  '_cleveragents/org/policy/set': orgPolicySet,
  '_cleveragents/org/log/list': orgLogList,
  '_cleveragents/org/log/verify': orgLogVerify,
  '_cleveragents/org/log/export': orgLogExport,
  '_cleveragents/org/log/head': orgLogHead,
  '_cleveragents/health/check': healthCheck,
  'rpc.discover': rpcDiscover,
} as const satisfies Record<string, Operation>;

export type OperationName = keyof typeof OPERATIONS;

/** Parameters after parsing, with defaults filled in: what a handler gets. */
export type ParamsOf<N extends OperationName> = z.output<(typeof OPERATIONS)[N]['params']>;

/** Parameters as a caller gives them. */
export type ParamsInputOf<N extends OperationName> = z.input<(typeof OPERATIONS)[N]['params']>;

export type ResultOf<N extends OperationName> = z.output<(typeof OPERATIONS)[N]['result']>;

export interface FoundOperation {
  readonly name: OperationName;
  readonly operation: Operation;
  /** The legacy name that was used; the answer then carries `_meta.deprecated`. */
  readonly alias?: string;
}

/** All names in the order of the list. */
export const OPERATION_NAMES = Object.keys(OPERATIONS) as readonly OperationName[];

const BY_METHOD: ReadonlyMap<string, FoundOperation> = new Map(
  OPERATION_NAMES.flatMap((name): [string, FoundOperation][] => {
    const operation: Operation = OPERATIONS[name];
    return [
      [name, { name, operation }],
      ...(operation.aliases ?? []).map((alias): [string, FoundOperation] => [alias, { name, operation, alias }]),
    ];
  }),
);

/** The operation of a method name or legacy name, or null. Never an object lookup: `constructor` is no method. */
export function findOperation(method: string): FoundOperation | null {
  return BY_METHOD.get(method) ?? null;
}

/** The deprecated names with their replacements. */
export const LEGACY_NAMES: ReadonlyMap<string, OperationName> = new Map(
  [...BY_METHOD].flatMap(([method, found]): [string, OperationName][] => (found.alias === undefined ? [] : [[method, found.name]])),
);
