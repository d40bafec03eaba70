package changedb_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// typeStep is a change of associations, with the next changes in the feed of
// another project, and the types Declared and Implied that the project sees.
type typeStep struct {
	name string
	do   func(ctx context.Context, s *store.Store) error
	says []string
	sees []string
}

// typeSteps associate both types with private namespaces of a project. Only an
// association created the type Implied.
var typeSteps = []typeStep{
	{"declare a type", func(ctx context.Context, s *store.Store) error {
		_, err := s.CreateResourceType(ctx, "Declared", false, false)
		return err
	}, []string{"ResourceType Declared CREATED"}, []string{"Declared"}},
	{"use both in a private namespace", func(ctx context.Context, s *store.Store) error {
		return createUsing(ctx, s, "Theirs", access.Private, "Declared", "Implied")
	}, nil, []string{"Declared"}},
	{"use both in a public namespace", func(ctx context.Context, s *store.Store) error {
		return createUsing(ctx, s, "Open", access.Public, "Declared", "Implied")
	}, []string{"ResourceType Implied CREATED"}, []string{"Declared", "Implied"}},
	{"hide the public namespace", func(ctx context.Context, s *store.Store) error {
		_, err := s.UpdateNamespace(ctx, metadef.NamespaceChange{Name: "Open",
			NamespacePatch: metadef.NamespacePatch{Visibility: metadeftest.To(access.Private)}})
		return err
	}, []string{"ResourceType Implied DELETED"}, []string{"Declared"}},
	{"associate once more", func(ctx context.Context, s *store.Store) error {
		_, err := s.CreateNamespace(ctx, metadef.NamespaceInput{Name: "More",
			NamespacePatch: metadef.NamespacePatch{Owner: metadeftest.To("theirs")}})
		for _, name := range []string{"Declared", "Implied"} {
			_, _, associated := s.AssociateResourceType(ctx,
				metadef.NewAssociation{Namespace: "More",
					DocumentAssociation: metadef.DocumentAssociation{ResourceType: name}})
			err = errors.Join(err, associated)
		}
		return err
	}, nil, []string{"Declared"}},
	{"import another private namespace", func(ctx context.Context, s *store.Store) error {
		_, err := s.ImportNamespaces(ctx, metadef.ImportRequest{Documents: []string{
			`{"namespace": "Imported", "visibility": "private", "owner": "theirs", "resource_type_associations": [{"name": "Declared"}, {"name": "Implied"}]}`}})
		return err
	}, nil, []string{"Declared"}},
	{"share a namespace with the project", func(ctx context.Context, s *store.Store) error {
		_, _, err := s.ShareNamespace(ctx, "Theirs", "ours", metadef.Reader, nil)
		return err
	}, []string{"ResourceType Implied CREATED"}, []string{"Declared", "Implied"}},
	{"delete the namespaces", func(ctx context.Context, s *store.Store) (err error) {
		for _, name := range []string{"Theirs", "Open", "More", "Imported"} {
			_, deleted := s.DeleteNamespace(ctx, name, nil)
			err = errors.Join(err, deleted)
		}
		return err
	}, []string{"ResourceType Implied DELETED"}, []string{"Declared"}},
}

func createUsing(ctx context.Context, s *store.Store, name string,
	visibility access.Visibility, types ...string) error {
	input := metadef.NamespaceInput{Name: name,
		NamespacePatch: metadef.NamespacePatch{Owner: metadeftest.To("theirs"), Visibility: metadeftest.To(visibility)}}
	for _, of := range types {
		input.ResourceTypeAssociations = append(input.ResourceTypeAssociations,
			metadef.DocumentAssociation{ResourceType: of})
	}
	_, err := s.CreateNamespace(ctx, input)
	return err
}

// TestDeclaredTypesStayVisible checks that a type made by createResourceType
// stays visible to everyone, in reads and in the feed, while private
// associations use it. If only associations created a type, a viewer sees it
// through one of its namespaces.
func TestDeclaredTypesStayVisible(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		readers := map[string]context.Context{"a member": as(t, "ours", access.RoleMember),
			"a reader": as(t, "ours", access.RoleReader)}
		at := map[string]change.Position{}
		for who, ctx := range readers {
			_, at[who] = all(t, ctx, s, change.Position{}, change.Filter{})
		}
		for _, step := range typeSteps {
			if err := step.do(storetest.AsAdmin(), s); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			for who, ctx := range readers {
				var said []string
				said, at[who] = all(t, ctx, s, at[who], change.Filter{Kinds: []change.Kind{change.ResourceType}})
				if !slices.Equal(said, step.says) {
					t.Errorf("%s: the feed of %s has %q, want %q", step.name, who, said, step.says)
				}
				if sees := typesSeen(t, ctx, s); !slices.Equal(sees, step.sees) {
					t.Errorf("%s: %s sees %q, want %q", step.name, who, sees, step.sees)
				}
			}
		}
	})
}

// typesSeen returns which of the types Declared and Implied a viewer reads by
// name, in the list, and with their definitions, which are in memory. All of
// them must agree.
func typesSeen(t *testing.T, ctx context.Context, s *store.Store) (names []string) {
	t.Helper()
	rows, err := s.ResourceTypes(ctx, metadef.ResourceTypeFilter{},
		page.Order{Field: "NAME"}, page.Request{First: new(1000)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Declared", "Implied"} {
		listed := slices.ContainsFunc(rows.Items, func(of *metadef.ResourceType) bool { return of.Name == name })
		_, named := s.ResourceTypeNamed(ctx, name)
		_, defined := s.Definitions(ctx, name, nil, "")
		for _, err := range []error{named, defined} {
			if (err == nil) != listed {
				t.Errorf("%s is listed: %t, and read: %v", name, listed, err)
			}
		}
		if listed {
			names = append(names, name)
		}
	}
	return names
}

// TestPrivateCapabilitiesHaveChanges checks that administrators and services
// have the changes of private capabilities, and that others have none.
func TestPrivateCapabilitiesHaveChanges(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for _, private := range []bool{true, false, true} {
			_, err := s.CreateCapability(storetest.AsAdmin(), "physical:host", "sku", &private)
			if errors.Is(err, problem.ErrAlreadyExists) {
				_, err = s.SetCapabilityVisibility(storetest.AsAdmin(), "physical:host", "sku", private)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.DeleteCapability(storetest.AsAdmin(), "physical:host", "sku", false); err != nil {
			t.Fatal(err)
		}
		of := "Capability physical:host/sku "
		want := []string{of + "CREATED", of + "UPDATED", of + "UPDATED", of + "DELETED"}
		for role, want := range map[string][]string{
			access.RoleAdmin: want, access.RoleService: want, access.RoleMember: nil} {
			said, _ := all(t, as(t, "ours", role), s, change.Position{},
				change.Filter{Kinds: []change.Kind{change.Capability}})
			if !slices.Equal(said, want) {
				t.Errorf("the feed of %s has %q, want %q", role, said, want)
			}
		}
	})
}
