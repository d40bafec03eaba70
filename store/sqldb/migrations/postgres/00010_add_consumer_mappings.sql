-- +goose Up
-- modify "consumers" table
ALTER TABLE "consumers" ADD COLUMN "mappings" text NULL COLLATE "C";

-- +goose Down
-- reverse: modify "consumers" table
ALTER TABLE "consumers" DROP COLUMN "mappings";
