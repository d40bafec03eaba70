package changedb_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// thing identifies the object of a change.
type thing struct {
	kind change.Kind
	key  string
}

// seen maps the things that a viewer sees by plain reads to a string that
// differs between two states.
type seen map[thing]string

// see reads everything that a viewer sees, of the kinds that can be private.
func see(t *testing.T, ctx context.Context, s *store.Store) seen {
	t.Helper()
	all, found := page.Request{First: new(1000)}, seen{}
	namespaces, err := s.Namespaces(ctx, metadef.NamespaceFilter{}, page.Order{Field: "NAME"}, all)
	for _, n := range namespaces.Items {
		found[thing{change.Namespace, n.Name}] = fmt.Sprint(n.Revision)
	}
	types, err2 := s.ResourceTypes(ctx, metadef.ResourceTypeFilter{}, page.Order{Field: "NAME"}, all)
	for _, of := range types.Items {
		found[thing{change.ResourceType, of.Name}] = fmt.Sprint(of.Protected, of.Strict)
	}
	resources, err3 := s.Resources(ctx, resource.Filter{}, page.Order{Field: "NAME"}, all)
	for _, r := range resources.Items {
		found[thing{change.Resource, r.UUID}] = fmt.Sprint(r.Revision)
	}
	consumers, err4 := s.Consumers(ctx, placement.ConsumerFilter{}, page.Order{Field: "CREATED_AT"}, all)
	for _, c := range consumers.Items {
		found[thing{change.Consumer, c.UUID}] = fmt.Sprint(c.Generation, c.ProjectID)
	}
	if err := errors.Join(err, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	return found
}

// mutations are the random changes of mutate. Repeated names are more frequent.
var mutations = []string{"create", "create", "create", "update", "update", "rename", "share", "share", "share",
	"unshare", "unshare", "unshare", "unshareAll",
	"unshareAll", "delete", "associate", "associate", "import", "import", "property", "createResource",
	"updateResource", "updateResource", "deleteResource",
	"deleteResource", "tag", "createType", "protectType", "renameType", "deleteType", "claim", "claim", "release"}

// mutation is a random change with its arguments.
type mutation struct {
	*rand.Rand
	s                       *store.Store
	what                    string
	visibility              access.Visibility
	project, owner          string
	namespace, typeOf, uuid string
}

// one returns a random one of n names.
func (m *mutation) one(prefix string, n int) string { return fmt.Sprint(prefix, m.IntN(n)) }

// mutate makes a random change, which may be refused. ofResources reports
// whether it changed resources. Resources can make types visible, which is no
// change of the types.
func mutate(d *rand.Rand, s *store.Store) (what string, ofResources bool, err error) {
	m := &mutation{
		Rand: d, s: s, what: mutations[d.IntN(len(mutations))], uuid: storetest.UUID(10 + d.IntN(3)),
		visibility: []access.Visibility{access.Public, access.Private, access.Private}[d.IntN(3)],
		project:    []string{"p1", "p2", "p3"}[d.IntN(3)], owner: []string{"p1", "p2", ""}[d.IntN(3)],
	}
	m.namespace, m.typeOf = m.one("N", 4), m.one("T", 5)
	ctx := storetest.AsAdmin()
	switch m.what {
	case "createResource", "updateResource", "deleteResource":
		return m.what, true, m.ofResource(ctx)
	case "tag":
		return m.what, false, m.ofResource(ctx)
	case "createType", "protectType", "renameType", "deleteType":
		return m.what, false, m.ofType(ctx)
	case "claim", "release":
		return m.what, false, m.ofConsumer(ctx)
	case "share", "unshare", "unshareAll":
		return m.what, false, m.ofMember(ctx)
	}
	return m.what, false, m.ofNamespace(ctx)
}

func (m *mutation) ofNamespace(ctx context.Context) (err error) {
	switch m.what {
	case "create":
		_, err = m.s.CreateNamespace(ctx,
			metadef.NamespaceInput{Name: m.namespace,
				NamespacePatch: metadef.NamespacePatch{Visibility: metadeftest.To(m.visibility),
					Owner: metadeftest.To(m.owner)},
				ResourceTypeAssociations: []metadef.DocumentAssociation{{ResourceType: m.typeOf}}})
	case "update":
		_, err = m.s.UpdateNamespace(ctx,
			metadef.NamespaceChange{Name: m.namespace,
				NamespacePatch: metadef.NamespacePatch{Visibility: metadeftest.To(m.visibility),
					Owner: metadeftest.To(m.owner)}})
	case "rename":
		_, err = m.s.UpdateNamespace(ctx,
			metadef.NamespaceChange{Name: m.namespace, NewName: metadeftest.To(m.one("N", 3))})
	case "delete":
		_, err = m.s.DeleteNamespace(ctx, m.namespace, nil)
	case "associate":
		_, _, err = m.s.AssociateResourceType(ctx,
			metadef.NewAssociation{Namespace: m.namespace,
				DocumentAssociation: metadef.DocumentAssociation{ResourceType: m.typeOf}})
	case "import":
		document := fmt.Sprintf(`{"namespace": %q, "visibility": %q, "owner": %q, "description": "%d", "resource_type_associations": [{"name": %q}]}`,
			m.namespace, map[access.Visibility]string{access.Public: "public", access.Private: "private"}[m.visibility],
			m.owner, m.Int(), m.typeOf)
		_, err = m.s.ImportNamespaces(ctx,
			metadef.ImportRequest{Mode: metadef.Overwrite, Documents: []string{document}})
	case "property":
		_, _, err = m.s.CreateProperty(ctx, metadef.NewProperty{Namespace: m.namespace,
			PropertyInput: metadeftest.Property(m.one("p", 3), metadef.String)})
	}
	return err
}

func (m *mutation) ofMember(ctx context.Context) (err error) {
	switch m.what {
	case "share":
		_, _, err = m.s.ShareNamespace(ctx, m.namespace,
			[]string{"p1", "p2", "p3", metadef.EveryProject}[m.IntN(4)], metadef.Reader, nil)
	case "unshare":
		_, _, err = m.s.UnshareNamespace(ctx, m.namespace, m.project, nil)
	case "unshareAll":
		_, _, err = m.s.UnshareNamespace(ctx, m.namespace, metadef.EveryProject, nil)
	}
	return err
}

func (m *mutation) ofResource(ctx context.Context) (err error) {
	switch m.what {
	case "createResource":
		_, err = m.s.CreateResource(ctx, resource.Input{UUID: &m.uuid, Type: m.one("T", 2), Name: "r",
			ProjectID: &m.project, Visibility: &m.visibility})
	case "updateResource":
		_, err = m.s.UpdateResource(ctx, resource.Patch{UUID: m.uuid, Visibility: metadeftest.To(m.visibility),
			NewName: metadeftest.To(m.one("r", 3))})
	case "deleteResource":
		_, err = m.s.DeleteResource(ctx, m.uuid, nil)
	case "tag":
		_, err = m.s.SetResourceTags(ctx, m.uuid, []string{m.one("t", 3)}, nil)
	}
	return err
}

func (m *mutation) ofType(ctx context.Context) (err error) {
	switch m.what {
	case "createType":
		_, err = m.s.CreateResourceType(ctx, m.typeOf, false, false)
	case "protectType":
		_, err = m.s.UpdateResourceType(ctx, metadef.ResourceTypeChange{Name: m.typeOf,
			Protected: metadeftest.To(m.IntN(4) == 0), Strict: metadeftest.To(m.IntN(2) == 0)})
	case "renameType":
		_, err = m.s.UpdateResourceType(ctx,
			metadef.ResourceTypeChange{Name: m.typeOf, NewName: metadeftest.To(m.one("T", 4))})
	case "deleteType":
		_, err = m.s.DeleteResourceType(ctx, m.typeOf)
	}
	return err
}

func (m *mutation) ofConsumer(ctx context.Context) error {
	claim := placement.ConsumerClaim{UUID: storetest.UUID(30 + m.IntN(2)), ProjectID: m.project, UserID: "u"}
	if held, found := m.s.ConsumersByUUID(ctx, []string{claim.UUID}); found == nil && held[claim.UUID] != nil {
		claim.Generation = &held[claim.UUID].Generation
	}
	if m.what == "claim" {
		claim.Allocations = []placement.ProviderAllocation{{Provider: storetest.UUID(1),
			Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: 1 + m.Int64N(3)}}}}
	}
	_, err := m.s.SetAllocations(ctx, placement.Claim{Consumers: []placement.ConsumerClaim{claim}})
	return err
}

