CREATE TABLE `plan_spend` (
	`org` text NOT NULL,
	`plan_id` text NOT NULL,
	`day` text NOT NULL,
	`tool` text NOT NULL,
	`session_id` text NOT NULL,
	`profile` text,
	`spent` integer NOT NULL,
	`reserved` integer NOT NULL,
	`at` text NOT NULL,
	PRIMARY KEY(`org`, `plan_id`, `day`, `tool`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `plan_spend_by_session` ON `plan_spend` (`org`,`session_id`);--> statement-breakpoint
CREATE INDEX `plan_spend_by_profile` ON `plan_spend` (`org`,`profile`) WHERE profile is not null;
