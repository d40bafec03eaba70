-- +goose Up
-- add column "default_rules" to table: "namespaces"
ALTER TABLE `namespaces` ADD COLUMN `default_rules` text NOT NULL DEFAULT '[]';
-- add column "derived_from" to table: "metadata_items"
ALTER TABLE `metadata_items` ADD COLUMN `derived_from` integer NOT NULL DEFAULT 0;
-- create index "metadataitem_derived_from_resource_id" to table: "metadata_items"
CREATE INDEX `metadataitem_derived_from_resource_id` ON `metadata_items` (`derived_from`, `resource_id`) WHERE derived_from <> 0;

-- +goose Down
-- reverse: create index "metadataitem_derived_from_resource_id" to table: "metadata_items"
DROP INDEX `metadataitem_derived_from_resource_id`;
-- reverse: add column "derived_from" to table: "metadata_items"
ALTER TABLE `metadata_items` DROP COLUMN `derived_from`;
-- reverse: add column "default_rules" to table: "namespaces"
ALTER TABLE `namespaces` DROP COLUMN `default_rules`;
