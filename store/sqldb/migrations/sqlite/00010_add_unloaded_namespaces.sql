-- +goose Up
-- create "unloaded_namespaces" table
CREATE TABLE `unloaded_namespaces` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `origin` text NOT NULL,
  `name` text NOT NULL,
  `created_at` datetime NOT NULL
);
-- create index "unloadednamespace_origin_name" to table: "unloaded_namespaces"
CREATE UNIQUE INDEX `unloadednamespace_origin_name` ON `unloaded_namespaces` (`origin`, `name`);

-- +goose Down
-- reverse: create index "unloadednamespace_origin_name" to table: "unloaded_namespaces"
DROP INDEX `unloadednamespace_origin_name`;
-- reverse: create "unloaded_namespaces" table
DROP TABLE `unloaded_namespaces`;
