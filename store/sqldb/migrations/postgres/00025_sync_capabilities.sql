-- +goose Up
-- modify "resource_origins" table
ALTER TABLE "resource_origins" ADD COLUMN "owned_capabilities" text NOT NULL DEFAULT '[]' COLLATE "C";

-- +goose Down
-- reverse: modify "resource_origins" table
ALTER TABLE "resource_origins" DROP COLUMN "owned_capabilities";
