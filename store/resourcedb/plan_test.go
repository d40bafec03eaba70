package resourcedb_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/resourcedb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestMetadataIsFoundByAnIndex fills a database with resources of 5 items each.
// A page found by metadata and shown with it must take three statements, and
// the database must find it by the index on keys and the hashes, or prefixes,
// of values.
func TestMetadataIsFoundByAnIndex(t *testing.T) {
	t.Parallel()
	count := planSize()
	storetest.EachURL(t, func(t *testing.T, url string) {
		fillResources(t, url, count)
		s, recorded := resourcedb.RecordStatements(storetest.Open(t, url).ResourceStore)
		ctx, statements := store.CountStatements(storetest.AsAdmin())
		filter := resource.Filter{Metadata: pairs("key-0", "value-7", "key-3", "value-7")}
		page, err := s.Resources(ctx, filter, page.Order{Field: "NAME"}, page.Request{})
		if err != nil || len(page.Items) != min(50, count/500) {
			t.Fatalf("%d resources, error %v", len(page.Items), err)
		}
		var ids []int64
		for _, r := range page.Items {
			ids = append(ids, r.ID)
		}
		items, err := s.MetadataOf(ctx, ids, nil)
		if err != nil || len(items) != len(ids) || len(items[ids[0]]) != 5 {
			t.Fatalf("metadata of %d resources, error %v", len(items), err)
		}
		if total, err := s.CountResources(ctx, filter); err != nil || total != count/500 {
			t.Errorf("%d resources in all, error %v", total, err)
		}
		if statements() != 3 {
			t.Errorf("%d statements, want 3", statements())
		}
		long, prefix := strings.Repeat("界", 80), "value-77"
		for _, where := range []resource.MetadataCondition{{Key: "key-1", Prefix: &prefix},
			{Key: "key-2", Prefix: &long}, {Key: "key-4", In: []string{"value-1", "value-2"}},
			{Key: "key-4", In: []string{"value-1", long}}} {
			if _, err := s.CountResources(ctx,
				resource.Filter{Where: &resource.ConditionInput{Metadata: &where}}); err != nil {
				t.Fatal(err)
			}
		}
		checkIndexes(t, s, *recorded, "metadataitem_key_value_prefix_resource_id", "metadataitem_resource_id_key",
			"metadataitem_key_value_prefix_resource_id",
			"metadataitem_key_value_prefix_resource_id", "metadataitem_key_value_prefix_resource_id",
			"metadataitem_key_value_prefix_resource_id", "metadataitem_key_value_hash_resource_id")
	})
}

// checkIndexes checks that each statement finds metadata by its index.
func checkIndexes(t *testing.T, s *resourcedb.ResourceStore, statements []resourcedb.Statement, indexes ...string) {
	t.Helper()
	if len(statements) != len(indexes) {
		t.Fatalf("%d statements were recorded, want %d", len(statements), len(indexes))
	}
	for i, statement := range statements {
		plan := resourcedb.Explain(t, s, statement)
		if !strings.Contains(plan, indexes[i]) || strings.Contains(plan, "Seq Scan on metadata_items") ||
			strings.Contains(plan, "SCAN metadata_items") {
			t.Errorf("statement %d does not use %s:\n%s\n%s", i, indexes[i], statement.Query, plan)
		}
	}
}

