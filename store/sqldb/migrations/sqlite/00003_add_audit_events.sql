-- +goose Up
-- create "audit_events" table
CREATE TABLE `audit_events` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `created_at` datetime NOT NULL,
  `user_id` text NOT NULL,
  `project_id` text NOT NULL,
  `action` text NOT NULL,
  `kind` text NOT NULL,
  `key` text NOT NULL,
  `before` text NULL,
  `after` text NULL
);
-- create index "auditevent_created_at_id" to table: "audit_events"
CREATE INDEX `auditevent_created_at_id` ON `audit_events` (`created_at`, `id`);
-- create index "auditevent_user_id_created_at_id" to table: "audit_events"
CREATE INDEX `auditevent_user_id_created_at_id` ON `audit_events` (`user_id`, `created_at`, `id`);
-- create index "auditevent_project_id_created_at_id" to table: "audit_events"
CREATE INDEX `auditevent_project_id_created_at_id` ON `audit_events` (`project_id`, `created_at`, `id`);
-- create index "auditevent_action_created_at_id" to table: "audit_events"
CREATE INDEX `auditevent_action_created_at_id` ON `audit_events` (`action`, `created_at`, `id`);
-- create index "auditevent_kind_key_created_at_id" to table: "audit_events"
CREATE INDEX `auditevent_kind_key_created_at_id` ON `audit_events` (`kind`, `key`, `created_at`, `id`);

-- +goose Down
-- reverse: create index "auditevent_kind_key_created_at_id" to table: "audit_events"
DROP INDEX `auditevent_kind_key_created_at_id`;
-- reverse: create index "auditevent_action_created_at_id" to table: "audit_events"
DROP INDEX `auditevent_action_created_at_id`;
-- reverse: create index "auditevent_project_id_created_at_id" to table: "audit_events"
DROP INDEX `auditevent_project_id_created_at_id`;
-- reverse: create index "auditevent_user_id_created_at_id" to table: "audit_events"
DROP INDEX `auditevent_user_id_created_at_id`;
-- reverse: create index "auditevent_created_at_id" to table: "audit_events"
DROP INDEX `auditevent_created_at_id`;
-- reverse: create "audit_events" table
DROP TABLE `audit_events`;
