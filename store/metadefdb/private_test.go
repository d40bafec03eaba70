package metadefdb_test

import (
	"context"
	"errors"
	"fmt"
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

// TestNamesOfTypesShareNoDefinitions asks for the definitions of types whose
// names end like the cached definitions of another type.
func TestNamesOfTypesShareNoDefinitions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if _, err := s.CreateNamespace(storetest.AsAdmin(), metadef.NamespaceInput{Name: "Hidden",
			ResourceTypeAssociations: []metadef.DocumentAssociation{{ResourceType: "Acme::Open"}}}); err != nil {
			t.Fatal(err)
		}
		var names []string
		for id := range 20 {
			names = append(names, fmt.Sprintf("Acme::Open %d", id))
			if _, err := s.CreateResourceType(storetest.AsAdmin(), names[id], false, false); err != nil {
				t.Fatal(err)
			}
		}
		if found, err := s.Definitions(storetest.AsAdmin(), "Acme::Open", nil, ""); err != nil || len(found) != 1 {
			t.Fatalf("an administrator sees %d, %v", len(found), err)
		}
		for _, name := range names {
			if found, err := s.Definitions(asMemberOf(t, "demo"), name, nil, ""); err != nil || len(found) > 0 {
				t.Errorf("a member sees %d definitions of %q, %v", len(found), name, err)
			}
		}
	})
}
