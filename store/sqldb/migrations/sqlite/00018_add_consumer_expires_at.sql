-- +goose Up
-- add column "expires_at" to table: "consumers"
ALTER TABLE `consumers` ADD COLUMN `expires_at` datetime NULL;
-- create index "consumer_expires_at" to table: "consumers"
CREATE INDEX `consumer_expires_at` ON `consumers` (`expires_at`) WHERE expires_at IS NOT NULL;

-- +goose Down
-- reverse: create index "consumer_expires_at" to table: "consumers"
DROP INDEX `consumer_expires_at`;
-- reverse: add column "expires_at" to table: "consumers"
ALTER TABLE `consumers` DROP COLUMN `expires_at`;
