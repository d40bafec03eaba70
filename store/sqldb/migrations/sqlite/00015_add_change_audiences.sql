-- +goose Up
-- modify "changes" table
ALTER TABLE `changes` ADD COLUMN `audience` text NULL;
ALTER TABLE `changes` ADD COLUMN `what` text NULL;
ALTER TABLE `changes` ADD COLUMN `named` text NULL;
-- create index "change_audience_kind_id" to table: "changes"
CREATE INDEX `change_audience_kind_id` ON `changes` (`audience`, `kind`, `id`);
-- create index "change_key_id" to table: "changes"
CREATE INDEX `change_key_id` ON `changes` (`key`, `id`);
-- create "sealing_keys" table
CREATE TABLE `sealing_keys` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `name` text NOT NULL,
  `value` text NOT NULL,
  `created_at` datetime NOT NULL
);
-- create index "sealingkey_name" to table: "sealing_keys"
CREATE UNIQUE INDEX `sealingkey_name` ON `sealing_keys` (`name`);

-- +goose Down
-- reverse: create index "sealingkey_name" to table: "sealing_keys"
DROP INDEX `sealingkey_name`;
-- reverse: create "sealing_keys" table
DROP TABLE `sealing_keys`;
-- reverse: create index "change_key_id" to table: "changes"
DROP INDEX `change_key_id`;
-- reverse: create index "change_audience_kind_id" to table: "changes"
DROP INDEX `change_audience_kind_id`;
-- reverse: modify "changes" table
ALTER TABLE `changes` DROP COLUMN `named`;
ALTER TABLE `changes` DROP COLUMN `what`;
ALTER TABLE `changes` DROP COLUMN `audience`;
