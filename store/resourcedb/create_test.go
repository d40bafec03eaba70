package resourcedb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/resourcedb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// creators are the viewers who create: in their own project, or in any.
var creators = []access.Viewer{
	{UserID: "ada", ProjectID: "operations", Roles: []string{access.RoleAdmin}},
	{UserID: "mel", ProjectID: "demo", Roles: []string{access.RoleMember}},
	{UserID: "sam", ProjectID: "demo", Roles: []string{access.RoleService}},
	{UserID: "nobody", Roles: []string{access.RoleMember}},
}

// newcomers draws resources from a small set of uuids, so that they collide.
type newcomers struct{ *rand.Rand }

func (d newcomers) uuid() string { return storetest.UUID(d.IntN(16)) }

func (d newcomers) resource() resource.Input {
	in := resource.Input{Name: fmt.Sprint("r", d.IntN(3)), UUID: new(d.uuid()),
		Type: []string{"physical:host", "physical:host", "OS::Manila::ShareGroup", "OS::Manila::Share",
			"OS::Manila::ShareAccessRule", "Strict", "none"}[d.IntN(7)]}
	if d.IntN(2) == 0 {
		in.Parent = new(d.uuid())
	}
	if d.IntN(10) == 0 {
		in.Name = ""
	}
	if d.IntN(4) == 0 {
		in.ProjectID = new([]string{"demo", "operations"}[d.IntN(2)])
	}
	if d.IntN(3) == 0 {
		in.Visibility = new(access.Public)
	}
	for range d.IntN(4) {
		in.Metadata = append(in.Metadata, metadef.KeyValue{Key: []string{"size", "a", "b"}[d.IntN(3)],
			Value: []string{"7", "<&> \u2028 ÄÖ", "TRUE"}[d.IntN(3)]})
	}
	if d.IntN(6) == 0 {
		in.ServiceMetadata = []metadef.KeyValue{{Key: "owned", Value: "x"}}
	}
	if d.IntN(4) == 0 {
		in.Capabilities = []metadef.KeyValue{{Key: fmt.Sprint("c", d.IntN(3)), Value: `["a","b"]`}}
	}
	if d.IntN(3) == 0 {
		in.Tags = []string{"Tag", []string{"tag", "other"}[d.IntN(2)]}
	}
	if d.IntN(3) == 0 {
		in.Description = new("Über")
	}
	return in
}

func (d newcomers) list(most int) []resource.Input {
	items := make([]resource.Input, 1+d.IntN(most))
	for i := range items {
		items[i] = d.resource()
	}
	return items
}

