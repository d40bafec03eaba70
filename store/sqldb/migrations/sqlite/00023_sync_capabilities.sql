-- +goose Up
-- add column "owned_capabilities" to table: "resource_origins"
ALTER TABLE `resource_origins` ADD COLUMN `owned_capabilities` text NOT NULL DEFAULT '[]';

-- +goose Down
-- reverse: add column "owned_capabilities" to table: "resource_origins"
ALTER TABLE `resource_origins` DROP COLUMN `owned_capabilities`;
