-- +goose Up
-- add column "mappings" to table: "consumers"
ALTER TABLE `consumers` ADD COLUMN `mappings` text NULL;

-- +goose Down
-- reverse: add column "mappings" to table: "consumers"
ALTER TABLE `consumers` DROP COLUMN `mappings`;