// TestNestedPagesReadWhatTheyShow checks a page of each type's resources, and
// the look behind its cursor. The database must read them from an index and
// stop at the page's size for each type, in one statement for any number of
// types.
func TestNestedPagesReadWhatTheyShow(t *testing.T) {
	t.Parallel()
	count := planSize()
	storetest.EachURL(t, func(t *testing.T, url string) {
		fillResources(t, url, count)
		s := storetest.Open(t, url)
		types, err := s.ResourceTypes(storetest.AsAdmin(), metadef.ResourceTypeFilter{},
			page.Order{Field: "NAME"}, page.Request{})
		if err != nil {
			t.Fatal(err)
		}
		ids, filled := []int64{}, types.Items[0].ID
		for _, of := range types.Items {
			ids, filled = append(ids, of.ID), min(filled, of.ID)
		}
		recording, recorded := resourcedb.RecordStatements(s.ResourceStore)
		for _, viewer := range []context.Context{storetest.AsAdmin(), asMember("demo")} {
			readAround(t, viewer, recording, ids, filled)
		}
		if len(*recorded) != 6 {
			t.Fatalf("%d statements, want 6", len(*recorded))
		}
		for _, statement := range *recorded {
			plan := resourcedb.Explain(t, recording, statement)
			if !strings.Contains(plan, "resource_resource_type_id_name_uuid") ||
				strings.Count(plan, "USE TEMP B-TREE") > 1 || strings.Contains(plan, "Seq Scan on resources") {
				t.Errorf("it reads more than the page:\n%s\n%s", statement.Query, plan)
			}
		}
	})
}

// TestOrdersReadWhatTheyShow checks that a page in the order of types or of
// projects walks an index and reads about as many resources as it shows.
func TestOrdersReadWhatTheyShow(t *testing.T) {
	t.Parallel()
	count := planSize()
	storetest.EachURL(t, func(t *testing.T, url string) {
		fillResources(t, url, count)
		recording, recorded := resourcedb.RecordStatements(storetest.Open(t, url).ResourceStore)
		ten := 10
		for _, of := range []struct{ order, index string }{
			{"TYPE", "resource_resource_type_id_uuid"}, {"PROJECT", "resource_project_id_uuid"},
		} {
			for _, descending := range []bool{false, true} {
				order := page.Order{Field: of.order, Descending: descending}
				*recorded = nil
				first, err := recording.Resources(storetest.AsAdmin(),
					resource.Filter{}, order, page.Request{First: &ten})
				if err != nil || len(first.Items) != ten {
					t.Fatalf("%d resources, error %v", len(first.Items), err)
				}
				began := time.Now()
				if _, err := recording.Resources(storetest.AsAdmin(), resource.Filter{}, order,
					page.Request{First: &ten, After: &first.Cursors[9]}); err != nil {
					t.Fatal(err)
				}
				t.Logf("%s: the second page in %v", of.order, time.Since(began))
				for _, statement := range *recorded {
					plan := resourcedb.Explain(t, recording, statement)
					if !strings.Contains(statement.Query, "FROM \"resources\"") &&
						!strings.Contains(statement.Query, "FROM `resources`") {
						continue // reads the type names of the page
					}
					if !strings.Contains(plan, of.index) || strings.Contains(plan, "Seq Scan on resources") ||
						strings.Contains(plan, "SCAN resources") && of.order == "TYPE" {
						t.Errorf("%s reads more than the page:\n%s\n%s", of.order, statement.Query, plan)
					}
				}
			}
		}
	})
}

// TestAMembersPageReadsWhatItShows checks a page of everything that a member
// sees: the public resources and the resources of their project. The database
// must read a page of each from an index in the order of names.
func TestAMembersPageReadsWhatItShows(t *testing.T) {
	t.Parallel()
	count := planSize()
	storetest.EachURL(t, func(t *testing.T, url string) {
		fillResources(t, url, count)
		recording, recorded := resourcedb.RecordStatements(storetest.Open(t, url).ResourceStore)
		ten, member := 10, asMember("demo")
		for _, order := range []page.Order{{Field: "NAME"}, {Field: "NAME", Descending: true}} {
			*recorded = nil
			first, err := recording.Resources(member, resource.Filter{}, order, page.Request{First: &ten})
			if err != nil || len(first.Items) != ten {
				t.Fatalf("%d resources, error %v", len(first.Items), err)
			}
			if _, err := recording.Resources(member, resource.Filter{}, order,
				page.Request{First: &ten, After: &first.Cursors[9]}); err != nil {
				t.Fatal(err)
			}
			for _, statement := range *recorded {
				plan := resourcedb.Explain(t, recording, statement)
				indexes := []string{"resource_visibility_name_uuid", "resource_project_id_name_uuid"}
				if strings.HasPrefix(url, "postgres") { // PostgreSQL knows that the viewer sees all of them
					indexes = []string{"name_uuid"}
				}
				for _, index := range indexes {
					if !strings.Contains(plan, index) {
						t.Errorf("%s is not gone down:\n%s\n%s", index, statement.Query, plan)
					}
				}
				if strings.Count(plan, "USE TEMP B-TREE")+strings.Count(plan, "Sort Key") > 1 ||
					strings.Contains(plan, "Seq Scan on resources") {
					t.Errorf("it reads more than the page:\n%s\n%s", statement.Query, plan)
				}
			}
		}
	})
}

