-- +goose Up
-- add column "by_operator" to table: "metadata_items"
ALTER TABLE `metadata_items` ADD COLUMN `by_operator` bool NOT NULL DEFAULT false;

-- +goose Down
-- reverse: add column "by_operator" to table: "metadata_items"
ALTER TABLE `metadata_items` DROP COLUMN `by_operator`;
