-- +goose Up
-- modify "capability_members" table
ALTER TABLE "capability_members" ADD COLUMN "value_key" text NULL COLLATE "C";
-- modify "metadata_items" table
ALTER TABLE "metadata_items" ADD COLUMN "value_key" character varying(1023) NULL COLLATE "C";
-- modify "resources" table
ALTER TABLE "resources" ADD COLUMN "description_key" text NULL COLLATE "C";

-- +goose Down
-- reverse: modify "resources" table
ALTER TABLE "resources" DROP COLUMN "description_key";
-- reverse: modify "metadata_items" table
ALTER TABLE "metadata_items" DROP COLUMN "value_key";
-- reverse: modify "capability_members" table
ALTER TABLE "capability_members" DROP COLUMN "value_key";
