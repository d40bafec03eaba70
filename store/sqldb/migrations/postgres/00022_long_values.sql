-- +goose Up
-- modify "metadata_items" table
ALTER TABLE "metadata_items" ALTER COLUMN "value" TYPE text COLLATE "C", ALTER COLUMN "value_key" TYPE text COLLATE "C";

-- +goose Down
-- reverse: modify "metadata_items" table
ALTER TABLE "metadata_items" ALTER COLUMN "value_key" TYPE character varying(1023) COLLATE "C", ALTER COLUMN "value" TYPE character varying(1023) COLLATE "C";
