package upkeep_test

import (
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cadastre-dev/cadastre/ent/migrate"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/store/upkeep"
)

func TestReferencesAreThoseOfTheSchema(t *testing.T) {
	for _, table := range migrate.Tables {
		for _, key := range table.ForeignKeys {
			if got, want := upkeep.Owner(table.Name, key.Columns[0].Name), key.RefTable.Name; got != want {
				t.Errorf("%s of %s refers to %s, want %s", key.Columns[0].Name, table.Name, got, want)
			}
		}
	}
}

// The migrations create the unique indexes of the schema.
func TestUniqueIndexesAreThoseOfTheSchema(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		want := map[string]bool{}
		for _, table := range migrate.Tables {
			for _, one := range table.Columns {
				if one.Unique {
					want[table.Name+"_"+one.Name+"_key"] = true
				}
			}
			for _, one := range table.Indexes {
				if one.Unique {
					want[one.Name] = true
				}
			}
		}
		statements, err := storetest.Open(t, url).UniqueIndexes()
		if err != nil {
			t.Fatal(err)
		}
		for name := range statements {
			if !want[name] {
				t.Errorf("the schema lacks %s", name)
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Errorf("the migrations lack %v", want)
		}
	})
}

// Checks run together with the writers and after them.
func TestRandomHistoriesKeepEveryInvariant(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := filled(t, url)
		var writers sync.WaitGroup
		done := map[string]bool{}
		for history := range 50 {
			writers.Go(func() {
				for w := newWriting(s, uint64(history+1)); w.number < (history+1)*100_000+40; {
					w.do()
				}
			})
			if history%10 == 9 {
				checked(t, url)
				writers.Wait()
			}
		}
		if found := checked(t, url); found.Rows < 5000 {
			t.Errorf("checked %d rows", found.Rows)
		}
		for _, action := range storetest.Rows(t, storetest.Database(t, url),
			"SELECT DISTINCT action FROM audit_events") {
			done[action] = true
		}
		if len(done) < 9 {
			t.Errorf("the histories have only %v", done)
		}
	})
}

