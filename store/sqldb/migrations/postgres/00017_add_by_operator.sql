-- +goose Up
-- modify "metadata_items" table
ALTER TABLE "metadata_items" ADD COLUMN "by_operator" boolean NOT NULL DEFAULT false;

-- +goose Down
-- reverse: modify "metadata_items" table
ALTER TABLE "metadata_items" DROP COLUMN "by_operator";
