-- +goose Up
-- add column "failures" to table: "syncs"
ALTER TABLE `syncs` ADD COLUMN `failures` integer NOT NULL DEFAULT 0;

-- +goose Down
-- reverse: add column "failures" to table: "syncs"
ALTER TABLE `syncs` DROP COLUMN `failures`;
