CREATE TABLE `org_policy_versions` (
	`org` text NOT NULL,
	`version` integer NOT NULL,
	`policy` text NOT NULL,
	`saved_at` text NOT NULL,
	`saved_by` text NOT NULL,
	PRIMARY KEY(`org`, `version`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `profile_versions` (
	`org` text NOT NULL,
	`name` text NOT NULL,
	`version` integer NOT NULL,
	`document` text,
	`defaulted` text NOT NULL,
	`created_at` text NOT NULL,
	`saved_at` text NOT NULL,
	`saved_by` text NOT NULL,
	PRIMARY KEY(`org`, `name`, `version`)
) WITHOUT ROWID;
