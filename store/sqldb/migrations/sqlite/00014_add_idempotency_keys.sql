-- +goose Up
-- create "idempotency_keys" table
CREATE TABLE `idempotency_keys` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `request` text NOT NULL,
  `field` text NOT NULL,
  `step` text NOT NULL,
  `fingerprint` text NOT NULL,
  `project_id` text NOT NULL,
  `outcome` text NOT NULL,
  `created_at` datetime NOT NULL
);
-- create index "idempotencykey_request_field_step" to table: "idempotency_keys"
CREATE UNIQUE INDEX `idempotencykey_request_field_step` ON `idempotency_keys` (`request`, `field`, `step`);
-- create index "idempotencykey_project_id_created_at" to table: "idempotency_keys"
CREATE INDEX `idempotencykey_project_id_created_at` ON `idempotency_keys` (`project_id`, `created_at`);
-- create index "idempotencykey_created_at" to table: "idempotency_keys"
CREATE INDEX `idempotencykey_created_at` ON `idempotency_keys` (`created_at`);

-- +goose Down
-- reverse: create index "idempotencykey_created_at" to table: "idempotency_keys"
DROP INDEX `idempotencykey_created_at`;
-- reverse: create index "idempotencykey_project_id_created_at" to table: "idempotency_keys"
DROP INDEX `idempotencykey_project_id_created_at`;
-- reverse: create index "idempotencykey_request_field_step" to table: "idempotency_keys"
DROP INDEX `idempotencykey_request_field_step`;
-- reverse: create "idempotency_keys" table
DROP TABLE `idempotency_keys`;
