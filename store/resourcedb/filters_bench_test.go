package resourcedb_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/resourcedb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// BenchmarkFilters takes the first page under filters that few resources meet,
// that many meet, and that almost all meet, as an administrator and as a
// member. The world has 5,000 resources, or 100,000 if CADASTRE_TEST_PART is 1.
func BenchmarkFilters(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { benchmarkFilters(b, storetest.SQLite(b)) })
	b.Run("postgres", func(b *testing.B) { benchmarkFilters(b, storetest.Postgres(b)) })
}

func benchmarkFilters(b *testing.B, url string) {
	fillFiltered(b, url, planSize())
	s := storetest.Open(b, url)
	if err := s.LoadResources(b.Context()); err != nil {
		b.Fatal(err)
	}
	first := storetest.AsAdmin()
	someType, err := s.ResourceTypes(first, metadef.ResourceTypeFilter{}, page.Order{Field: "NAME"}, page.Request{})
	if err != nil {
		b.Fatal(err)
	}
	one := func(of resource.MetadataCondition) *resource.ConditionInput {
		return &resource.ConditionInput{Metadata: &of}
	}
	var projects []string
	for i := range 40 {
		projects = append(projects, fmt.Sprint("project-", 2*i))
	}
	five := pairs("five-0", "yes", "five-1", "yes", "five-2", "yes", "five-3", "yes", "five-4", "yes")
	for _, of := range []struct {
		name   string
		order  string
		filter resource.Filter
	}{
		{"five", "NAME", resource.Filter{Metadata: five}},
		{"five", "UPDATED_AT", resource.Filter{Metadata: five}},
		{"two", "NAME", resource.Filter{Metadata: pairs("third", "yes", "fiftieth", "v7")}},
		{"not-exists", "NAME",
			resource.Filter{Where: &resource.ConditionInput{Not: one(resource.MetadataCondition{Key: "third",
				Exists: new(true)})}}},
		{"projects", "NAME", resource.Filter{ProjectIDs: projects}},
		{"pair-type", "NAME",
			resource.Filter{Types: []string{someType.Items[0].Name}, Metadata: pairs("third", "yes")}},
		{"contains", "NAME",
			resource.Filter{Where: one(resource.MetadataCondition{Key: "own", Contains: new("wn-777")})}},
		{"contains-none", "NAME",
			resource.Filter{Where: one(resource.MetadataCondition{Key: "own", Contains: new("absent")})}},
		{"contains-elsewhere", "NAME",
			resource.Filter{Where: one(resource.MetadataCondition{Key: "third", Contains: new("wn-")})}},
		{"name-contains", "NAME", resource.Filter{NameContains: new("E-0777")}},
		{"search", "NAME", resource.Filter{Search: new("own-777")}},
		{"pair", "NAME", resource.Filter{Metadata: pairs("third", "yes")}},
		{"pair", "CREATED_AT", resource.Filter{Metadata: pairs("third", "yes")}},
		{"pair-rare", "NAME", resource.Filter{Metadata: pairs("fiftieth", "v7")}},
		{"types", "NAME", resource.Filter{Types: []string{someType.Items[0].Name}}},
		{"none", "NAME", resource.Filter{}},
	} {
		for viewer, ctx := range map[string]context.Context{"admin": storetest.AsAdmin(),
			"member": asMember("project-3")} {
			b.Run(of.name+"-"+strings.ToLower(of.order)+"/"+viewer, func(b *testing.B) {
				fastest := time.Hour // the machine does other work, too
				for b.Loop() {
					began := time.Now()
					ctx, reading := s.WithReading(ctx, store.AtOnce)
					found, err := s.Resources(ctx, of.filter, page.Order{Field: of.order}, page.Request{First: new(50)})
					reading.End()
					if err != nil {
						b.Fatal(err)
					}
					fastest = min(fastest, time.Since(began))
					b.ReportMetric(float64(len(found.Items)), "rows")
				}
				b.ReportMetric(fastest.Seconds()*1000, "fastest-ms")
			})
		}
	}
}

// fillFiltered writes resources of 100 projects and 3 types. Each pair five-N:
// yes is on a fifth of them and all five are on one of 3,125; third: yes is on
// 37 of 100, each value of fiftieth on one of 50, and own differs everywhere.
func fillFiltered(t testing.TB, url string, count int) {
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
	uuid, name, id := "printf('00000000-0000-4000-8000-%012d', n)",
		"printf('resource-%06d', (n * 7919) % 1000000)", "CAST(id AS text)"
	if strings.HasPrefix(url, "postgres") {
		run("SET LOCAL statement_timeout = 0")
		uuid, name = "'00000000-0000-4000-8000-' || lpad(n::text, 12, '0')",
			"'resource-' || lpad(((n * 7919) % 1000000)::text, 6, '0')"
	}
	run(fmt.Sprintf("WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)", count-1) + ` INSERT INTO resources
		(uuid, resource_type_id, name, name_key, project_id, visibility, revision, created_at, updated_at)
		SELECT ` + uuid + `, (SELECT MIN(id) FROM resource_types) + n % 3, ` + name + `, ` + name + `, 'project-' || (n % 100),
		CASE n % 4 WHEN 0 THEN 'PRIVATE' ELSE 'PUBLIC' END, 1, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP FROM numbers`)
	items := func(key, value string, hash string, args ...any) {
		run(fmt.Sprintf(`INSERT INTO metadata_items (resource_id, key, value, value_hash, value_prefix, user_modifiable, created_at, updated_at)
			SELECT id, '%s', %s, %s, %s, true, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP FROM resources`, key, value, hash,
			value), args...)
	}
	yes, no := resourcedb.HashOf("yes"), resourcedb.HashOf("no")
	for i, divisor := range []int{1, 5, 25, 125, 625} {
		when := fmt.Sprintf("CASE WHEN id / %d %% 5 = 0 THEN ", divisor)
		items(fmt.Sprint("five-", i), when+"'yes' ELSE 'no' END", fmt.Sprint(when, yes, " ELSE ", no, " END"))
	}
	items("third", "CASE WHEN id % 100 < 37 THEN 'yes' ELSE 'no' END",
		fmt.Sprint("CASE WHEN id % 100 < 37 THEN ", yes, " ELSE ", no, " END"))
	hashes := lists.Map(make([]struct{}, 50), func(struct{}) string { return "" })
	for i := range hashes {
		hashes[i] = fmt.Sprintf("WHEN %d THEN %d", i, resourcedb.HashOf(fmt.Sprint("v", i)))
	}
	items("fiftieth", "'v' || (id % 50)", "CASE (id % 50) "+strings.Join(hashes, " ")+" END")
	items("own", "'own-' || "+id, "id")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(url, "postgres") {
		if _, err := db.Exec("VACUUM ANALYZE"); err != nil {
			t.Fatal(err)
		}
	}
}