// reader is a viewer, with the things that the viewer saw last, and the
// positions in the log and in the feed.
type reader struct {
	ctx       context.Context
	before    seen
	at        change.Position
	following interface {
		Next(ctx context.Context, limit int) ([]*change.Change, error)
		Wait(ctx context.Context) error
	}
	followed, read []string
}

// reads reads the log after a mutation, and compares it with plain reads before
// and after.
func (r *reader) reads(t *testing.T, s *store.Store, what string, typesComeBeside bool) {
	t.Helper()
	after := see(t, r.ctx, s)
	changes, more, err := s.Changes(r.ctx, change.Filter{}, r.at, 100)
	if err != nil || more {
		t.Fatalf("%v, %v", more, err)
	}
	compare(t, what, r.before, after, changes, typesComeBeside)
	for _, c := range changes {
		r.read = append(r.read, words(c))
	}
	r.before, r.at = after, s.After(r.at, changes, more)
}

// follows reads the feed up to the position in the log.
func (r *reader) follows(t *testing.T) {
	t.Helper()
	for len(r.followed) < len(r.read) {
		if err := r.following.Wait(r.ctx); err != nil {
			t.Fatal(err)
		}
		changes, err := r.following.Next(r.ctx, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			r.followed = append(r.followed, words(c))
		}
	}
}

