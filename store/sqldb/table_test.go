package sqldb_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/metadataitem"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/objectdefinition"
	"github.com/cadastre-dev/cadastre/ent/propertydefinition"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/ent/resourcetag"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/ent/tag"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestTablesReadWhatEntReads compares the rows of Table with the rows of ent,
// field by field.
func TestTablesReadWhatEntReads(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		err := s.FillEmpty(ctx, store.Content{
			Definitions: []string{`{"namespace": "Bare"}`,
				`{"namespace": "Ns", "display_name": "Größe", "visibility": "public", "owner": "o", "protected": true,
				"tags": [{"name": "T"}], "resource_type_associations": [{"name": "OS::Test", "prefix": "p:"}],
				"properties": {"a": {"title": "A", "type": "integer", "maximum": 1.50}},
				"objects": [{"name": "O", "required": ["b"], "properties": {"b": {"title": "B", "type": "string"}}}]}`},
			Resources: []store.ResourceRecord{
				{UUID: storetest.UUID(1), Type: "OS::Test", Name: "first", ProjectID: "p",
					Visibility: access.Private, Tags: []string{"x", "Y"},
					Metadata: []resource.MetadataItem{{Key: "k", Value: "v\t\"\\", UserModifiable: true},
						{Key: "l", Value: ""}}},
				{UUID: storetest.UUID(2), Type: "OS::Test", Name: "second", Description: "d", ProjectID: "p",
					Visibility: access.Public, Parent: storetest.UUID(1)},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		compareRows(t, s.DB, namespace.Table, namespace.Columns, func() ([]*ent.Namespace, error) {
			return s.DB.Ent.Namespace.Query().All(ctx)
		})
		compareRows(t, s.DB, propertydefinition.Table, propertydefinition.Columns,
			func() ([]*ent.PropertyDefinition, error) { return s.DB.Ent.PropertyDefinition.Query().All(ctx) })
		compareRows(t, s.DB, objectdefinition.Table, objectdefinition.Columns, func() ([]*ent.ObjectDefinition, error) {
			return s.DB.Ent.ObjectDefinition.Query().All(ctx)
		})
		compareRows(t, s.DB, tag.Table, tag.Columns, func() ([]*ent.Tag, error) {
			return s.DB.Ent.Tag.Query().All(ctx)
		})
		compareRows(t, s.DB, resourcetype.Table, resourcetype.Columns, func() ([]*ent.ResourceType, error) {
			return s.DB.Ent.ResourceType.Query().All(ctx)
		})
		compareRows(t, s.DB, entresource.Table, entresource.Columns, func() ([]*ent.Resource, error) {
			return s.DB.Ent.Resource.Query().All(ctx)
		})
		compareRows(t, s.DB, resourcetag.Table, resourcetag.Columns, func() ([]*ent.ResourceTag, error) {
			return s.DB.Ent.ResourceTag.Query().All(ctx)
		})
		compareRows(t, s.DB, metadataitem.Table, metadataitem.Columns, func() ([]*ent.MetadataItem, error) {
			return s.DB.Ent.MetadataItem.Query().All(ctx)
		})
	})
}

func compareRows[Row any](t *testing.T, db *sqldb.DB, table string, columns []string, byEnt func() ([]*Row, error)) {
	t.Helper()
	want, err := byEnt()
	if err != nil || len(want) == 0 {
		t.Fatalf("%s by ent: %d rows, %v", table, len(want), err)
	}
	got, err := sqldb.NewTable[Row](table, columns).All(storetest.AsAdmin(), db)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%s: %d rows of %d, %v", table, len(got), len(want), err)
	}
	for i := range want {
		for field := range reflect.TypeFor[Row]().NumField() {
			of := reflect.TypeFor[Row]().Field(field)
			name := of.Tag.Get("json")
			if !of.IsExported() || name == "edges" || name == "-" {
				continue
			}
			g, w := reflect.ValueOf(got[i]).Elem().Field(field).Interface(),
				reflect.ValueOf(want[i]).Elem().Field(field).Interface()
			if !reflect.DeepEqual(g, w) {
				t.Errorf("%s, row %d, %s: got %v, want %v", table, i, of.Name, g, w)
			}
		}
	}
}

// TestTimesAreReadWhereTheyAreWanted checks that times are omitted only for
// timeless tables in a context of WithoutTimes.
func TestTimesAreReadWhereTheyAreWanted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		types := sqldb.NewTable[ent.ResourceType](resourcetype.Table, resourcetype.Columns)
		for _, test := range []struct {
			name  string
			table sqldb.Table[ent.ResourceType]
			want  [2]bool // without and with times
		}{{"always", types, [2]bool{true, true}}, {"timeless", types.Timeless(), [2]bool{false, true}}} {
			for i, ctx := range []context.Context{sqldb.WithoutTimes(ctx), ctx} {
				rows, err := test.table.All(ctx, s.DB)
				if err != nil || len(rows) == 0 || rows[0].CreatedAt.IsZero() == test.want[i] || rows[0].Name == "" {
					t.Errorf("%s, %d: %d rows, %v", test.name, i, len(rows), err)
				}
			}
		}
	})
}
