-- +goose Up
-- modify "syncs" table
ALTER TABLE "syncs" ADD COLUMN "failures" bigint NOT NULL DEFAULT 0;

-- +goose Down
-- reverse: modify "syncs" table
ALTER TABLE "syncs" DROP COLUMN "failures";