// TestChangesAreWhatViewersSee makes random changes. For several viewers it
// compares plain reads before and after with the feed. A thing that appears
// must be CREATED, one that disappears DELETED, one that differs UPDATED. The
// feed must not mention things that the viewer does not see. Following must
// return the same changes as reading the log.
func TestChangesAreWhatViewersSee(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		storetest.RoomyProvider(t, s, storetest.UUID(1))
		readers := map[string]*reader{}
		for name, ctx := range map[string]context.Context{"admin": as(t, "operations", access.RoleAdmin),
			"service": as(t, "services", access.RoleService),
			"p1":      as(t, "p1", access.RoleMember), "p2": as(t, "p2", access.RoleReader),
			"p4": as(t, "p4", access.RoleMember), "of none": as(t, "", access.RoleReader)} {
			r := &reader{ctx: ctx, before: see(t, ctx, s)}
			_, r.at = all(t, ctx, s, change.Position{}, change.Filter{})
			following := s.Follow(change.Filter{}, r.at)
			defer following.Stop()
			r.following, readers[name] = following, r
		}
		d := rand.New(rand.NewPCG(7, 7))
		done := map[string]int{}
		for range 150 {
			what, ofResources, err := mutate(d, s)
			if err == nil {
				done[what]++
			} else if refusal := new(problem.Refusal); !errors.As(err, &refusal) &&
				!errors.Is(err, problem.ErrInvalidInput) {
				t.Fatalf("%s: %v", what, err)
			}
			for _, name := range slices.Sorted(maps.Keys(readers)) {
				readers[name].reads(t, s, fmt.Sprintf("%s, as %s sees it", what, name), ofResources ||
					name == "service")
			}
		}
		t.Logf("accepted: %v", done)
		for name, r := range readers {
			r.follows(t)
			if !slices.Equal(r.followed, r.read) {
				t.Errorf("%s followed\n%v\nand read\n%v", name, r.followed, r.read)
			}
		}
	})
}

// compare compares the changes of one mutation with the plain reads before and
// after it.
func compare(t *testing.T, what string, before, after seen, changes []*change.Change, typesComeBeside bool) {
	t.Helper()
	said := map[thing]change.What{}
	for _, c := range changes {
		of := thing{c.Kind, c.Key}
		if _, twice := said[of]; twice {
			t.Errorf("%s: %v is said twice", what, of)
		}
		said[of] = c.What
	}
	things := maps.Clone(before)
	maps.Copy(things, after)
	maps.DeleteFunc(said, func(of thing, _ change.What) bool {
		return slices.Contains([]change.Kind{change.ResourceProvider, change.Trait,
			change.ResourceClass, change.Capability}, of.kind)
	})
	for of := range said {
		if _, ok := things[of]; !ok {
			t.Errorf("%s: %s %v is said of what is not seen", what, said[of], of)
		}
	}
	for of := range things {
		was, saw := before[of]
		is, sees := after[of]
		want := change.What("")
		switch {
		case !saw:
			want = change.Created
		case !sees:
			want = change.Deleted
		case was != is:
			want = change.Updated
		case said[of] == change.Updated:
			continue // written without a visible difference
		}
		if got := said[of]; got != want && !(typesComeBeside && of.kind == change.ResourceType) {
			t.Errorf("%s: of %v it is said %q, and it should be %q", what, of, got, want)
		}
	}
}