// newcomersFixture creates a strict type and resources of two projects.
func newcomersFixture(t *testing.T, s *store.Store) {
	t.Helper()
	ctx := storetest.AsAdmin()
	size := metadeftest.Property("size", metadef.Integer)
	_, err := s.CreateNamespace(ctx, metadef.NamespaceInput{
		Name: "Strict", NamespacePatch: metadef.NamespacePatch{Visibility: metadeftest.To(access.Public)},
		Properties:               []metadef.PropertyInput{size},
		ResourceTypeAssociations: []metadef.DocumentAssociation{{ResourceType: "Strict"}},
	})
	if err == nil {
		_, err = s.UpdateResourceType(ctx, metadef.ResourceTypeChange{Name: "Strict", Strict: metadeftest.To(true)})
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, project := range []string{"demo", "operations"} {
		_, err := s.CreateResource(ctx, resource.Input{Type: "OS::Manila::ShareGroup", Name: "group",
			UUID: new(storetest.UUID(i)), ProjectID: &project})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// resourcesIn returns the resources, the audit log and the change log of a
// database, without row ids and times.
func resourcesIn(t *testing.T, url string) string {
	db := storetest.Database(t, url)
	var out strings.Builder
	for _, query := range []string{
		`SELECT r.uuid, t.name, COALESCE(q.uuid, ''), r.name, r.name_key, COALESCE(r.description, '-'), COALESCE(r.description_key, '-'), r.project_id, r.visibility, CAST(r.revision AS text)
			FROM resources r JOIN resource_types t ON t.id = r.resource_type_id LEFT JOIN resources q ON q.id = r.parent_id`,
		`SELECT r.uuid, m.key, m.value, CAST(m.value_hash AS text), m.value_prefix, COALESCE(m.value_key, '-'), CASE WHEN m.user_modifiable THEN 'y' ELSE 'n' END, CAST(m.derived_from AS text)
			FROM metadata_items m JOIN resources r ON r.id = m.resource_id`,
		`SELECT r.uuid, g.name, g.name_key FROM resource_tags g JOIN resources r ON r.id = g.resource_id`,
		`SELECT r.uuid, c.name, v.value FROM capability_values v JOIN capabilities c ON c.id = v.capability_id JOIN resources r ON r.id = v.resource_id`,
		`SELECT c.name, n.value, CAST(n.resource_count AS text) FROM capability_counts n JOIN capabilities c ON c.id = n.capability_id`,
		storetest.AuditedRows, storetest.ChangedRows,
	} {
		for _, row := range storetest.Rows(t, db, query) {
			fmt.Fprintln(&out, row)
		}
	}
	return out.String()
}

// TestManyResourcesAreCreatedAsOneAfterTheOther creates random resources as
// random viewers twice: by one mutation each, and by one mutation for many in
// another database. Outcomes, databases, audit logs and change logs must be the
// same. An atomic input must be stored exactly when every row would be.
func TestManyResourcesAreCreatedAsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	storetest.EachPair(t, func(t *testing.T, one, other string) {
		singly, together := storetest.Open(t, one), storetest.Open(t, other)
		newcomersFixture(t, singly)
		newcomersFixture(t, together)
		d := newcomers{rand.New(rand.NewPCG(3, 3))}
		for round := range 40 {
			items := d.list(1 + round%7)
			ctx := access.WithViewer(context.Background(), creators[d.IntN(len(creators))])
			refused := storetest.OneByOne(items, func(item resource.Input) error {
				_, err := singly.CreateResource(ctx, item)
				return err
			})
			contents := func() string { return resourcesIn(t, other) }
			storetest.Together(t, round%2 == 0, refused, contents,
				func(atomic bool) ([]resourcedb.ResourceOutcome, error) {
					return together.CreateResources(ctx, resource.Inputs{Items: items, Atomic: atomic})
				})
			if a, b := resourcesIn(t, one), resourcesIn(t, other); a != b {
				t.Fatalf("one by one:\n%s\ntogether:\n%s", a, b)
			}
			for range 5 {
				uuid := d.uuid()
				_, errOne := singly.DeleteResource(storetest.AsAdmin(), uuid, nil)
				_, errOther := together.DeleteResource(storetest.AsAdmin(), uuid, nil)
				if (errOne == nil) != (errOther == nil) {
					t.Fatal(errOne, errOther)
				}
			}
		}
	})
}

// TestManyResourcesBesideOtherWriters creates many resources while other
// writers create and delete the same ones. Each resource that the store reports
// as created must have exactly one event for it.
func TestManyResourcesBesideOtherWriters(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := storetest.Open(t, url)
		newcomersFixture(t, s)
		var created [4]int
		var writers sync.WaitGroup
		for w := range created {
			writers.Go(func() {
				d := newcomers{rand.New(rand.NewPCG(uint64(w), 5))}
				for range 12 {
					outcomes, err := s.CreateResources(storetest.AsAdmin(),
						resource.Inputs{Items: d.list(5), Atomic: d.IntN(3) == 0})
					if _, refused := problem.Of(err); err != nil && !refused {
						t.Error(err)
					}
					for _, outcome := range outcomes {
						if err == nil && outcome.Row != nil {
							created[w]++
						}
					}
					for range 4 {
						_, err := s.DeleteResource(storetest.AsAdmin(), d.uuid(), nil)
						if err != nil && !errors.Is(err, problem.ErrNotFound) && !errors.Is(err, problem.ErrInUse) {
							t.Error(err)
						}
					}
				}
			})
		}
		writers.Wait()
		events := storetest.Rows(t, storetest.Database(t, url),
			`SELECT key FROM audit_events WHERE action = 'createResources'`)
		if told := created[0] + created[1] + created[2] + created[3]; len(events) != told {
			t.Errorf("%d resources were created, and %d events say so", told, len(events))
		}
	})
}
