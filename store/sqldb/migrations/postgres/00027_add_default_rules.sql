-- +goose Up
-- modify "metadata_items" table
ALTER TABLE "metadata_items" ADD COLUMN "derived_from" bigint NOT NULL DEFAULT 0;
-- create index "metadataitem_derived_from_resource_id" to table: "metadata_items"
CREATE INDEX "metadataitem_derived_from_resource_id" ON "metadata_items" ("derived_from", "resource_id") WHERE (derived_from <> 0);
-- modify "namespaces" table
ALTER TABLE "namespaces" ADD COLUMN "default_rules" text NOT NULL DEFAULT '[]' COLLATE "C";

-- +goose Down
-- reverse: modify "namespaces" table
ALTER TABLE "namespaces" DROP COLUMN "default_rules";
-- reverse: create index "metadataitem_derived_from_resource_id" to table: "metadata_items"
DROP INDEX "metadataitem_derived_from_resource_id";
-- reverse: modify "metadata_items" table
ALTER TABLE "metadata_items" DROP COLUMN "derived_from";
