-- +goose Up
-- things are known outside by uuids, and ties of orders are broken by them: ids of rows count what everybody writes
DROP INDEX "auditevent_created_at_id";
DROP INDEX "auditevent_user_id_created_at_id";
DROP INDEX "auditevent_project_id_created_at_id";
DROP INDEX "auditevent_action_created_at_id";
DROP INDEX "auditevent_kind_key_created_at_id";
-- add "uuid" to table: "audit_events"; those of one time keep their order
ALTER TABLE "audit_events" ADD COLUMN "uuid" character varying(36) NULL COLLATE "C";
UPDATE "audit_events" SET "uuid" = lpad(to_hex("d"."place"), 8, '0') || substr(gen_random_uuid()::text, 9)
  FROM (SELECT "id", row_number() OVER (PARTITION BY "created_at" ORDER BY "id") AS "place" FROM "audit_events") AS "d" WHERE "d"."id" = "audit_events"."id";
CREATE UNIQUE INDEX "auditevent_uuid" ON "audit_events" ("uuid");
CREATE INDEX "auditevent_created_at_uuid" ON "audit_events" ("created_at", "uuid");
CREATE INDEX "auditevent_user_id_created_at_uuid" ON "audit_events" ("user_id", "created_at", "uuid");
CREATE INDEX "auditevent_project_id_created_at_uuid" ON "audit_events" ("project_id", "created_at", "uuid");
CREATE INDEX "auditevent_action_created_at_uuid" ON "audit_events" ("action", "created_at", "uuid");
CREATE INDEX "auditevent_kind_key_created_at_uuid" ON "audit_events" ("kind", "key", "created_at", "uuid");
-- add "uuid" to table: "capabilities"; those of one time keep their order
ALTER TABLE "capabilities" ADD COLUMN "uuid" character varying(36) NULL COLLATE "C";
UPDATE "capabilities" SET "uuid" = lpad(to_hex("d"."place"), 8, '0') || substr(gen_random_uuid()::text, 9)
  FROM (SELECT "id", row_number() OVER (PARTITION BY "created_at" ORDER BY "id") AS "place" FROM "capabilities") AS "d" WHERE "d"."id" = "capabilities"."id";
CREATE UNIQUE INDEX "capability_uuid" ON "capabilities" ("uuid");
DROP INDEX "namespace_display_name_id";
DROP INDEX "namespace_created_at_id";
DROP INDEX "namespace_updated_at_id";
-- add "uuid" to table: "namespaces"; those of one time keep their order
ALTER TABLE "namespaces" ADD COLUMN "uuid" character varying(36) NULL COLLATE "C";
UPDATE "namespaces" SET "uuid" = lpad(to_hex("d"."place"), 8, '0') || substr(gen_random_uuid()::text, 9)
  FROM (SELECT "id", row_number() OVER (PARTITION BY "created_at" ORDER BY "id") AS "place" FROM "namespaces") AS "d" WHERE "d"."id" = "namespaces"."id";
CREATE UNIQUE INDEX "namespace_uuid" ON "namespaces" ("uuid");
CREATE INDEX "namespace_display_name_uuid" ON "namespaces" ("display_name", "uuid");
CREATE INDEX "namespace_created_at_uuid" ON "namespaces" ("created_at", "uuid");
CREATE INDEX "namespace_updated_at_uuid" ON "namespaces" ("updated_at", "uuid");
-- add "uuid" to table: "property_definitions"; those of one time keep their order
ALTER TABLE "property_definitions" ADD COLUMN "uuid" character varying(36) NULL COLLATE "C";
UPDATE "property_definitions" SET "uuid" = lpad(to_hex("d"."place"), 8, '0') || substr(gen_random_uuid()::text, 9)
  FROM (SELECT "id", row_number() OVER (PARTITION BY "created_at" ORDER BY "id") AS "place" FROM "property_definitions") AS "d" WHERE "d"."id" = "property_definitions"."id";
