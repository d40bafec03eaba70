-- +goose Up
-- modify "audit_events" table
ALTER TABLE "audit_events" ALTER COLUMN "key" TYPE character varying(400) COLLATE "C";

-- +goose Down
-- reverse: modify "audit_events" table
ALTER TABLE "audit_events" ALTER COLUMN "key" TYPE character varying(255) COLLATE "C";
