/**
 * The tables of D1, as Drizzle sees them. `migrations/` is the authority (and append-only): two things in it have no form here,
 * `WITHOUT ROWID` and the bytes of generated names; a test compares the columns of both.
 *
 * Times are ISO 8601 in UTC with milliseconds, so that they sort as text.
 */
import { sql } from 'drizzle-orm';
import { index, integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import type { AuditRow, SessionRecord } from '../../app/ports.ts';
import type { JsonObject } from '../../core/json.ts';
import type { Verdict } from '../../core/plan/outcomes.ts';
import type { KeyKind, Role } from '../../core/principal.ts';
import type { ThresholdName } from '../../core/profile.ts';
import type { RiskClass } from '../../core/tool.ts';

export const orgs = sqliteTable('orgs', {
  id: text().primaryKey(),
  createdAt: text('created_at').notNull(),
});

export const keys = sqliteTable(
  'keys',
  {
    id: text().primaryKey(),
    org: text().notNull(),
    name: text().notNull(),
    kind: text().$type<KeyKind>().notNull(),
    roles: text({ mode: 'json' }).$type<readonly Role[]>().notNull(),
    secretHash: text('secret_hash').notNull(),
    createdAt: text('created_at').notNull(),
    expiresAt: text('expires_at'),
    revokedAt: text('revoked_at'),
  },
  (table) => [index('keys_by_org').on(table.org, table.createdAt, table.id)],
);

export const actions = sqliteTable(
  'actions',
  {
    org: text().notNull(),
    name: text().notNull(),
    version: integer().notNull(),
    body: text({ mode: 'json' }).$type<JsonObject>().notNull(),
    /** Derived from `body.public` at every write. */
    isPublic: integer('is_public', { mode: 'boolean' }).notNull(),
    createdAt: text('created_at').notNull(),
    updatedAt: text('updated_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.org, table.name] }),
    index('actions_public').on(table.name, table.org).where(sql`is_public = 1`),
  ],
);

/** Versions of custom profiles, only ever added. A null document is a deletion. `WITHOUT ROWID`. */
export const profileVersions = sqliteTable(
  'profile_versions',
  {
    org: text().notNull(),
    name: text().notNull(),
    version: integer().notNull(),
    document: text({ mode: 'json' }).$type<JsonObject>(),
    defaulted: text({ mode: 'json' }).$type<readonly string[]>().notNull(),
    createdAt: text('created_at').notNull(),
    savedAt: text('saved_at').notNull(),
    savedBy: text('saved_by').notNull(),
  },
  (table) => [primaryKey({ columns: [table.org, table.name, table.version] })],
);

/** Versions of the policy floor of each org, only ever added. `WITHOUT ROWID`. */
export const orgPolicyVersions = sqliteTable(
  'org_policy_versions',
  {
    org: text().notNull(),
    version: integer().notNull(),
    policy: text({ mode: 'json' }).$type<JsonObject>().notNull(),
    savedAt: text('saved_at').notNull(),
    savedBy: text('saved_by').notNull(),
  },
  (table) => [primaryKey({ columns: [table.org, table.version] })],
);

export const projects = sqliteTable(
  'projects',
  {
    org: text().notNull(),
    name: text().notNull(),
    settings: text({ mode: 'json' }).$type<JsonObject>().notNull(),
    createdAt: text('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.org, table.name] })],
);

export const sessions = sqliteTable(
  'sessions',
  {
    org: text().notNull(),
    id: text().notNull(),
    actorName: text('actor_name'),
    status: text().$type<SessionRecord['status']>().notNull(),
    createdAt: text('created_at').notNull(),
    closedAt: text('closed_at'),
    createdBy: text('created_by').notNull(),
  },
  (table) => [primaryKey({ columns: [table.org, table.id] })],
);

export const configValues = sqliteTable(
  'config_values',
  {
    org: text().notNull(),
    scope: text().notNull(),
    key: text().notNull(),
    /** JSON text; written by hand, since the value may be JSON's null. */
    value: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.org, table.scope, table.key] })],
);

/** The columns of a plan's row; its earlier states (`plan_moves`) have the same. */
const planColumns = () => ({
  org: text().notNull(),
  planId: text('plan_id').notNull(),
  sessionId: text('session_id').notNull(),
  actionName: text('action_name').notNull(),
  project: text(),
  profile: text().notNull(),
  phase: text().notNull(),
  state: text().notNull(),
  taskState: text('task_state').notNull(),
  createdBy: text('created_by').notNull(),
  createdAt: text('created_at').notNull(),
  updatedAt: text('updated_at').notNull(),
  statusAt: text('status_at').notNull(),
  seq: integer().notNull(),
  wakeAt: text('wake_at'),
  pendingApprovals: integer('pending_approvals').notNull(),
});

export const plans = sqliteTable('plans', planColumns(), (table) => [
  primaryKey({ columns: [table.org, table.planId] }),
  index('plans_by_status').on(table.org, sql`status_at desc`, table.planId),
  index('plans_by_session').on(table.org, table.sessionId, sql`status_at desc`, table.planId),
  index('plans_by_task_state').on(table.org, table.taskState, sql`status_at desc`, table.planId),
  index('plans_overdue').on(table.wakeAt).where(sql`wake_at is not null`),
]);

/**
 * What a listed plan looked like before it changed, kept for as long as a page token is good (see plan-list.ts). A null or
 * zero `seq`: the plan was not listed before the change.
 */
export const planMoves = sqliteTable(
  'plan_moves',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    movedAtSeconds: integer('moved_at_seconds').notNull(),
    org: text().notNull(),
    planId: text('plan_id').notNull(),
    sessionId: text('session_id'),
    actionName: text('action_name'),
    project: text(),
    profile: text(),
    phase: text(),
    state: text(),
    taskState: text('task_state'),
    createdBy: text('created_by'),
    createdAt: text('created_at'),
    updatedAt: text('updated_at'),
    statusAt: text('status_at'),
    seq: integer(),
    wakeAt: text('wake_at'),
    pendingApprovals: integer('pending_approvals'),
  },
  (table) => [index('plan_moves_by_plan').on(table.org, table.planId, table.id)],
);