CREATE UNIQUE INDEX "propertydefinition_uuid" ON "property_definitions" ("uuid");
-- add "uuid" to table: "object_definitions"; those of one time keep their order
ALTER TABLE "object_definitions" ADD COLUMN "uuid" character varying(36) NULL COLLATE "C";
UPDATE "object_definitions" SET "uuid" = lpad(to_hex("d"."place"), 8, '0') || substr(gen_random_uuid()::text, 9)
  FROM (SELECT "id", row_number() OVER (PARTITION BY "created_at" ORDER BY "id") AS "place" FROM "object_definitions") AS "d" WHERE "d"."id" = "object_definitions"."id";
CREATE UNIQUE INDEX "objectdefinition_uuid" ON "object_definitions" ("uuid");
-- add "uuid" to table: "tags"; those of one time keep their order
ALTER TABLE "tags" ADD COLUMN "uuid" character varying(36) NULL COLLATE "C";
UPDATE "tags" SET "uuid" = lpad(to_hex("d"."place"), 8, '0') || substr(gen_random_uuid()::text, 9)
  FROM (SELECT "id", row_number() OVER (PARTITION BY "created_at" ORDER BY "id") AS "place" FROM "tags") AS "d" WHERE "d"."id" = "tags"."id";
CREATE UNIQUE INDEX "tag_uuid" ON "tags" ("uuid");
DROP INDEX "resourcetype_created_at_id";
DROP INDEX "resourcetype_updated_at_id";
-- add "uuid" to table: "resource_types"; those of one time keep their order
ALTER TABLE "resource_types" ADD COLUMN "uuid" character varying(36) NULL COLLATE "C";
UPDATE "resource_types" SET "uuid" = lpad(to_hex("d"."place"), 8, '0') || substr(gen_random_uuid()::text, 9)
  FROM (SELECT "id", row_number() OVER (PARTITION BY "created_at" ORDER BY "id") AS "place" FROM "resource_types") AS "d" WHERE "d"."id" = "resource_types"."id";
CREATE UNIQUE INDEX "resourcetype_uuid" ON "resource_types" ("uuid");
CREATE INDEX "resourcetype_created_at_uuid" ON "resource_types" ("created_at", "uuid");
CREATE INDEX "resourcetype_updated_at_uuid" ON "resource_types" ("updated_at", "uuid");
-- add "uuid" to table: "resource_type_associations"; those of one time keep their order
ALTER TABLE "resource_type_associations" ADD COLUMN "uuid" character varying(36) NULL COLLATE "C";
UPDATE "resource_type_associations" SET "uuid" = lpad(to_hex("d"."place"), 8, '0') || substr(gen_random_uuid()::text, 9)
  FROM (SELECT "id", row_number() OVER (PARTITION BY "created_at" ORDER BY "id") AS "place" FROM "resource_type_associations") AS "d" WHERE "d"."id" = "resource_type_associations"."id";
CREATE UNIQUE INDEX "resourcetypeassociation_uuid" ON "resource_type_associations" ("uuid");
-- orders of table: "resources"
DROP INDEX "resource_name_id";
CREATE INDEX "resource_name_uuid" ON "resources" ("name", "uuid");
DROP INDEX "resource_created_at_id";
CREATE INDEX "resource_created_at_uuid" ON "resources" ("created_at", "uuid");
DROP INDEX "resource_updated_at_id";
CREATE INDEX "resource_updated_at_uuid" ON "resources" ("updated_at", "uuid");
DROP INDEX "resource_resource_type_id_name_id";
CREATE INDEX "resource_resource_type_id_name_uuid" ON "resources" ("resource_type_id", "name", "uuid");
DROP INDEX "resource_project_id_name_id";
CREATE INDEX "resource_project_id_name_uuid" ON "resources" ("project_id", "name", "uuid");
DROP INDEX "resource_parent_id_name_id";
CREATE INDEX "resource_parent_id_name_uuid" ON "resources" ("parent_id", "name", "uuid");
DROP INDEX "resource_visibility_name_id";
CREATE INDEX "resource_visibility_name_uuid" ON "resources" ("visibility", "name", "uuid");
-- orders of table: "consumers"
DROP INDEX "consumer_created_at_id";
CREATE INDEX "consumer_created_at_uuid" ON "consumers" ("created_at", "uuid");
CREATE INDEX "consumer_project_id_created_at_uuid" ON "consumers" ("project_id", "created_at", "uuid");
-- lists of providers are in memory
DROP INDEX "resourceprovider_created_at_id";
DROP INDEX "resourceprovider_updated_at_id";