// TestAPageOfATypeReadsWhatItShows checks a page of the resources of types on
// SQLite, for a viewer who sees all of them. The database must read a page of
// each type from the index that has it in order.
func TestAPageOfATypeReadsWhatItShows(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	fillResources(t, url, planSize())
	s := storetest.Open(t, url)
	types, err := s.ResourceTypes(storetest.AsAdmin(), metadef.ResourceTypeFilter{},
		page.Order{Field: "NAME"}, page.Request{})
	if err != nil {
		t.Fatal(err)
	}
	filter := resource.Filter{}
	for _, of := range types.Items[:3] {
		filter.Types = append(filter.Types, of.Name)
	}
	recording, recorded := resourcedb.RecordStatements(s.ResourceStore)
	ten := 10
	for _, descending := range []bool{false, true} {
		if _, err := recording.Resources(storetest.AsAdmin(), filter, page.Order{Field: "NAME", Descending: descending},
			page.Request{First: &ten}); err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range *recorded {
		plan := resourcedb.Explain(t, recording, statement)
		if !strings.Contains(plan, "resource_resource_type_id_name_uuid") ||
			strings.Count(plan, "USE TEMP B-TREE") > 1 {
			t.Errorf("it reads more than the page:\n%s\n%s", statement.Query, plan)
		}
	}
}

// readAround reads the first page of the resources of each type, looks behind
// the second, and reads the first one backward. Only the type filled has any
// resources.
func readAround(t *testing.T, viewer context.Context, s *resourcedb.ResourceStore, types []int64, filled int64) {
	t.Helper()
	ten, order := 10, page.Order{Field: "NAME"}
	request := page.Request{First: &ten}
	began := time.Now()
	pages, err := s.ResourcesWithin(viewer, resource.ResourcesOfType, types, resource.Filter{}, order, request)
	if err != nil || len(pages[filled].Items) != ten || !pages[filled].HasMore || len(pages) != len(types) {
		t.Fatalf("%d pages, error %v", len(pages), err)
	}
	paged := time.Since(began)
	request.After = &pages[filled].Cursors[ten-1]
	behind, err := s.ResourcesBehind(viewer, resource.ResourcesOfType, types, resource.Filter{}, order, request)
	if err != nil || !behind[filled] || len(behind) != 1 {
		t.Fatalf("behind: %v, error %v", behind, err)
	}
	pages, err = s.ResourcesWithin(viewer, resource.ResourcesOfType, types, resource.Filter{}, order,
		page.Request{Last: &ten, Before: request.After})
	if err != nil || len(pages[filled].Items) != ten-1 {
		t.Fatalf("backward: %d, error %v", len(pages[filled].Items), err)
	}
	t.Logf("a page in %v, all in %v", paged, time.Since(began))
}

// planSize is the number of resources that the plans are made for: 100,000 if
// CADASTRE_TEST_PART is 1, and fewer otherwise.
func planSize() int {
	if soak.Full() {
		return 100_000
	}
	return 5_000
}

// fillResources inserts resources in bulk. Their items have 500 different
// values.
func fillResources(t testing.TB, url string, count int) {
	t.Helper()
	migrate(t, url)
	db := storetest.Database(t, url)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	run := func(statement string, args ...any) {
		t.Helper()
		if _, err := tx.Exec(statement, args...); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	numbers, uuid := fmt.Sprintf("WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)", count-1),
		"printf('00000000-0000-4000-8000-%012d', n)"
	name := "printf('resource-%06d', n)"
	if strings.HasPrefix(url, "postgres") {
		run("SET LOCAL statement_timeout = 0")
		uuid, name = "'00000000-0000-4000-8000-' || lpad(n::text, 12, '0')", "'resource-' || lpad(n::text, 6, '0')"
	}
	fillValues(run)
	run(numbers + ` INSERT INTO resources (uuid, resource_type_id, name, name_key, project_id, visibility, revision, created_at, updated_at)
		SELECT ` + uuid + `, (SELECT MIN(id) FROM resource_types), ` + name + `, ` + name +
		`, 'demo', 'PUBLIC', 1, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP FROM numbers`)
	run(`WITH RECURSIVE keys (k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM keys WHERE k < 4)
		INSERT INTO metadata_items (resource_id, key, value, value_hash, value_prefix, user_modifiable, created_at, updated_at)
		SELECT resources.id, 'key-' || k, vals.value, vals.value_hash, vals.value, true, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP
		FROM resources JOIN keys ON true JOIN vals ON vals.n = resources.id % 500`)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(url, "postgres") {
		return // SQLite gathers no statistics here
	}
	if _, err := db.Exec("ANALYZE"); err != nil {
		t.Fatal(err)
	}
}

// fillValues makes a temporary table of 500 values with their hashes.
func fillValues(run func(statement string, args ...any)) {
	run("CREATE TEMPORARY TABLE vals (n bigint, value varchar(1023), value_hash bigint)")
	for n := range 500 {
		value := fmt.Sprint("value-", n)
		run(fmt.Sprintf("INSERT INTO vals VALUES (%d, '%s', %d)", n, value, resourcedb.HashOf(value)))
	}
	run("CREATE UNIQUE INDEX vals_n ON vals (n)")
	run("ANALYZE vals")
}

// migrate creates the tables of a database.
func migrate(t testing.TB, url string) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMetadataOfOneResourceLooksAtNoOther checks how the database reads the
// metadata of one resource for a member. It must test whether the member may
// see that resource, and not list all resources that they may see.
func TestMetadataOfOneResourceLooksAtNoOther(t *testing.T) {
	t.Parallel()
	count := planSize()
	storetest.EachURL(t, func(t *testing.T, url string) {
		fillResources(t, url, count)
		recording, recorded := resourcedb.RecordStatements(storetest.Open(t, url).ResourceStore)
		one := 1
		page, err := recording.Resources(asMember("demo"), resource.Filter{},
			page.Order{Field: "NAME"}, page.Request{First: &one})
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("%d resources, error %v", len(page.Items), err)
		}
		*recorded = nil
		if items, err := recording.MetadataOf(asMember("demo"), []int64{page.Items[0].ID}, nil); err != nil ||
			len(items) != 1 {
			t.Fatalf("metadata of %d resources, error %v", len(items), err)
		}
		for _, statement := range *recorded {
			plan := resourcedb.Explain(t, recording, statement)
			if strings.Contains(plan, "SCAN resources") || strings.Contains(plan, "SCAN seen") ||
				strings.Contains(plan, "Seq Scan on resources") ||
				!strings.Contains(plan, "USING INTEGER PRIMARY KEY (rowid=?)") &&
					!strings.Contains(plan, "Index Scan") {
				t.Errorf("it looks at other resources:\n%s\n%s", statement.Query, plan)
			}
		}
	})
}
