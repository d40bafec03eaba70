-- +goose Up
-- create "changes" table
CREATE TABLE `changes` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `transaction` integer NOT NULL,
  `kind` text NOT NULL,
  `key` text NOT NULL,
  `created_at` datetime NOT NULL
);
-- create index "change_transaction" to table: "changes"
CREATE INDEX `change_transaction` ON `changes` (`transaction`);

-- transactions write their changes themselves: drop the notes that triggers wrote
DROP TABLE `placement_changes`;

-- +goose Down
-- reverse: drop the notes that triggers wrote
-- create "placement_changes" table
CREATE TABLE `placement_changes` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `provider` text NOT NULL,
  `transaction` integer NOT NULL,
  `created_at` datetime NOT NULL
);
-- create index "placementchange_transaction" to table: "placement_changes"
CREATE INDEX `placementchange_transaction` ON `placement_changes` (`transaction`);
-- create index "placementchange_created_at" to table: "placement_changes"
CREATE INDEX `placementchange_created_at` ON `placement_changes` (`created_at`);

-- reverse: create index "change_transaction" to table: "changes"
DROP INDEX `change_transaction`;
-- reverse: create "changes" table
DROP TABLE `changes`;
