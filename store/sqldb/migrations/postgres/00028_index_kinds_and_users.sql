-- +goose Up
-- create index "auditevent_kind_created_at_uuid" to table: "audit_events"
CREATE INDEX "auditevent_kind_created_at_uuid" ON "audit_events" ("kind", "created_at", "uuid");
-- drop index "consumer_user_id" from table: "consumers"
DROP INDEX "consumer_user_id";
-- create index "consumer_user_id_created_at_uuid" to table: "consumers"
CREATE INDEX "consumer_user_id_created_at_uuid" ON "consumers" ("user_id", "created_at", "uuid");

-- +goose Down
-- reverse: create index "consumer_user_id_created_at_uuid" to table: "consumers"
DROP INDEX "consumer_user_id_created_at_uuid";
-- reverse: drop index "consumer_user_id" from table: "consumers"
CREATE INDEX "consumer_user_id" ON "consumers" ("user_id");
-- reverse: create index "auditevent_kind_created_at_uuid" to table: "audit_events"
DROP INDEX "auditevent_kind_created_at_uuid";
