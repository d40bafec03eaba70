-- +goose Up
-- create "place_refusals" table
CREATE TABLE `place_refusals` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `consumer` text NOT NULL,
  `project_id` text NOT NULL,
  `refused_at` datetime NOT NULL,
  `refusal` text NOT NULL
);
-- create index "place_refusals_consumer_key" to table: "place_refusals"
CREATE UNIQUE INDEX `place_refusals_consumer_key` ON `place_refusals` (`consumer`);
-- create index "placerefusal_refused_at" to table: "place_refusals"
CREATE INDEX `placerefusal_refused_at` ON `place_refusals` (`refused_at`);

-- +goose Down
-- reverse: create index "placerefusal_refused_at" to table: "place_refusals"
DROP INDEX `placerefusal_refused_at`;
-- reverse: create index "place_refusals_consumer_key" to table: "place_refusals"
DROP INDEX `place_refusals_consumer_key`;
-- reverse: create "place_refusals" table
DROP TABLE `place_refusals`;