-- +goose Down
DROP INDEX "auditevent_created_at_uuid";
DROP INDEX "auditevent_user_id_created_at_uuid";
DROP INDEX "auditevent_project_id_created_at_uuid";
DROP INDEX "auditevent_action_created_at_uuid";
DROP INDEX "auditevent_kind_key_created_at_uuid";
DROP INDEX "auditevent_uuid";
ALTER TABLE "audit_events" DROP COLUMN "uuid";
CREATE INDEX "auditevent_created_at_id" ON "audit_events" ("created_at", "id");
CREATE INDEX "auditevent_user_id_created_at_id" ON "audit_events" ("user_id", "created_at", "id");
CREATE INDEX "auditevent_project_id_created_at_id" ON "audit_events" ("project_id", "created_at", "id");
CREATE INDEX "auditevent_action_created_at_id" ON "audit_events" ("action", "created_at", "id");
CREATE INDEX "auditevent_kind_key_created_at_id" ON "audit_events" ("kind", "key", "created_at", "id");
DROP INDEX "capability_uuid";
ALTER TABLE "capabilities" DROP COLUMN "uuid";
DROP INDEX "namespace_display_name_uuid";
DROP INDEX "namespace_created_at_uuid";
DROP INDEX "namespace_updated_at_uuid";
DROP INDEX "namespace_uuid";
ALTER TABLE "namespaces" DROP COLUMN "uuid";
CREATE INDEX "namespace_display_name_id" ON "namespaces" ("display_name", "id");
CREATE INDEX "namespace_created_at_id" ON "namespaces" ("created_at", "id");
CREATE INDEX "namespace_updated_at_id" ON "namespaces" ("updated_at", "id");
DROP INDEX "propertydefinition_uuid";
ALTER TABLE "property_definitions" DROP COLUMN "uuid";
DROP INDEX "objectdefinition_uuid";
ALTER TABLE "object_definitions" DROP COLUMN "uuid";
DROP INDEX "tag_uuid";
ALTER TABLE "tags" DROP COLUMN "uuid";
DROP INDEX "resourcetype_created_at_uuid";
DROP INDEX "resourcetype_updated_at_uuid";
DROP INDEX "resourcetype_uuid";
ALTER TABLE "resource_types" DROP COLUMN "uuid";
CREATE INDEX "resourcetype_created_at_id" ON "resource_types" ("created_at", "id");
CREATE INDEX "resourcetype_updated_at_id" ON "resource_types" ("updated_at", "id");
DROP INDEX "resourcetypeassociation_uuid";
ALTER TABLE "resource_type_associations" DROP COLUMN "uuid";
DROP INDEX "resource_name_uuid";
CREATE INDEX "resource_name_id" ON "resources" ("name", "id");
DROP INDEX "resource_created_at_uuid";
CREATE INDEX "resource_created_at_id" ON "resources" ("created_at", "id");
DROP INDEX "resource_updated_at_uuid";
CREATE INDEX "resource_updated_at_id" ON "resources" ("updated_at", "id");
DROP INDEX "resource_resource_type_id_name_uuid";
CREATE INDEX "resource_resource_type_id_name_id" ON "resources" ("resource_type_id", "name", "id");
DROP INDEX "resource_project_id_name_uuid";
CREATE INDEX "resource_project_id_name_id" ON "resources" ("project_id", "name", "id");
DROP INDEX "resource_parent_id_name_uuid";
CREATE INDEX "resource_parent_id_name_id" ON "resources" ("parent_id", "name", "id");
DROP INDEX "resource_visibility_name_uuid";
CREATE INDEX "resource_visibility_name_id" ON "resources" ("visibility", "name", "id");
DROP INDEX "consumer_created_at_uuid";
CREATE INDEX "consumer_created_at_id" ON "consumers" ("created_at", "id");
DROP INDEX "consumer_project_id_created_at_uuid";
CREATE INDEX "resourceprovider_created_at_id" ON "resource_providers" ("created_at", "id");
CREATE INDEX "resourceprovider_updated_at_id" ON "resource_providers" ("updated_at", "id");
