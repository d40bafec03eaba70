-- +goose Up
-- create "resource_origins" table
CREATE TABLE `resource_origins` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `origin` text NOT NULL,
  `region` text NOT NULL,
  `kind` text NOT NULL,
  `foreign_id` text NOT NULL,
  `owned_keys` text NOT NULL,
  `observed_at` datetime NOT NULL,
  `absent` integer NOT NULL DEFAULT (0),
  `missed_by` text NULL,
  `gone_at` datetime NULL,
  `resource_id` integer NOT NULL,
  CONSTRAINT `resource_origins_resources_origin` FOREIGN KEY (`resource_id`) REFERENCES `resources` (`id`) ON DELETE CASCADE
);
-- create index "resource_origins_resource_id_key" to table: "resource_origins"
CREATE UNIQUE INDEX `resource_origins_resource_id_key` ON `resource_origins` (`resource_id`);
-- create index "resourceorigin_origin_region_kind_foreign_id" to table: "resource_origins"
CREATE UNIQUE INDEX `resourceorigin_origin_region_kind_foreign_id` ON `resource_origins` (`origin`, `region`, `kind`, `foreign_id`);
-- create "syncs" table
CREATE TABLE `syncs` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `origin` text NOT NULL,
  `region` text NOT NULL,
  `kind` text NOT NULL,
  `pass` text NULL,
  `held_until` datetime NULL,
  `completed_at` datetime NULL,
  `failed_at` datetime NULL,
  `failure` text NULL,
  `refused` integer NOT NULL DEFAULT (0)
);
-- create index "syncscope_origin_region_kind" to table: "syncs"
CREATE UNIQUE INDEX `syncscope_origin_region_kind` ON `syncs` (`origin`, `region`, `kind`);

-- +goose Down
-- reverse: create index "syncscope_origin_region_kind" to table: "syncs"
DROP INDEX `syncscope_origin_region_kind`;
-- reverse: create "syncs" table
DROP TABLE `syncs`;
-- reverse: create index "resourceorigin_origin_region_kind_foreign_id" to table: "resource_origins"
DROP INDEX `resourceorigin_origin_region_kind_foreign_id`;
-- reverse: create index "resource_origins_resource_id_key" to table: "resource_origins"
DROP INDEX `resource_origins_resource_id_key`;
-- reverse: create "resource_origins" table
DROP TABLE `resource_origins`;
