-- +goose Up
-- modify "resource_types" table
ALTER TABLE "resource_types" ADD COLUMN "implied" boolean NULL;

-- +goose Down
-- reverse: modify "resource_types" table
ALTER TABLE "resource_types" DROP COLUMN "implied";
