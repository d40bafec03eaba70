-- +goose Up
-- add column "implied" to table: "resource_types"
ALTER TABLE `resource_types` ADD COLUMN `implied` bool NULL;

-- +goose Down
-- reverse: add column "implied" to table: "resource_types"
ALTER TABLE `resource_types` DROP COLUMN `implied`;
