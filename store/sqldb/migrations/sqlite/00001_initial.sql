-- +goose Up
-- create "allocations" table
CREATE TABLE `allocations` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `used` integer NOT NULL,
  `consumer_id` integer NOT NULL,
  `resource_class_id` integer NOT NULL,
  `provider_id` integer NOT NULL,
  CONSTRAINT `allocations_consumers_allocations` FOREIGN KEY (`consumer_id`) REFERENCES `consumers` (`id`) ON DELETE CASCADE,
  CONSTRAINT `allocations_resource_classes_allocations` FOREIGN KEY (`resource_class_id`) REFERENCES `resource_classes` (`id`) ON DELETE RESTRICT,
  CONSTRAINT `allocations_resource_providers_allocations` FOREIGN KEY (`provider_id`) REFERENCES `resource_providers` (`id`) ON DELETE RESTRICT
);
-- create index "allocation_consumer_id_provider_id_resource_class_id" to table: "allocations"
CREATE UNIQUE INDEX `allocation_consumer_id_provider_id_resource_class_id` ON `allocations` (`consumer_id`, `provider_id`, `resource_class_id`);
-- create index "allocation_provider_id_resource_class_id" to table: "allocations"
CREATE INDEX `allocation_provider_id_resource_class_id` ON `allocations` (`provider_id`, `resource_class_id`);
-- create index "allocation_resource_class_id" to table: "allocations"
CREATE INDEX `allocation_resource_class_id` ON `allocations` (`resource_class_id`);
-- create "capabilities" table
CREATE TABLE `capabilities` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `created_at` datetime NOT NULL,
  `updated_at` datetime NOT NULL,
  `name` text NOT NULL,
  `private` bool NOT NULL,
  `resource_type_id` integer NOT NULL,
  CONSTRAINT `capabilities_resource_types_capabilities` FOREIGN KEY (`resource_type_id`) REFERENCES `resource_types` (`id`) ON DELETE RESTRICT
);
-- create index "capability_resource_type_id_name" to table: "capabilities"
CREATE UNIQUE INDEX `capability_resource_type_id_name` ON `capabilities` (`resource_type_id`, `name`);
-- create "capability_counts" table
CREATE TABLE `capability_counts` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `value` text NOT NULL,
  `value_digest` text NOT NULL,
  `value_prefix` text NOT NULL,
  `resource_count` integer NOT NULL,
  `capability_id` integer NOT NULL,
  CONSTRAINT `capability_counts_capabilities_counts` FOREIGN KEY (`capability_id`) REFERENCES `capabilities` (`id`) ON DELETE CASCADE
);
-- create index "capabilitycount_capability_id_value_digest" to table: "capability_counts"
CREATE UNIQUE INDEX `capabilitycount_capability_id_value_digest` ON `capability_counts` (`capability_id`, `value_digest`);
-- create index "capabilitycount_capability_id_value_prefix" to table: "capability_counts"
CREATE INDEX `capabilitycount_capability_id_value_prefix` ON `capability_counts` (`capability_id`, `value_prefix`);
-- create "capability_values" table
CREATE TABLE `capability_values` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `created_at` datetime NOT NULL,
  `updated_at` datetime NOT NULL,
  `value` text NOT NULL,
  `capability_id` integer NOT NULL,
  `resource_id` integer NOT NULL,
  CONSTRAINT `capability_values_capabilities_values` FOREIGN KEY (`capability_id`) REFERENCES `capabilities` (`id`) ON DELETE CASCADE,
  CONSTRAINT `capability_values_resources_capability_values` FOREIGN KEY (`resource_id`) REFERENCES `resources` (`id`) ON DELETE CASCADE
);
-- create index "capabilityvalue_resource_id_capability_id" to table: "capability_values"
CREATE UNIQUE INDEX `capabilityvalue_resource_id_capability_id` ON `capability_values` (`resource_id`, `capability_id`);
-- create index "capabilityvalue_capability_id_resource_id" to table: "capability_values"
CREATE INDEX `capabilityvalue_capability_id_resource_id` ON `capability_values` (`capability_id`, `resource_id`);
-- create "consumers" table
CREATE TABLE `consumers` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `created_at` datetime NOT NULL,
  `updated_at` datetime NOT NULL,
  `uuid` text NOT NULL,
  `project_id` text NOT NULL,
  `user_id` text NOT NULL,
  `consumer_type` text NULL,
  `generation` integer NOT NULL
);
-- create index "consumers_uuid_key" to table: "consumers"
CREATE UNIQUE INDEX `consumers_uuid_key` ON `consumers` (`uuid`);
-- create index "consumer_project_id_user_id" to table: "consumers"
CREATE INDEX `consumer_project_id_user_id` ON `consumers` (`project_id`, `user_id`);
-- create index "consumer_user_id" to table: "consumers"
CREATE INDEX `consumer_user_id` ON `consumers` (`user_id`);
-- create index "consumer_consumer_type" to table: "consumers"
CREATE INDEX `consumer_consumer_type` ON `consumers` (`consumer_type`);
-- create index "consumer_created_at_id" to table: "consumers"
CREATE INDEX `consumer_created_at_id` ON `consumers` (`created_at`, `id`);
-- create "inventories" table
CREATE TABLE `inventories` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `total` integer NOT NULL,
  `reserved` integer NOT NULL,
  `min_unit` integer NOT NULL,
  `max_unit` integer NOT NULL,
  `step_size` integer NOT NULL,
  `allocation_ratio` real NOT NULL,
  `capacity` integer NOT NULL,
  `used` integer NOT NULL DEFAULT (0),
  `resource_class_id` integer NOT NULL,
  `provider_id` integer NOT NULL,
  CONSTRAINT `inventories_resource_classes_inventories` FOREIGN KEY (`resource_class_id`) REFERENCES `resource_classes` (`id`) ON DELETE RESTRICT,
  CONSTRAINT `inventories_resource_providers_inventories` FOREIGN KEY (`provider_id`) REFERENCES `resource_providers` (`id`) ON DELETE CASCADE
);
-- create index "inventory_provider_id_resource_class_id" to table: "inventories"
CREATE UNIQUE INDEX `inventory_provider_id_resource_class_id` ON `inventories` (`provider_id`, `resource_class_id`);
-- create index "inventory_resource_class_id" to table: "inventories"
CREATE INDEX `inventory_resource_class_id` ON `inventories` (`resource_class_id`);
-- create "metadata_items" table
CREATE TABLE `metadata_items` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `created_at` datetime NOT NULL,
  `updated_at` datetime NOT NULL,
  `key` text NOT NULL,
  `value` text NOT NULL,
  `value_hash` integer NOT NULL,
  `value_prefix` text NOT NULL,
  `user_modifiable` bool NOT NULL DEFAULT (true),
  `resource_id` integer NOT NULL,
  CONSTRAINT `metadata_items_resources_metadata` FOREIGN KEY (`resource_id`) REFERENCES `resources` (`id`) ON DELETE CASCADE
);
-- create index "metadataitem_resource_id_key" to table: "metadata_items"
CREATE UNIQUE INDEX `metadataitem_resource_id_key` ON `metadata_items` (`resource_id`, `key`);
-- create index "metadataitem_key_value_hash_resource_id" to table: "metadata_items"
CREATE INDEX `metadataitem_key_value_hash_resource_id` ON `metadata_items` (`key`, `value_hash`, `resource_id`);
-- create index "metadataitem_key_value_prefix_resource_id" to table: "metadata_items"
CREATE INDEX `metadataitem_key_value_prefix_resource_id` ON `metadata_items` (`key`, `value_prefix`, `resource_id`);
-- create "namespaces" table
CREATE TABLE `namespaces` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `created_at` datetime NOT NULL,
  `updated_at` datetime NOT NULL,
  `name` text NOT NULL,
  `title` text NULL,
  `display_name` text NOT NULL,
  `description` text NULL,
  `visibility` text NOT NULL,
  `protected` bool NOT NULL,
  `owner` text NOT NULL,
  `origin` text NULL,
  `origin_document` text NULL,
  `revision` integer NOT NULL DEFAULT (1),
  `search_key` text NOT NULL
);
-- create index "namespaces_name_key" to table: "namespaces"
CREATE UNIQUE INDEX `namespaces_name_key` ON `namespaces` (`name`);
-- create index "namespace_display_name_id" to table: "namespaces"
CREATE INDEX `namespace_display_name_id` ON `namespaces` (`display_name`, `id`);
-- create index "namespace_created_at_id" to table: "namespaces"
CREATE INDEX `namespace_created_at_id` ON `namespaces` (`created_at`, `id`);
-- create index "namespace_updated_at_id" to table: "namespaces"
CREATE INDEX `namespace_updated_at_id` ON `namespaces` (`updated_at`, `id`);
-- create index "namespace_owner" to table: "namespaces"
CREATE INDEX `namespace_owner` ON `namespaces` (`owner`);
-- create index "namespace_visibility" to table: "namespaces"
CREATE INDEX `namespace_visibility` ON `namespaces` (`visibility`);
-- create index "namespace_origin" to table: "namespaces"
CREATE INDEX `namespace_origin` ON `namespaces` (`origin`);
-- create "namespace_members" table
CREATE TABLE `namespace_members` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `created_at` datetime NOT NULL,
  `updated_at` datetime NOT NULL,
  `project_id` text NOT NULL,
  `role` text NOT NULL,
  `namespace_id` integer NOT NULL,
  CONSTRAINT `namespace_members_namespaces_members` FOREIGN KEY (`namespace_id`) REFERENCES `namespaces` (`id`) ON DELETE CASCADE
);
-- create index "namespacemember_namespace_id_project_id" to table: "namespace_members"
CREATE UNIQUE INDEX `namespacemember_namespace_id_project_id` ON `namespace_members` (`namespace_id`, `project_id`);
-- create index "namespacemember_project_id" to table: "namespace_members"
CREATE INDEX `namespacemember_project_id` ON `namespace_members` (`project_id`);
-- create "object_definitions" table
CREATE TABLE `object_definitions` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `created_at` datetime NOT NULL,
  `updated_at` datetime NOT NULL,
  `name` text NOT NULL,
  `description` text NULL,
  `required` text NOT NULL,
  `position` integer NOT NULL,
  `search_key` text NOT NULL,
  `namespace_id` integer NOT NULL,
  CONSTRAINT `object_definitions_namespaces_objects` FOREIGN KEY (`namespace_id`) REFERENCES `namespaces` (`id`) ON DELETE CASCADE
);
-- create index "objectdefinition_namespace_id_name" to table: "object_definitions"
CREATE UNIQUE INDEX `objectdefinition_namespace_id_name` ON `object_definitions` (`namespace_id`, `name`);
-- create "property_definitions" table
CREATE TABLE `property_definitions` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `created_at` datetime NOT NULL,
  `updated_at` datetime NOT NULL,
  `name` text NOT NULL,
  `position` integer NOT NULL,
  `keywords` text NOT NULL,
  `search_key` text NOT NULL,
  `namespace_id` integer NOT NULL,
  `object_id` integer NULL,
  CONSTRAINT `property_definitions_namespaces_properties` FOREIGN KEY (`namespace_id`) REFERENCES `namespaces` (`id`) ON DELETE CASCADE,
  CONSTRAINT `property_definitions_object_definitions_properties` FOREIGN KEY (`object_id`) REFERENCES `object_definitions` (`id`) ON DELETE CASCADE
);
-- create index "propertydefinition_namespace_id_name" to table: "property_definitions"
CREATE UNIQUE INDEX `propertydefinition_namespace_id_name` ON `property_definitions` (`namespace_id`, `name`) WHERE object_id IS NULL;
-- create index "propertydefinition_object_id_name" to table: "property_definitions"
CREATE UNIQUE INDEX `propertydefinition_object_id_name` ON `property_definitions` (`object_id`, `name`);
-- create index "propertydefinition_namespace_id" to table: "property_definitions"
CREATE INDEX `propertydefinition_namespace_id` ON `property_definitions` (`namespace_id`);
-- create index "propertydefinition_name" to table: "property_definitions"
CREATE INDEX `propertydefinition_name` ON `property_definitions` (`name`);
-- create "provider_aggregates" table
CREATE TABLE `provider_aggregates` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `aggregate` text NOT NULL,
  `provider_id` integer NOT NULL,
  CONSTRAINT `provider_aggregates_resource_providers_aggregates` FOREIGN KEY (`provider_id`) REFERENCES `resource_providers` (`id`) ON DELETE CASCADE
);
-- create index "provideraggregate_provider_id_aggregate" to table: "provider_aggregates"
CREATE UNIQUE INDEX `provideraggregate_provider_id_aggregate` ON `provider_aggregates` (`provider_id`, `aggregate`);
-- create index "provideraggregate_aggregate" to table: "provider_aggregates"
CREATE INDEX `provideraggregate_aggregate` ON `provider_aggregates` (`aggregate`);
-- create "provider_traits" table
CREATE TABLE `provider_traits` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `provider_id` integer NOT NULL,
  `trait_id` integer NOT NULL,
  CONSTRAINT `provider_traits_resource_providers_traits` FOREIGN KEY (`provider_id`) REFERENCES `resource_providers` (`id`) ON DELETE CASCADE,
  CONSTRAINT `provider_traits_traits_providers` FOREIGN KEY (`trait_id`) REFERENCES `traits` (`id`) ON DELETE RESTRICT
);
-- create index "providertrait_provider_id_trait_id" to table: "provider_traits"
CREATE UNIQUE INDEX `providertrait_provider_id_trait_id` ON `provider_traits` (`provider_id`, `trait_id`);
-- create index "providertrait_trait_id" to table: "provider_traits"
CREATE INDEX `providertrait_trait_id` ON `provider_traits` (`trait_id`);
-- create "resources" table
CREATE TABLE `resources` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `created_at` datetime NOT NULL,
  `updated_at` datetime NOT NULL,
  `uuid` text NOT NULL,
  `name` text NOT NULL,
  `name_key` text NOT NULL,
  `description` text NULL,
  `project_id` text NOT NULL,
  `visibility` text NOT NULL,
  `revision` integer NOT NULL DEFAULT (1),
  `parent_id` integer NULL,
  `resource_type_id` integer NOT NULL,
  CONSTRAINT `resources_resources_children` FOREIGN KEY (`parent_id`) REFERENCES `resources` (`id`) ON DELETE RESTRICT,
  CONSTRAINT `resources_resource_types_resources` FOREIGN KEY (`resource_type_id`) REFERENCES `resource_types` (`id`) ON DELETE RESTRICT
);
-- create index "resources_uuid_key" to table: "resources"
CREATE UNIQUE INDEX `resources_uuid_key` ON `resources` (`uuid`);
-- create index "resource_name_id" to table: "resources"
CREATE INDEX `resource_name_id` ON `resources` (`name`, `id`);
-- create index "resource_created_at_id" to table: "resources"
CREATE INDEX `resource_created_at_id` ON `resources` (`created_at`, `id`);
-- create index "resource_updated_at_id" to table: "resources"
CREATE INDEX `resource_updated_at_id` ON `resources` (`updated_at`, `id`);
-- create index "resource_resource_type_id_name_id" to table: "resources"
CREATE INDEX `resource_resource_type_id_name_id` ON `resources` (`resource_type_id`, `name`, `id`);
-- create index "resource_project_id_name_id" to table: "resources"
CREATE INDEX `resource_project_id_name_id` ON `resources` (`project_id`, `name`, `id`);
-- create index "resource_parent_id_name_id" to table: "resources"
CREATE INDEX `resource_parent_id_name_id` ON `resources` (`parent_id`, `name`, `id`);
-- create index "resource_visibility_name_id" to table: "resources"
CREATE INDEX `resource_visibility_name_id` ON `resources` (`visibility`, `name`, `id`);
-- create "resource_classes" table
CREATE TABLE `resource_classes` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `created_at` datetime NOT NULL,
  `updated_at` datetime NOT NULL,
  `name` text NOT NULL,
  `standard` bool NOT NULL
);
-- create index "resource_classes_name_key" to table: "resource_classes"
CREATE UNIQUE INDEX `resource_classes_name_key` ON `resource_classes` (`name`);
-- create "resource_providers" table
CREATE TABLE `resource_providers` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `created_at` datetime NOT NULL,
  `updated_at` datetime NOT NULL,
  `uuid` text NOT NULL,
  `name` text NOT NULL,
  `generation` integer NOT NULL,
  `version` integer NOT NULL,
  `resource_id` integer NULL,
  `parent_id` integer NULL,
  CONSTRAINT `resource_providers_resources_providers` FOREIGN KEY (`resource_id`) REFERENCES `resources` (`id`) ON DELETE RESTRICT,
  CONSTRAINT `resource_providers_resource_providers_children` FOREIGN KEY (`parent_id`) REFERENCES `resource_providers` (`id`) ON DELETE RESTRICT
);
-- create index "resource_providers_uuid_key" to table: "resource_providers"
CREATE UNIQUE INDEX `resource_providers_uuid_key` ON `resource_providers` (`uuid`);
-- create index "resource_providers_name_key" to table: "resource_providers"
CREATE UNIQUE INDEX `resource_providers_name_key` ON `resource_providers` (`name`);
-- create index "resourceprovider_parent_id" to table: "resource_providers"
CREATE INDEX `resourceprovider_parent_id` ON `resource_providers` (`parent_id`);
-- create index "resourceprovider_resource_id" to table: "resource_providers"
CREATE UNIQUE INDEX `resourceprovider_resource_id` ON `resource_providers` (`resource_id`);
-- create index "resourceprovider_created_at_id" to table: "resource_providers"
CREATE INDEX `resourceprovider_created_at_id` ON `resource_providers` (`created_at`, `id`);
-- create index "resourceprovider_updated_at_id" to table: "resource_providers"
CREATE INDEX `resourceprovider_updated_at_id` ON `resource_providers` (`updated_at`, `id`);
-- create "resource_tags" table
CREATE TABLE `resource_tags` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `name` text NOT NULL,
  `name_key` text NOT NULL,
  `resource_id` integer NOT NULL,
  CONSTRAINT `resource_tags_resources_tags` FOREIGN KEY (`resource_id`) REFERENCES `resources` (`id`) ON DELETE CASCADE
);
-- create index "resourcetag_resource_id_name_key" to table: "resource_tags"
CREATE UNIQUE INDEX `resourcetag_resource_id_name_key` ON `resource_tags` (`resource_id`, `name_key`);
-- create index "resourcetag_name_key_resource_id" to table: "resource_tags"
CREATE INDEX `resourcetag_name_key_resource_id` ON `resource_tags` (`name_key`, `resource_id`);
-- create "resource_types" table
CREATE TABLE `resource_types` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `created_at` datetime NOT NULL,
  `updated_at` datetime NOT NULL,
  `name` text NOT NULL,
  `protected` bool NOT NULL,
  `strict` bool NOT NULL
);
-- create index "resource_types_name_key" to table: "resource_types"
CREATE UNIQUE INDEX `resource_types_name_key` ON `resource_types` (`name`);
-- create index "resourcetype_created_at_id" to table: "resource_types"
CREATE INDEX `resourcetype_created_at_id` ON `resource_types` (`created_at`, `id`);
-- create index "resourcetype_updated_at_id" to table: "resource_types"
CREATE INDEX `resourcetype_updated_at_id` ON `resource_types` (`updated_at`, `id`);
-- create "resource_type_associations" table
CREATE TABLE `resource_type_associations` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `created_at` datetime NOT NULL,
  `updated_at` datetime NOT NULL,
  `prefix` text NOT NULL DEFAULT (''),
  `properties_target` text NOT NULL DEFAULT (''),
  `namespace_id` integer NOT NULL,
  `resource_type_id` integer NOT NULL,
  CONSTRAINT `resource_type_associations_namespaces_associations` FOREIGN KEY (`namespace_id`) REFERENCES `namespaces` (`id`) ON DELETE CASCADE,
  CONSTRAINT `resource_type_associations_resource_types_associations` FOREIGN KEY (`resource_type_id`) REFERENCES `resource_types` (`id`) ON DELETE RESTRICT
);
-- create index "resourcetypeassociation_key" to table: "resource_type_associations"
CREATE UNIQUE INDEX `resourcetypeassociation_key` ON `resource_type_associations` (`namespace_id`, `resource_type_id`, `prefix`, `properties_target`);
-- create index "resourcetypeassociation_resource_type_id" to table: "resource_type_associations"
CREATE INDEX `resourcetypeassociation_resource_type_id` ON `resource_type_associations` (`resource_type_id`);
-- create index "resourcetypeassociation_properties_target" to table: "resource_type_associations"
CREATE INDEX `resourcetypeassociation_properties_target` ON `resource_type_associations` (`properties_target`);
-- create "tags" table
CREATE TABLE `tags` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `created_at` datetime NOT NULL,
  `updated_at` datetime NOT NULL,
  `name` text NOT NULL,
  `name_key` text NOT NULL,
  `namespace_id` integer NOT NULL,
  `parent_id` integer NULL,
  CONSTRAINT `tags_namespaces_tags` FOREIGN KEY (`namespace_id`) REFERENCES `namespaces` (`id`) ON DELETE CASCADE,
  CONSTRAINT `tags_tags_children` FOREIGN KEY (`parent_id`) REFERENCES `tags` (`id`) ON DELETE SET NULL
);
-- create index "tag_namespace_id_name_key" to table: "tags"
CREATE UNIQUE INDEX `tag_namespace_id_name_key` ON `tags` (`namespace_id`, `name_key`);
-- create index "tag_name_key" to table: "tags"
CREATE INDEX `tag_name_key` ON `tags` (`name_key`);
-- create index "tag_parent_id" to table: "tags"
CREATE INDEX `tag_parent_id` ON `tags` (`parent_id`);
-- create "traits" table
CREATE TABLE `traits` (
  `id` integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  `created_at` datetime NOT NULL,
  `updated_at` datetime NOT NULL,
  `name` text NOT NULL,
  `standard` bool NOT NULL
);
-- create index "traits_name_key" to table: "traits"
CREATE UNIQUE INDEX `traits_name_key` ON `traits` (`name`);

