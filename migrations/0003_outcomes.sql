CREATE TABLE `outcomes` (
	`org` text NOT NULL,
	`plan_id` text NOT NULL,
	`seq` integer NOT NULL,
	`kind` text NOT NULL,
	`risk_class` text NOT NULL,
	`actor` text NOT NULL,
	`action` text NOT NULL,
	`project` text,
	`confidence` real,
	`threshold` real,
	`gate` text,
	`outcome` text,
	`at` text NOT NULL,
	PRIMARY KEY(`org`, `plan_id`, `seq`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `outcomes_of_calls` ON `outcomes` (`org`,`project`,`actor`,`risk_class`,`at`,`plan_id`,`seq`) WHERE kind = 'call';--> statement-breakpoint
CREATE TABLE `plan_outcomes` (
	`org` text NOT NULL,
	`plan_id` text NOT NULL,
	`seq` integer NOT NULL,
	`action` text NOT NULL,
	`project` text,
	`outcome` text NOT NULL,
	`at` text NOT NULL,
	PRIMARY KEY(`org`, `plan_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `plan_outcomes_recent` ON `plan_outcomes` (`org`,`action`,`project`,`at`,`plan_id`);
