package resourcedb_test

import (
	"context"
	"testing"

	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/resourcedb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// BenchmarkLists takes pages, counts and facets of resources with 5 items each:
// 5,000, or 100,000 if CADASTRE_TEST_PART is 1. Two of three have the pair
// key-1 value-0, and each has its own value of key-4.
func BenchmarkLists(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { benchmarkLists(b, storetest.SQLite(b)) })
	b.Run("postgres", func(b *testing.B) { benchmarkLists(b, storetest.Postgres(b)) })
}

func benchmarkLists(b *testing.B, url string) {
	fillResources(b, url, planSize())
	db := storetest.Database(b, url)
	for _, update := range []string{
		`UPDATE metadata_items SET value = 'value-0', value_prefix = 'value-0', value_hash = $1 WHERE key = 'key-1' AND resource_id % 3 <> 0`,
		`UPDATE metadata_items SET value = 'own-' || resource_id, value_prefix = 'own-' || resource_id, value_hash = resource_id + $1 WHERE key = 'key-4'`,
	} {
		if _, err := db.Exec(update, resourcedb.HashOf("value-0")); err != nil {
			b.Fatal(err)
		}
	}
	if url[0] == 'p' {
		if _, err := db.Exec("VACUUM ANALYZE metadata_items"); err != nil {
			b.Fatal(err)
		}
	}
	s := storetest.Open(b, url)
	if err := s.LoadResources(b.Context()); err != nil {
		b.Fatal(err)
	}
	frequent, rare := resource.MetadataCondition{Key: "key-1", Equals: new("value-0")},
		resource.MetadataCondition{Key: "key-2", Equals: new("value-7")}
	one := func(of resource.MetadataCondition) resource.ConditionInput {
		return resource.ConditionInput{Metadata: &of}
	}
	pageOf := func(filter resource.Filter) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.Resources(ctx, filter, page.Order{Field: "NAME"}, page.Request{First: new(50)})
			return err
		}
	}
	facets := func(of ...resource.FacetRequest) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.Facets(ctx, resource.EveryResource, []int64{0}, resource.Filter{}, of)
			return err
		}
	}
	valuesOf := func(key string) resource.FacetRequest {
		return resource.FacetRequest{By: resource.FacetMetadataValue, Key: &key, First: 20}
	}
	for _, of := range []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"page/frequent", pageOf(resource.Filter{Metadata: pairs("key-1", "value-0")})},
		{"page/rare", pageOf(resource.Filter{Metadata: pairs("key-2", "value-7")})},
		{"page/both", pageOf(resource.Filter{Metadata: pairs("key-1", "value-0", "key-2", "value-7")})},
		{"page/any",
			pageOf(resource.Filter{Where: &resource.ConditionInput{Any: []resource.ConditionInput{one(frequent),
				one(rare)}}})},
		{"page/not", pageOf(resource.Filter{Where: &resource.ConditionInput{Not: new(one(frequent))}})},
		{"count/frequent", func(ctx context.Context) error {
			_, err := s.CountResources(ctx, resource.Filter{Metadata: pairs("key-1", "value-0")})
			return err
		}},
		{"facet/keys", facets(resource.FacetRequest{By: resource.FacetMetadataKey, First: 100})},
		{"facet/values", facets(valuesOf("key-0"), valuesOf("key-1"), valuesOf("key-2"))},
		{"facet/own", facets(valuesOf("key-4"))},
		{"explain", func(ctx context.Context) error {
			_, err := s.ExplainResources(ctx, resource.Filter{Metadata: pairs("key-1", "value-0", "key-2", "value-7")})
			return err
		}},
	} {
		for viewer, ctx := range map[string]context.Context{"admin": storetest.AsAdmin(), "member": asMember("demo")} {
			b.Run(of.name+"/"+viewer, func(b *testing.B) {
				for b.Loop() {
					if err := of.do(ctx); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
