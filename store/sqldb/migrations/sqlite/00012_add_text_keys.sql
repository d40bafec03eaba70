-- +goose Up
-- add column "value_key" to table: "metadata_items"
ALTER TABLE `metadata_items` ADD COLUMN `value_key` text NULL;
-- add column "description_key" to table: "resources"
ALTER TABLE `resources` ADD COLUMN `description_key` text NULL;
-- add column "value_key" to table: "capability_members"
ALTER TABLE `capability_members` ADD COLUMN `value_key` text NULL;

-- +goose Down
-- the tables of trigrams are made at the start of a server, after the migrations
DROP TRIGGER IF EXISTS `metadata_items_value_trigrams_insert`;
DROP TRIGGER IF EXISTS `metadata_items_value_trigrams_delete`;
DROP TRIGGER IF EXISTS `metadata_items_value_trigrams_update`;
DROP TABLE IF EXISTS `metadata_items_value_trigrams`;
DROP TRIGGER IF EXISTS `capability_members_value_trigrams_insert`;
DROP TRIGGER IF EXISTS `capability_members_value_trigrams_delete`;
DROP TRIGGER IF EXISTS `capability_members_value_trigrams_update`;
DROP TABLE IF EXISTS `capability_members_value_trigrams`;
DROP TRIGGER IF EXISTS `resources_name_key_trigrams_insert`;
DROP TRIGGER IF EXISTS `resources_name_key_trigrams_delete`;
DROP TRIGGER IF EXISTS `resources_name_key_trigrams_update`;
DROP TABLE IF EXISTS `resources_name_key_trigrams`;
DROP TRIGGER IF EXISTS `resources_description_trigrams_insert`;
DROP TRIGGER IF EXISTS `resources_description_trigrams_delete`;
DROP TRIGGER IF EXISTS `resources_description_trigrams_update`;
DROP TABLE IF EXISTS `resources_description_trigrams`;
DROP TRIGGER IF EXISTS `namespaces_search_key_trigrams_insert`;
DROP TRIGGER IF EXISTS `namespaces_search_key_trigrams_delete`;
DROP TRIGGER IF EXISTS `namespaces_search_key_trigrams_update`;
DROP TABLE IF EXISTS `namespaces_search_key_trigrams`;
DROP TRIGGER IF EXISTS `property_definitions_search_key_trigrams_insert`;
DROP TRIGGER IF EXISTS `property_definitions_search_key_trigrams_delete`;
DROP TRIGGER IF EXISTS `property_definitions_search_key_trigrams_update`;
DROP TABLE IF EXISTS `property_definitions_search_key_trigrams`;
DROP TRIGGER IF EXISTS `object_definitions_search_key_trigrams_insert`;
DROP TRIGGER IF EXISTS `object_definitions_search_key_trigrams_delete`;
DROP TRIGGER IF EXISTS `object_definitions_search_key_trigrams_update`;
DROP TABLE IF EXISTS `object_definitions_search_key_trigrams`;
DROP TRIGGER IF EXISTS `tags_name_key_trigrams_insert`;
DROP TRIGGER IF EXISTS `tags_name_key_trigrams_delete`;
DROP TRIGGER IF EXISTS `tags_name_key_trigrams_update`;
DROP TABLE IF EXISTS `tags_name_key_trigrams`;
-- reverse: add column "value_key" to table: "capability_members"
ALTER TABLE `capability_members` DROP COLUMN `value_key`;
-- reverse: add column "description_key" to table: "resources"
ALTER TABLE `resources` DROP COLUMN `description_key`;
-- reverse: add column "value_key" to table: "metadata_items"
ALTER TABLE `metadata_items` DROP COLUMN `value_key`;
