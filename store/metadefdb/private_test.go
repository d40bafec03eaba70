package metadefdb_test

import (
	"context"
	"errors"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestNamesOfPrivateTypesStayPrivate checks this also after the namespace that
// named the type is deleted. All viewers know a type that an administrator
// created, regardless of its users.
func TestNamesOfPrivateTypesStayPrivate(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		seen := func(ctx context.Context, name string) bool {
			t.Helper()
			_, err := s.ResourceTypeNamed(ctx, name)
			if err != nil && !errors.Is(err, problem.ErrNotFound) {
				t.Fatal(err)
			}
			return err == nil
		}
		if _, err := s.CreateResourceType(storetest.AsAdmin(), "Acme::Open", false, false); err != nil {
			t.Fatal(err)
		}
		of := func(names ...string) (inputs []metadef.DocumentAssociation) {
			for _, name := range names {
				inputs = append(inputs, metadef.DocumentAssociation{ResourceType: name})
			}
			return inputs
		}
		if _, err := s.CreateNamespace(storetest.AsAdmin(),
			metadef.NamespaceInput{Name: "Hidden",
				ResourceTypeAssociations: of("Acme::Hidden", "Acme::Open", "Acme::Both")}); err != nil {
			t.Fatal(err)
		}
		member := asMemberOf(t, "demo")
		if _, err := s.CreateNamespace(storetest.AsAdmin(),
			metadef.NamespaceInput{Name: "Shown",
				NamespacePatch:           metadef.NamespacePatch{Visibility: metadeftest.To(access.Public)},
				ResourceTypeAssociations: of("Acme::Both")}); err != nil {
			t.Fatal(err)
		}
		check := func(when string, want map[string]bool) {
			t.Helper()
			for name, visible := range want {
				if seen(member, name) != visible {
					t.Errorf("%s a member sees %s: %t, want %t", when, name, !visible, visible)
				}
				if !seen(storetest.AsAdmin(), name) {
					t.Errorf("%s %s is gone", when, name)
				}
			}
		}
		check("with the namespaces", map[string]bool{"Acme::Hidden": false, "Acme::Open": true, "Acme::Both": true})
		if _, err := s.DeleteNamespace(storetest.AsAdmin(), "Hidden", nil); err != nil {
			t.Fatal(err)
		}
		check("without the private one", map[string]bool{"Acme::Hidden": false, "Acme::Open": true, "Acme::Both": true})
	})
}
