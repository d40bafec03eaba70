-- +goose Up
-- create index "resource_resource_type_id_uuid" to table: "resources"
CREATE INDEX `resource_resource_type_id_uuid` ON `resources` (`resource_type_id`, `uuid`);
-- create index "resource_project_id_uuid" to table: "resources"
CREATE INDEX `resource_project_id_uuid` ON `resources` (`project_id`, `uuid`);

-- +goose Down
-- reverse: create index "resource_project_id_uuid" to table: "resources"
DROP INDEX `resource_project_id_uuid`;
-- reverse: create index "resource_resource_type_id_uuid" to table: "resources"
DROP INDEX `resource_resource_type_id_uuid`;
