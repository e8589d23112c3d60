CREATE TABLE `actions` (
	`org` text NOT NULL,
	`name` text NOT NULL,
	`version` integer NOT NULL,
	`body` text NOT NULL,
	`is_public` integer NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	PRIMARY KEY(`org`, `name`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `actions_public` ON `actions` (`name`,`org`) WHERE is_public = 1;--> statement-breakpoint
CREATE TABLE `audit_entries` (
	`org` text NOT NULL,
	`plan_id` text NOT NULL,
	`seq` integer NOT NULL,
	`at` text NOT NULL,
	`event_type` text NOT NULL,
	`guard_name` text NOT NULL,
	`result` text NOT NULL,
	`reason` text,
	`actor_kind` text NOT NULL,
	`actor_id` text NOT NULL,
	`context` text NOT NULL,
	`hash` text NOT NULL,
	PRIMARY KEY(`org`, `plan_id`, `seq`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `config_values` (
	`org` text NOT NULL,
	`scope` text NOT NULL,
	`key` text NOT NULL,
	`value` text NOT NULL,
	PRIMARY KEY(`org`, `scope`, `key`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `idempotency` (
	`org` text NOT NULL,
	`key_id` text NOT NULL,
	`idempotency_key` text NOT NULL,
	`body_digest` text NOT NULL,
	`plan_id` text NOT NULL,
	`created_at` text NOT NULL,
	PRIMARY KEY(`org`, `key_id`, `idempotency_key`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `idempotency_by_age` ON `idempotency` (`created_at`);--> statement-breakpoint
CREATE TABLE `keys` (
	`id` text PRIMARY KEY NOT NULL,
	`org` text NOT NULL,
	`name` text NOT NULL,
	`kind` text NOT NULL,
	`roles` text NOT NULL,
	`secret_hash` text NOT NULL,
	`created_at` text NOT NULL,
	`expires_at` text,
	`revoked_at` text
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `keys_by_org` ON `keys` (`org`,`created_at`,`id`);--> statement-breakpoint
CREATE TABLE `orgs` (
	`id` text PRIMARY KEY NOT NULL,
	`created_at` text NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `plan_moves` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`moved_at_seconds` integer NOT NULL,
	`org` text NOT NULL,
	`plan_id` text NOT NULL,
	`session_id` text,
	`action_name` text,
	`project` text,
	`profile` text,
	`phase` text,
	`state` text,
	`task_state` text,
	`created_by` text,
	`created_at` text,
	`updated_at` text,
	`status_at` text,
	`seq` integer,
	`wake_at` text,
	`pending_approvals` integer
);
--> statement-breakpoint
CREATE INDEX `plan_moves_by_plan` ON `plan_moves` (`org`,`plan_id`,`id`);--> statement-breakpoint
CREATE TABLE `plans` (
	`org` text NOT NULL,
	`plan_id` text NOT NULL,
	`session_id` text NOT NULL,
	`action_name` text NOT NULL,
	`project` text,
	`profile` text NOT NULL,
	`phase` text NOT NULL,
	`state` text NOT NULL,
	`task_state` text NOT NULL,
	`created_by` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`status_at` text NOT NULL,
	`seq` integer NOT NULL,
	`wake_at` text,
	`pending_approvals` integer NOT NULL,
	PRIMARY KEY(`org`, `plan_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `plans_by_status` ON `plans` (`org`,status_at desc,`plan_id`);--> statement-breakpoint
CREATE INDEX `plans_by_session` ON `plans` (`org`,`session_id`,status_at desc,`plan_id`);--> statement-breakpoint
CREATE INDEX `plans_by_task_state` ON `plans` (`org`,`task_state`,status_at desc,`plan_id`);--> statement-breakpoint
CREATE INDEX `plans_overdue` ON `plans` (`wake_at`) WHERE wake_at is not null;--> statement-breakpoint
CREATE TABLE `projects` (
	`org` text NOT NULL,
	`name` text NOT NULL,
	`settings` text NOT NULL,
	`created_at` text NOT NULL,
	PRIMARY KEY(`org`, `name`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `sessions` (
	`org` text NOT NULL,
	`id` text NOT NULL,
	`actor_name` text,
	`status` text NOT NULL,
	`created_at` text NOT NULL,
	`closed_at` text,
	`created_by` text NOT NULL,
	PRIMARY KEY(`org`, `id`)
) WITHOUT ROWID;
