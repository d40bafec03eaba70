-- Copies a world from the tables of Cadastre to those of the reference placement,
-- which takes hours by its API. @HOST, @PORT and @DATABASE are replaced.
CREATE EXTENSION postgres_fdw;
CREATE SERVER cadastre FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '@HOST', port '@PORT', dbname '@DATABASE');
CREATE USER MAPPING FOR CURRENT_USER SERVER cadastre OPTIONS (user 'cadastre');
CREATE SCHEMA source;
IMPORT FOREIGN SCHEMA public LIMIT TO (traits, resource_classes, resource_providers, inventories, provider_traits,
  provider_aggregates, consumers, allocations) FROM SERVER cadastre INTO source;
SET timezone = 'UTC';
INSERT INTO projects (id, created_at, external_id) VALUES (1, now(), 'bench');
INSERT INTO users (id, created_at, external_id) VALUES (1, now(), 'bench');
INSERT INTO consumer_types (id, created_at, name) VALUES (1, now(), 'INSTANCE');
INSERT INTO traits (created_at, name) SELECT now(), name FROM source.traits c
  WHERE NOT EXISTS (SELECT FROM traits t WHERE t.name = c.name) AND name LIKE 'CUSTOM%';
-- Three levels of a tree: a root has no parent.
INSERT INTO resource_providers (id, created_at, uuid, name, generation, root_provider_id, parent_provider_id)
  SELECT p.id, now(), p.uuid, p.name, 1, coalesce(above.parent_id, p.parent_id, p.id), p.parent_id
  FROM source.resource_providers p LEFT JOIN source.resource_providers above ON above.id = p.parent_id ORDER BY p.id;
CREATE TEMP TABLE class_ids AS SELECT c.id AS source_id, p.id FROM source.resource_classes c JOIN resource_classes p USING (name);
CREATE TEMP TABLE trait_ids AS SELECT c.id AS source_id, p.id FROM source.traits c JOIN traits p USING (name);
INSERT INTO inventories (created_at, resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
  SELECT now(), i.provider_id, c.id, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio
  FROM source.inventories i JOIN class_ids c ON c.source_id = i.resource_class_id;
INSERT INTO resource_provider_traits (created_at, trait_id, resource_provider_id)
  SELECT now(), t.id, p.provider_id FROM source.provider_traits p JOIN trait_ids t ON t.source_id = p.trait_id;
INSERT INTO placement_aggregates (created_at, uuid) SELECT now(), aggregate FROM source.provider_aggregates GROUP BY aggregate;
INSERT INTO resource_provider_aggregates (created_at, resource_provider_id, aggregate_id)
  SELECT now(), p.provider_id, a.id FROM source.provider_aggregates p JOIN placement_aggregates a ON a.uuid = p.aggregate;
INSERT INTO consumers (created_at, uuid, project_id, user_id, generation, consumer_type_id)
  SELECT now(), uuid, 1, 1, 1, 1 FROM source.consumers;
INSERT INTO allocations (created_at, resource_provider_id, consumer_id, resource_class_id, used)
  SELECT now(), a.provider_id, consumer.uuid, c.id, a.used FROM source.allocations a
  JOIN source.consumers consumer ON consumer.id = a.consumer_id JOIN class_ids c ON c.source_id = a.resource_class_id;
