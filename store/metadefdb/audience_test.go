package metadefdb_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// sharedNamespaces creates namespaces with random projects, visibility and
// members that apply to the type X.
func sharedNamespaces(t *testing.T, s *store.Store, chance *rand.Rand, count int, projects []string) {
	t.Helper()
	admin := storetest.AsAdmin()
	for i := range count {
		name := fmt.Sprintf("n%02d", i)
		visibility := []access.Visibility{access.Private, access.Private, access.Public}[chance.IntN(3)]
		_, err := s.CreateNamespace(admin, metadef.NamespaceInput{Name: name,
			NamespacePatch: metadef.NamespacePatch{Visibility: metadeftest.To(visibility),
				Owner: metadeftest.To(projects[chance.IntN(4)])},
			Properties:               []metadef.PropertyInput{metadeftest.Property(name, metadef.String)},
			ResourceTypeAssociations: []metadef.DocumentAssociation{{ResourceType: "X"}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, project := range []string{projects[chance.IntN(4)], metadef.EveryProject}[:chance.IntN(3)] {
			if _, _, err := s.ShareNamespace(admin, name, project, metadef.Reader, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestRulesAreOfTheNamespacesThatAProjectSees makes random namespaces. The
// rules of a project must come from the namespaces that its readers list, and
// show a viewer the definitions of namespaces that the viewer lists.
func TestRulesAreOfTheNamespacesThatAProjectSees(t *testing.T) {
	t.Parallel()
	const namespaces = 40
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		chance := rand.New(rand.NewPCG(9, 4))
		projects := []string{"a", "b", "c", "d"}
		sharedNamespaces(t, s, chance, namespaces, projects)
		listed := func(project string) map[string]bool {
			ctx := access.WithViewer(t.Context(), access.Viewer{ProjectID: project, Roles: []string{access.RoleReader}})
			first := namespaces
			rows, err := s.Namespaces(ctx, metadef.NamespaceFilter{},
				page.Order{Field: "NAME"}, page.Request{First: &first})
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			for _, row := range rows.Items {
				found[row.Name] = true
			}
			return found
		}
		id, err := s.Ent.ResourceType.Query().Where(resourcetype.Name("X")).OnlyID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		everyone := append([]string{""}, projects...)
		var keys []metadefdb.RulesKey
		for _, project := range everyone {
			keys = append(keys, metadefdb.RulesKey{TypeID: id, ProjectID: project})
		}
		for _, viewer := range everyone {
			ctx := access.WithViewer(t.Context(), access.Viewer{ProjectID: viewer, Roles: []string{access.RoleReader}})
			rules, err := s.RulesFor(ctx, s.Ent, keys, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				holds, sees := listed(key.ProjectID), listed(viewer)
				for i := range namespaces {
					name := fmt.Sprintf("n%02d", i)
					item := rules[key].Judge(metadef.MetadataWrite{Items: []metadef.KeyValue{{Key: name,
						Value: "x"}}}).Items[0]
					if item.IsCustom == holds[name] || (len(item.Definitions) > 0) != (holds[name] && sees[name]) {
						t.Errorf("%s on what is %q's as a reader of %q: %+v, want held %v, shown %v", name,
							key.ProjectID, viewer, item, holds[name], sees[name])
					}
				}
			}
		}
	})
}