// checked checks a database without a fault.
func checked(t *testing.T, url string) upkeep.Checked {
	t.Helper()
	result, err := upkeep.Check(t.Context(), url, func(found upkeep.Finding) error {
		t.Errorf("found %+v", found)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// fault is a statement that breaks an invariant, and the finding that it must
// lead to: its table and the beginning of what must hold.
type fault struct{ statement, table, holds string }

var faults = []fault{
	{"UPDATE inventories SET used = used + 1 WHERE id = (SELECT MIN(id) FROM inventories)",
		"inventories", "an inventory's use"},
	{"UPDATE inventories SET capacity = capacity + 1 WHERE id = (SELECT MIN(id) FROM inventories)",
		"inventories", "an inventory's capacity"},
	{"UPDATE inventories SET min_unit = 0 WHERE id = (SELECT MIN(id) FROM inventories)",
		"inventories", "an inventory has valid"},
	{"UPDATE allocations SET used = 0 WHERE id = (SELECT MIN(id) FROM allocations)",
		"allocations", "an allocation has an amount"},
	{"DELETE FROM inventories WHERE EXISTS (SELECT 1 FROM allocations AS a WHERE a.provider_id = inventories.provider_id)", "allocations", "an allocation has an inventory"},
	{"DELETE FROM allocations WHERE consumer_id = (SELECT MIN(id) FROM consumers)",
		"consumers", "a consumer has allocations"},
	{"UPDATE consumers SET expires_at = '2020-01-01 00:00:00+00:00' WHERE id = (SELECT MIN(id) FROM consumers)",
		"consumers", "a hold that has ended"},
	{"UPDATE consumers SET mappings = '{' WHERE id = (SELECT MIN(id) FROM consumers)", "consumers", "the mappings"},
	{"UPDATE consumers SET uuid = 'X' WHERE id = (SELECT MIN(id) FROM consumers)", "consumers", "uuid is a uuid"},
	{"UPDATE capability_counts SET resource_count = 1000 WHERE id = (SELECT MIN(id) FROM capability_counts)",
		"capability_counts", "the count"},
	{"UPDATE capability_counts SET value_prefix = 'x' WHERE id = (SELECT MIN(id) FROM capability_counts)",
		"capability_counts", "value_prefix"},
	{"UPDATE capability_counts SET value_digest = 'x' WHERE id = (SELECT MIN(id) FROM capability_counts)",
		"capability_counts", "value_digest"},
	{"DELETE FROM capability_counts WHERE id = (SELECT MIN(id) FROM capability_counts)", "capability_members",
		"each capability value has a count"},
	{"DELETE FROM capability_members WHERE resource_id = (SELECT MIN(resource_id) FROM capability_values)",
		"capability_values", "each capability has the members"},
	{"UPDATE capability_values SET value = 'other' WHERE id = (SELECT MIN(id) FROM capability_values)",
		"capability_values", "each capability has the members"},
	{"UPDATE capability_members SET in_list = NOT in_list WHERE id = (SELECT MIN(id) FROM capability_members)",
		"capability_members", "a member says correctly"},
	{"UPDATE capability_members SET value = 'other' WHERE in_list AND id = (SELECT MIN(id) FROM capability_members WHERE in_list)",
		"capability_values", "each capability has the members"},
	{"DELETE FROM capability_members WHERE id = (SELECT MIN(id) FROM capability_members WHERE in_list)",
		"capability_values", "each capability has the members"},
	{"DELETE FROM capability_values WHERE id = (SELECT MIN(id) FROM capability_values)",
		"capability_members", "a member belongs to a capability"},
	{"UPDATE capability_members SET value_hash = 1 WHERE id = (SELECT MIN(id) FROM capability_members)",
		"capability_members", "value_hash"},
	{"UPDATE capability_members SET number_key = 'x' WHERE id = (SELECT MIN(id) FROM capability_members)",
		"capability_members", "number_key"},
	{"UPDATE capability_members SET value_key = 'x' WHERE id = (SELECT MIN(id) FROM capability_members)",
		"capability_members", "value_key"},
	{"UPDATE capabilities SET resource_type_id = (SELECT MAX(id) FROM resource_types)",
		"capability_values", "a capability belongs to the type"},
	{"UPDATE resources SET visibility = 'X' WHERE id = (SELECT MIN(id) FROM resources)", "resources", "visibility"},
	{"UPDATE namespaces SET visibility = 'X' WHERE id = (SELECT MIN(id) FROM namespaces)", "namespaces", "visibility"},
	{"UPDATE resources SET name_key = 'X' WHERE id = (SELECT MIN(id) FROM resources)", "resources", "name_key"},
	{"UPDATE resources SET description = 'X', description_key = NULL WHERE id = (SELECT MIN(id) FROM resources)",
		"resources", "description_key"},
	{"UPDATE resources SET parent_id = id WHERE id = (SELECT MIN(id) FROM resources)", "resources",
		"a tree has a root"},
	{"UPDATE resource_providers SET parent_id = (SELECT MAX(p.id) FROM resource_providers AS p WHERE p.parent_id = resource_providers.id) WHERE id = (SELECT MIN(parent_id) FROM resource_providers)",
		"resource_providers", "a tree has a root"},
	{"UPDATE tags SET parent_id = id WHERE id = (SELECT MIN(id) FROM tags)", "tags", "a tree has a root"},
	{"UPDATE tags SET name_key = 'X' WHERE id = (SELECT MIN(id) FROM tags)", "tags", "name_key"},
	{"UPDATE tags SET parent_id = (SELECT MAX(p.id) FROM tags AS p WHERE p.namespace_id <> tags.namespace_id AND p.parent_id IS NULL) WHERE id = (SELECT MIN(id) FROM tags)", "tags", "a tag is in the namespace"},
	{"UPDATE resource_tags SET name_key = 'X' WHERE id = (SELECT MIN(id) FROM resource_tags)", "resource_tags",
		"name_key"},
	{"UPDATE metadata_items SET value_hash = 1 WHERE id = (SELECT MIN(id) FROM metadata_items)", "metadata_items",
		"value_hash"},
	{"UPDATE metadata_items SET value_prefix = '-' WHERE id = (SELECT MIN(id) FROM metadata_items)", "metadata_items",
		"value_prefix"},
	{"UPDATE metadata_items SET value_key = '-' WHERE id = (SELECT MIN(id) FROM metadata_items)", "metadata_items",
		"value_key"},
	{"UPDATE namespaces SET default_rules = '{' WHERE id = (SELECT MIN(id) FROM namespaces)", "namespaces",
		"the default rules"},
	{"UPDATE namespaces SET search_key = '-' WHERE id = (SELECT MIN(id) FROM namespaces)", "namespaces", "search_key"},
	{"UPDATE object_definitions SET search_key = '-' WHERE id = (SELECT MIN(id) FROM object_definitions)",
		"object_definitions", "search_key"},
	{"UPDATE object_definitions SET required = '-' WHERE id = (SELECT MIN(id) FROM object_definitions)",
		"object_definitions", "the required names"},
	{"UPDATE object_definitions SET namespace_id = (SELECT MAX(id) FROM namespaces) WHERE id = (SELECT MIN(object_id) FROM property_definitions)", "property_definitions", "a property is in the namespace"},
	{"UPDATE property_definitions SET search_key = '-' WHERE id = (SELECT MIN(id) FROM property_definitions)",
		"property_definitions", "search_key"},
	{`UPDATE property_definitions SET keywords = '{"type": "sting"}' WHERE id = (SELECT MIN(id) FROM property_definitions)`, "property_definitions", "the keywords"},
	{"INSERT INTO project_limits (project_id, resource_class, trait, amount) VALUES ('p', 'VCPU', '', -1)",
		"project_limits", "a limit is"},
	{"INSERT INTO place_refusals (consumer, project_id, refused_at, refusal) SELECT uuid, project_id, created_at, '{' FROM consumers WHERE id = 1", "place_refusals", "the refusal of a place"},
	{"INSERT INTO capacity_buckets (size, begins_at, series, content) SELECT 'DAY', created_at, 'FLAVOR', 'AAAA' FROM consumers WHERE id = 1", "capacity_buckets", "a bucket of the capacity history"},
	{"INSERT INTO capacity_buckets (size, begins_at, series, content) SELECT 'WEEK', created_at, 'FLAVOR', '' FROM consumers WHERE id = 1", "capacity_buckets", "the size of a bucket"},
	{"UPDATE resource_providers SET generation = -1 WHERE id = (SELECT MIN(id) FROM resource_providers)",
		"resource_providers", "generation counts"},
	{"UPDATE consumers SET generation = -1 WHERE id = (SELECT MIN(id) FROM consumers)",
		"consumers", "generation counts"},
	{"UPDATE resources SET revision = -1 WHERE id = (SELECT MIN(id) FROM resources)", "resources", "revision counts"},
	{`INSERT INTO resource_origins (origin, region, kind, foreign_id, owned_keys, owned_capabilities, observed_at, resource_id) SELECT 'o', 'r', 'k', 'f', '[]', '{}', created_at, id FROM resources WHERE id = 1`,
		"resource_origins", "the keys of an origin"},
	{"UPDATE sealing_keys SET value = 'x'", "sealing_keys", "the key of cursors"},
	{"INSERT INTO namespace_members (namespace_id, project_id, role, created_at, updated_at) " +
		"SELECT id, 'q', 'X', created_at, created_at FROM namespaces WHERE id = 1",
		"namespace_members", "a member has a role"},
	{"UPDATE traits SET standard = NOT standard WHERE id = (SELECT MIN(id) FROM traits)", "traits", "custom names"},
	{"UPDATE resource_classes SET standard = NOT standard WHERE id = (SELECT MIN(id) FROM resource_classes)",
		"resource_classes", "custom names"},
	{"UPDATE traits SET name = 'CUSTOM_a' WHERE id = (SELECT MIN(id) FROM traits WHERE NOT standard)",
		"traits", "a custom name is"},
	{"UPDATE resources SET name = '', name_key = '' WHERE id = (SELECT MIN(id) FROM resources)", "resources",
		"name is not empty"},
	{"UPDATE consumers SET project_id = '' WHERE id = (SELECT MIN(id) FROM consumers)", "consumers",
		"project_id is not empty"},
	{"UPDATE metadata_items SET key = '' WHERE id = (SELECT MIN(id) FROM metadata_items)", "metadata_items",
		"key is not empty"},
	{"INSERT INTO audit_events (user_id, project_id, action, kind, key, after, created_at) SELECT 'u', '', 'a', 'Trait', 'k', '{', created_at FROM consumers WHERE id = 1", "audit_events",
		"the content of an audit event"},
	{"INSERT INTO idempotency_keys (request, field, step, fingerprint, project_id, outcome, created_at) SELECT 'r', 'f', '', 'f', '', '{', created_at FROM consumers WHERE id = 1", "idempotency_keys", "a stored result"},
	{"INSERT INTO syncs (origin, region, kind, failure) VALUES ('o', 'r', 'k', 'f')", "syncs", "a sync has a time"},
	{"INSERT INTO place_refusals (consumer, project_id, refused_at, refusal) SELECT 'x', 'p', created_at, '{}' FROM consumers WHERE id = 1", "place_refusals", "consumer is a uuid"},
	{"UPDATE resources SET resource_type_id = (SELECT id FROM resource_types WHERE name = 'OS::Manila::ShareExportLocation') WHERE id = (SELECT MIN(id) FROM resources WHERE parent_id IS NULL)",
		"resources", "the parent of a resource of the type OS::Manila::ShareExportLocation"},
	{"UPDATE changes SET kind = 'X' WHERE id = (SELECT MIN(id) FROM changes)", "changes", "a change has a known kind"},
	{"UPDATE changes SET what = 'X' WHERE id = (SELECT MIN(id) FROM changes)", "changes", "a change is a creation"},
	{"UPDATE changes SET audience = NULL WHERE id = (SELECT MIN(id) FROM changes)",
		"changes", "a change has an audience"},
	{"UPDATE changes SET named = '{' WHERE id = (SELECT MIN(id) FROM changes)",
		"changes", "the projects that a change excludes"},
	{`UPDATE changes SET "transaction" = 1000000000000 WHERE id = (SELECT MIN(id) FROM changes)`,
		"changes", "a change belongs to a transaction"},
	{"UPDATE provider_traits SET provider_id = 1000000 WHERE id = (SELECT MIN(id) FROM provider_traits)",
		"provider_traits", "provider_id refers"},
	{"DROP INDEX metadataitem_resource_id_key", "", "unique indexes exist"},
	{"DROP INDEX resources_uuid_key; CREATE INDEX resources_uuid_key ON resources (uuid)", "", "unique indexes exist"},
	{"UPDATE tags SET namespace_id = 1000000 WHERE id = (SELECT MIN(id) FROM tags)", "tags", "namespace_id refers"},
}

// faultsOf are the faults of one kind of database, in addition.
func faultsOf(url string) []fault {
	if strings.HasPrefix(url, "sqlite") {
		return []fault{
			{"UPDATE sqlite_sequence SET seq = 1 WHERE name = 'traits'", "traits", "new ids are higher"},
			{"UPDATE consumers SET expires_at = 'soon' WHERE id = (SELECT MIN(id) FROM consumers)", "consumers",
				"expires_at is a time"},
			{"DELETE FROM resources_name_key_trigrams WHERE rowid = (SELECT MIN(id) FROM resources)",
				"resources", "searches find the row"},
			{"DROP TRIGGER metadata_items_value_trigrams_insert; INSERT INTO metadata_items (resource_id, key, value, value_hash, value_prefix, user_modifiable, created_at, updated_at) " +
				"SELECT resource_id, 'unindexed', value, value_hash, value_prefix, true, created_at, updated_at FROM metadata_items WHERE id = 1", "metadata_items", "searches find the row"},
		}
	}
	return []fault{
		{"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'resource_name_uuid'::regclass", "",
			"indexes are valid"},
		{"INSERT INTO traits (id, name, standard, created_at, updated_at) SELECT 1000000, 'CUSTOM_X', (1 = 2), created_at, created_at FROM traits WHERE id = 1", "traits", "new ids are higher"},
	}
}

func TestEveryFaultIsFound(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := filled(t, url)
		unchecked := "SET LOCAL session_replication_role = replica"
		if !s.Postgres() {
			unchecked = "PRAGMA defer_foreign_keys = on"
		}
		for _, planted := range append(slices.Clone(faults), faultsOf(url)...) {
			found, err := upkeep.Planted(t.Context(), s.DB, unchecked, planted.statement)
			if err != nil {
				t.Errorf("%s: %v", planted.statement, err)
			}
			if !slices.ContainsFunc(found, func(f upkeep.Finding) bool {
				return f.Table == planted.table && strings.HasPrefix(f.Check, planted.holds) && f.Mend != ""
			}) {
				t.Errorf("%s\nled to %+v", planted.statement, found)
			}
		}
		checked(t, url)
	})
}

// A statement that mends a derived value leaves nothing to find.
func TestTheStatementsOfDerivedValuesMend(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := filled(t, url)
		for _, planted := range faults {
			found, err := upkeep.Planted(t.Context(), s.DB, planted.statement)
			if err != nil {
				continue // it breaks a foreign key
			}
			for _, one := range found {
				if one.Kind != upkeep.Derived || !strings.HasPrefix(one.Mend, "UPDATE ") {
					continue
				}
				if left, err := upkeep.Planted(t.Context(), s.DB, planted.statement, one.Mend); err != nil ||
					len(left) >= len(found) {
					t.Errorf("%s\nafter %s: %+v, %v", planted.statement, one.Mend, left, err)
				}
			}
		}
	})
}

func TestADatabaseOfAnotherVersionIsNotCheckedAndNotDumped(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Database(t, url)
		for _, of := range [][2]string{
			{"DELETE FROM schema_migrations WHERE version_id = (SELECT max(version_id) FROM schema_migrations)",
				"lacks the migration"},
			{"INSERT INTO schema_migrations (version_id, is_applied) VALUES (9999, true)", "is newer than this program"},
		} {
			statement, want := of[0], of[1]
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
			if _, err := upkeep.Check(t.Context(), url, ignore); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("checked after %s: %v", statement, err)
			}
			if _, err := upkeep.Dump(t.Context(), url, "", io.Discard); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("dumped after %s: %v", statement, err)
			}
		}
	})
}
