-- +goose Up
-- create "capacity_buckets" table
CREATE TABLE `capacity_buckets` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `size` text NOT NULL,
  `begins_at` datetime NOT NULL,
  `series` text NOT NULL,
  `content` text NOT NULL
);
-- create index "capacitybucket_size_begins_at_series" to table: "capacity_buckets"
CREATE UNIQUE INDEX `capacitybucket_size_begins_at_series` ON `capacity_buckets` (`size`, `begins_at`, `series`);

-- +goose Down
-- reverse: create index "capacitybucket_size_begins_at_series" to table: "capacity_buckets"
DROP INDEX `capacitybucket_size_begins_at_series`;
-- reverse: create "capacity_buckets" table
DROP TABLE `capacity_buckets`;