/** `WITHOUT ROWID` and no second index: one row written per entry. */
export const auditEntries = sqliteTable(
  'audit_entries',
  {
    org: text().notNull(),
    planId: text('plan_id').notNull(),
    seq: integer().notNull(),
    at: text().notNull(),
    eventType: text('event_type').notNull(),
    guardName: text('guard_name').notNull(),
    result: text().$type<AuditRow['result']>().notNull(),
    reason: text(),
    actorKind: text('actor_kind').notNull(),
    actorId: text('actor_id').notNull(),
    context: text({ mode: 'json' }).$type<JsonObject>().notNull(),
    hash: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.org, table.planId, table.seq] })],
);

/** Decisions with the confidence that they were made by, and what became of them. `WITHOUT ROWID`; the index holds calls only. */
export const outcomes = sqliteTable(
  'outcomes',
  {
    org: text().notNull(),
    planId: text('plan_id').notNull(),
    seq: integer().notNull(),
    kind: text().$type<'call' | 'gate'>().notNull(),
    riskClass: text('risk_class').$type<RiskClass>().notNull(),
    actor: text().notNull(),
    action: text().notNull(),
    project: text(),
    confidence: real(),
    threshold: real(),
    gate: text().$type<ThresholdName>(),
    /** Null: as the plan stands (`plan_outcomes`). */
    outcome: text().$type<Verdict>(),
    at: text().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.org, table.planId, table.seq] }),
    index('outcomes_of_calls')
      .on(table.org, table.project, table.actor, table.riskClass, table.at, table.planId, table.seq)
      .where(sql`kind = 'call'`),
  ],
);

/** How each plan stands that was applied, failed or was given up. `WITHOUT ROWID`. */
export const planOutcomes = sqliteTable(
  'plan_outcomes',
  {
    org: text().notNull(),
    planId: text('plan_id').notNull(),
    seq: integer().notNull(),
    action: text().notNull(),
    project: text(),
    outcome: text().$type<Verdict>().notNull(),
    at: text().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.org, table.planId] }),
    index('plan_outcomes_recent').on(table.org, table.action, table.project, table.at, table.planId),
  ],
);

/**
 * What each plan has told of its spending, by the day of the reservation and by tool (blank: none). `profile` is that of a plan that counts
 * against its profile's budget, and null otherwise. `WITHOUT ROWID`.
 */
export const planSpend = sqliteTable(
  'plan_spend',
  {
    org: text().notNull(),
    planId: text('plan_id').notNull(),
    day: text().notNull(),
    tool: text().notNull(),
    sessionId: text('session_id').notNull(),
    profile: text(),
    spent: integer().notNull(),
    reserved: integer().notNull(),
    at: text().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.org, table.planId, table.day, table.tool] }),
    index('plan_spend_by_session').on(table.org, table.sessionId),
    index('plan_spend_by_profile').on(table.org, table.profile).where(sql`profile is not null`),
  ],
);

export const idempotency = sqliteTable(
  'idempotency',
  {
    org: text().notNull(),
    keyId: text('key_id').notNull(),
    idempotencyKey: text('idempotency_key').notNull(),
    bodyDigest: text('body_digest').notNull(),
    planId: text('plan_id').notNull(),
    createdAt: text('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.org, table.keyId, table.idempotencyKey] }), index('idempotency_by_age').on(table.createdAt)],
);