-- +goose Down
-- reverse: create index "traits_name_key" to table: "traits"
DROP INDEX `traits_name_key`;
-- reverse: create "traits" table
DROP TABLE `traits`;
-- reverse: create index "tag_parent_id" to table: "tags"
DROP INDEX `tag_parent_id`;
-- reverse: create index "tag_name_key" to table: "tags"
DROP INDEX `tag_name_key`;
-- reverse: create index "tag_namespace_id_name_key" to table: "tags"
DROP INDEX `tag_namespace_id_name_key`;
-- reverse: create "tags" table
DROP TABLE `tags`;
-- reverse: create index "resourcetypeassociation_properties_target" to table: "resource_type_associations"
DROP INDEX `resourcetypeassociation_properties_target`;
-- reverse: create index "resourcetypeassociation_resource_type_id" to table: "resource_type_associations"
DROP INDEX `resourcetypeassociation_resource_type_id`;
-- reverse: create index "resourcetypeassociation_key" to table: "resource_type_associations"
DROP INDEX `resourcetypeassociation_key`;
-- reverse: create "resource_type_associations" table
DROP TABLE `resource_type_associations`;
-- reverse: create index "resourcetype_updated_at_id" to table: "resource_types"
DROP INDEX `resourcetype_updated_at_id`;
-- reverse: create index "resourcetype_created_at_id" to table: "resource_types"
DROP INDEX `resourcetype_created_at_id`;
-- reverse: create index "resource_types_name_key" to table: "resource_types"
DROP INDEX `resource_types_name_key`;
-- reverse: create "resource_types" table
DROP TABLE `resource_types`;
-- reverse: create index "resourcetag_name_key_resource_id" to table: "resource_tags"
DROP INDEX `resourcetag_name_key_resource_id`;
-- reverse: create index "resourcetag_resource_id_name_key" to table: "resource_tags"
DROP INDEX `resourcetag_resource_id_name_key`;
-- reverse: create "resource_tags" table
DROP TABLE `resource_tags`;
-- reverse: create index "resourceprovider_updated_at_id" to table: "resource_providers"
DROP INDEX `resourceprovider_updated_at_id`;
-- reverse: create index "resourceprovider_created_at_id" to table: "resource_providers"
DROP INDEX `resourceprovider_created_at_id`;
-- reverse: create index "resourceprovider_resource_id" to table: "resource_providers"
DROP INDEX `resourceprovider_resource_id`;
-- reverse: create index "resourceprovider_parent_id" to table: "resource_providers"
DROP INDEX `resourceprovider_parent_id`;
-- reverse: create index "resource_providers_name_key" to table: "resource_providers"
DROP INDEX `resource_providers_name_key`;
-- reverse: create index "resource_providers_uuid_key" to table: "resource_providers"
DROP INDEX `resource_providers_uuid_key`;
-- reverse: create "resource_providers" table
DROP TABLE `resource_providers`;
-- reverse: create index "resource_classes_name_key" to table: "resource_classes"
DROP INDEX `resource_classes_name_key`;
-- reverse: create "resource_classes" table
DROP TABLE `resource_classes`;
-- reverse: create index "resource_visibility_name_id" to table: "resources"
DROP INDEX `resource_visibility_name_id`;
-- reverse: create index "resource_parent_id_name_id" to table: "resources"
DROP INDEX `resource_parent_id_name_id`;
-- reverse: create index "resource_project_id_name_id" to table: "resources"
DROP INDEX `resource_project_id_name_id`;
-- reverse: create index "resource_resource_type_id_name_id" to table: "resources"
DROP INDEX `resource_resource_type_id_name_id`;
-- reverse: create index "resource_updated_at_id" to table: "resources"
DROP INDEX `resource_updated_at_id`;
-- reverse: create index "resource_created_at_id" to table: "resources"
DROP INDEX `resource_created_at_id`;
-- reverse: create index "resource_name_id" to table: "resources"
DROP INDEX `resource_name_id`;
-- reverse: create index "resources_uuid_key" to table: "resources"
DROP INDEX `resources_uuid_key`;
-- reverse: create "resources" table
DROP TABLE `resources`;
-- reverse: create index "providertrait_trait_id" to table: "provider_traits"
DROP INDEX `providertrait_trait_id`;
-- reverse: create index "providertrait_provider_id_trait_id" to table: "provider_traits"
DROP INDEX `providertrait_provider_id_trait_id`;
-- reverse: create "provider_traits" table
DROP TABLE `provider_traits`;
-- reverse: create index "provideraggregate_aggregate" to table: "provider_aggregates"
DROP INDEX `provideraggregate_aggregate`;
-- reverse: create index "provideraggregate_provider_id_aggregate" to table: "provider_aggregates"
DROP INDEX `provideraggregate_provider_id_aggregate`;
-- reverse: create "provider_aggregates" table
DROP TABLE `provider_aggregates`;
-- reverse: create index "propertydefinition_name" to table: "property_definitions"
DROP INDEX `propertydefinition_name`;
-- reverse: create index "propertydefinition_namespace_id" to table: "property_definitions"
DROP INDEX `propertydefinition_namespace_id`;
-- reverse: create index "propertydefinition_object_id_name" to table: "property_definitions"
DROP INDEX `propertydefinition_object_id_name`;
-- reverse: create index "propertydefinition_namespace_id_name" to table: "property_definitions"
DROP INDEX `propertydefinition_namespace_id_name`;
-- reverse: create "property_definitions" table
DROP TABLE `property_definitions`;
-- reverse: create index "objectdefinition_namespace_id_name" to table: "object_definitions"
DROP INDEX `objectdefinition_namespace_id_name`;
-- reverse: create "object_definitions" table
DROP TABLE `object_definitions`;
-- reverse: create index "namespacemember_project_id" to table: "namespace_members"
DROP INDEX `namespacemember_project_id`;
-- reverse: create index "namespacemember_namespace_id_project_id" to table: "namespace_members"
DROP INDEX `namespacemember_namespace_id_project_id`;
-- reverse: create "namespace_members" table
DROP TABLE `namespace_members`;
-- reverse: create index "namespace_origin" to table: "namespaces"
DROP INDEX `namespace_origin`;
-- reverse: create index "namespace_visibility" to table: "namespaces"
DROP INDEX `namespace_visibility`;
-- reverse: create index "namespace_owner" to table: "namespaces"
DROP INDEX `namespace_owner`;
-- reverse: create index "namespace_updated_at_id" to table: "namespaces"
DROP INDEX `namespace_updated_at_id`;
-- reverse: create index "namespace_created_at_id" to table: "namespaces"
DROP INDEX `namespace_created_at_id`;
-- reverse: create index "namespace_display_name_id" to table: "namespaces"
DROP INDEX `namespace_display_name_id`;
-- reverse: create index "namespaces_name_key" to table: "namespaces"
DROP INDEX `namespaces_name_key`;
-- reverse: create "namespaces" table
DROP TABLE `namespaces`;
-- reverse: create index "metadataitem_key_value_prefix_resource_id" to table: "metadata_items"
DROP INDEX `metadataitem_key_value_prefix_resource_id`;
-- reverse: create index "metadataitem_key_value_hash_resource_id" to table: "metadata_items"
DROP INDEX `metadataitem_key_value_hash_resource_id`;
-- reverse: create index "metadataitem_resource_id_key" to table: "metadata_items"
DROP INDEX `metadataitem_resource_id_key`;
-- reverse: create "metadata_items" table
DROP TABLE `metadata_items`;
-- reverse: create index "inventory_resource_class_id" to table: "inventories"
DROP INDEX `inventory_resource_class_id`;
-- reverse: create index "inventory_provider_id_resource_class_id" to table: "inventories"
DROP INDEX `inventory_provider_id_resource_class_id`;
-- reverse: create "inventories" table
DROP TABLE `inventories`;
-- reverse: create index "consumer_created_at_id" to table: "consumers"
DROP INDEX `consumer_created_at_id`;
-- reverse: create index "consumer_consumer_type" to table: "consumers"
DROP INDEX `consumer_consumer_type`;
-- reverse: create index "consumer_user_id" to table: "consumers"
DROP INDEX `consumer_user_id`;
-- reverse: create index "consumer_project_id_user_id" to table: "consumers"
DROP INDEX `consumer_project_id_user_id`;
-- reverse: create index "consumers_uuid_key" to table: "consumers"
DROP INDEX `consumers_uuid_key`;
-- reverse: create "consumers" table
DROP TABLE `consumers`;
-- reverse: create index "capabilityvalue_capability_id_resource_id" to table: "capability_values"
DROP INDEX `capabilityvalue_capability_id_resource_id`;
-- reverse: create index "capabilityvalue_resource_id_capability_id" to table: "capability_values"
DROP INDEX `capabilityvalue_resource_id_capability_id`;
-- reverse: create "capability_values" table
DROP TABLE `capability_values`;
-- reverse: create index "capabilitycount_capability_id_value_prefix" to table: "capability_counts"
DROP INDEX `capabilitycount_capability_id_value_prefix`;
-- reverse: create index "capabilitycount_capability_id_value_digest" to table: "capability_counts"
DROP INDEX `capabilitycount_capability_id_value_digest`;
-- reverse: create "capability_counts" table
DROP TABLE `capability_counts`;
-- reverse: create index "capability_resource_type_id_name" to table: "capabilities"
DROP INDEX `capability_resource_type_id_name`;
-- reverse: create "capabilities" table
DROP TABLE `capabilities`;
-- reverse: create index "allocation_resource_class_id" to table: "allocations"
DROP INDEX `allocation_resource_class_id`;
-- reverse: create index "allocation_provider_id_resource_class_id" to table: "allocations"
DROP INDEX `allocation_provider_id_resource_class_id`;
-- reverse: create index "allocation_consumer_id_provider_id_resource_class_id" to table: "allocations"
DROP INDEX `allocation_consumer_id_provider_id_resource_class_id`;
-- reverse: create "allocations" table
DROP TABLE `allocations`;
