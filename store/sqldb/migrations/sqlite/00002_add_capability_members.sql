-- +goose Up
-- create "capability_members" table
CREATE TABLE `capability_members` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `value` text NOT NULL,
  `value_hash` integer NOT NULL,
  `number_key` text NULL,
  `in_list` bool NOT NULL,
  `capability_id` integer NOT NULL,
  `resource_id` integer NOT NULL,
  CONSTRAINT `capability_members_capabilities_members` FOREIGN KEY (`capability_id`) REFERENCES `capabilities` (`id`) ON DELETE CASCADE,
  CONSTRAINT `capability_members_resources_capability_members` FOREIGN KEY (`resource_id`) REFERENCES `resources` (`id`) ON DELETE CASCADE
);
-- create index "capabilitymember_resource_id_capability_id" to table: "capability_members"
CREATE INDEX `capabilitymember_resource_id_capability_id` ON `capability_members` (`resource_id`, `capability_id`);
-- create index "capabilitymember_capability_id_value_hash_resource_id" to table: "capability_members"
CREATE INDEX `capabilitymember_capability_id_value_hash_resource_id` ON `capability_members` (`capability_id`, `value_hash`, `resource_id`);
-- create index "capabilitymember_capability_id_number_key_resource_id" to table: "capability_members"
CREATE INDEX `capabilitymember_capability_id_number_key_resource_id` ON `capability_members` (`capability_id`, `number_key`, `resource_id`);

-- +goose Down
-- reverse: create index "capabilitymember_capability_id_number_key_resource_id" to table: "capability_members"
DROP INDEX `capabilitymember_capability_id_number_key_resource_id`;
-- reverse: create index "capabilitymember_capability_id_value_hash_resource_id" to table: "capability_members"
DROP INDEX `capabilitymember_capability_id_value_hash_resource_id`;
-- reverse: create index "capabilitymember_resource_id_capability_id" to table: "capability_members"
DROP INDEX `capabilitymember_resource_id_capability_id`;
-- reverse: create "capability_members" table
DROP TABLE `capability_members`;
