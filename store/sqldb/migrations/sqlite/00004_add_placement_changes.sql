-- +goose Up
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

-- +goose Down
-- reverse: create index "placementchange_created_at" to table: "placement_changes"
DROP INDEX `placementchange_created_at`;
-- reverse: create index "placementchange_transaction" to table: "placement_changes"
DROP INDEX `placementchange_transaction`;
-- reverse: create "placement_changes" table
DROP TABLE `placement_changes`;
