-- +goose Up
-- create "project_limits" table
CREATE TABLE `project_limits` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `project_id` text NOT NULL,
  `resource_class` text NOT NULL,
  `trait` text NOT NULL,
  `amount` integer NOT NULL
);
-- create index "projectlimit_project_id_resource_class_trait" to table: "project_limits"
CREATE UNIQUE INDEX `projectlimit_project_id_resource_class_trait` ON `project_limits` (`project_id`, `resource_class`, `trait`);

-- +goose Down
-- reverse: create index "projectlimit_project_id_resource_class_trait" to table: "project_limits"
DROP INDEX `projectlimit_project_id_resource_class_trait`;
-- reverse: create "project_limits" table
DROP TABLE `project_limits`;
