package resourcedb_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// newShare creates a share of a project and returns its uuid.
func newShare(t *testing.T, s *store.Store, project string, metadata ...metadef.KeyValue) string {
	t.Helper()
	r, err := s.CreateResource(storetest.AsAdmin(),
		resource.Input{Type: "OS::Manila::Share", Name: "share", ProjectID: &project, Metadata: metadata})
	if err != nil {
		t.Fatal(err)
	}
	return r.UUID
}

func metadataOf(t *testing.T, s *store.Store, uuid string) map[string]string {
	t.Helper()
	r, err := s.ResourceByUUID(storetest.AsAdmin(), uuid)
	if err != nil {
		t.Fatal(err)
	}
	items, err := s.MetadataOf(storetest.AsAdmin(), []int64{r.ID}, nil)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]string{}
	for _, item := range items[r.ID] {
		if _, twice := there[item.Key]; twice {
			t.Errorf("the key %q is there twice", item.Key)
		}
		there[item.Key] = item.Value
	}
	return there
}

func pairs(keyValues ...string) []metadef.KeyValue {
	list := make([]metadef.KeyValue, len(keyValues)/2)
	for i := range list {
		list[i] = metadef.KeyValue{Key: keyValues[2*i], Value: keyValues[2*i+1]}
	}
	return list
}

// TestConcurrentMetadataWritersLoseNothing has 16 writers merge, replace and
// delete keys of one resource for 1,000 operations (M41). The revisions give
// their order. Replayed in that order, they must produce the stored metadata.
func TestConcurrentMetadataWritersLoseNothing(t *testing.T) {
	t.Parallel()
	const writers, operations = 16, 1000
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		uuid := newShare(t, s, "demo")
		ctx := storetest.AsAdmin()
		var mu sync.Mutex
		done := map[int]resource.MetadataChange{}
		var working sync.WaitGroup
		for writer := range writers {
			working.Go(func() {
				random := rand.New(rand.NewPCG(uint64(writer), 3))
				for n := range operations / writers {
					change := resource.MetadataChange{Resource: uuid}
					key := func() string { return fmt.Sprintf("key-%d", random.IntN(12)) }
					value := fmt.Sprintf("%d-%d", writer, n)
					switch random.IntN(4) {
					case 0:
						change.Mode, change.Keys = resource.DeleteMetadata, []string{key()}
					case 1:
						change.Mode, change.Items = resource.ReplaceMetadata, pairs("mine", value, key(), value)
					default:
						change.Items = pairs(key(), value, fmt.Sprintf("own-%d", writer), value)
					}
					r, _, err := s.ChangeMetadata(ctx, change)
					if errors.Is(err, problem.ErrNotFound) && change.Mode == resource.DeleteMetadata {
						continue
					}
					if err != nil {
						t.Errorf("writer %d: %v", writer, err)
						return
					}
					mu.Lock()
					if _, twice := done[r.Revision]; twice {
						t.Errorf("the revision %d is given twice", r.Revision)
					}
					done[r.Revision] = change
					mu.Unlock()
				}
			})
		}
		working.Wait()
		model := map[string]string{}
		for _, revision := range slices.Sorted(maps.Keys(done)) {
			change := done[revision]
			if change.Mode == resource.ReplaceMetadata {
				clear(model)
			}
			for _, item := range change.Items {
				model[item.Key] = item.Value
			}
			for _, key := range change.Keys {
				if _, there := model[key]; !there {
					t.Errorf("revision %d deletes %q, which is not there", revision, key)
				}
				delete(model, key)
			}
		}
		if there := metadataOf(t, s, uuid); !maps.Equal(there, model) {
			t.Errorf("there is %v, want %v", there, model)
		}
	})
}

// TestReplacingMetadataIsNeverSeenHalfDone reads metadata while another
// goroutine replaces it (M42).
func TestReplacingMetadataIsNeverSeenHalfDone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		uuid := newShare(t, s, "demo", pairs("a", "0", "b", "0")...)
		stop := make(chan struct{})
		var reading sync.WaitGroup
		reading.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if there := metadataOf(t, s, uuid); len(there) != 2 || there["a"] != there["b"] {
					t.Errorf("seen half done: %v", there)
					return
				}
			}
		})
		for n := range 100 {
			value := fmt.Sprint(n)
			change := resource.MetadataChange{Resource: uuid, Mode: resource.ReplaceMetadata,
				Items: pairs("a", value, "b", value)}
			if _, _, err := s.ChangeMetadata(storetest.AsAdmin(), change); err != nil {
				t.Fatal(err)
			}
		}
		close(stop)
		reading.Wait()
	})
}

// TestMetadataLimits checks M07, M12 and M44: limits count code points, and the
// store refuses the item beyond the maximum.
func TestMetadataLimits(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := asMember("demo")
		uuid := newShare(t, s, "demo")
		set := func(items ...metadef.KeyValue) error {
			_, _, err := s.ChangeMetadata(ctx, resource.MetadataChange{Resource: uuid, Items: items})
			return err
		}
		long := strings.Repeat("界", metadef.MaxMetadataValue)
		for _, good := range [][]string{{"one", "x"}, {"many", long}, {strings.Repeat("界", 255), "v"},
			{" ", "blank key"}, {"CASE", "1", "case", "2"}} {
			if err := set(pairs(good...)...); err != nil {
				t.Error(err)
			}
		}
		if n, err := s.CountResources(ctx, resource.Filter{Metadata: pairs("many", long)}); n != 1 || err != nil {
			t.Errorf("the longest value is found %d times, error %v", n, err)
		}
		for _, bad := range [][]string{{strings.Repeat("界", 256), "v"}, {"key", long + "x"}, {"key", ""},
			{"", "v"}, {"a\x00", "v"}, {"a", "\xff"}} {
			if err := set(pairs(bad...)...); !errors.Is(err, problem.ErrInvalidInput) {
				t.Errorf("%.20q: %v", bad, err)
			}
		}
		var many []metadef.KeyValue
		for i := range metadef.MaxMetadataItems {
			many = append(many, metadef.KeyValue{Key: fmt.Sprint("item-", i), Value: "v"})
		}
		replace := resource.MetadataChange{Resource: uuid, Mode: resource.ReplaceMetadata, Items: many}
		if _, _, err := s.ChangeMetadata(ctx, replace); err != nil {
			t.Error(err)
		}
		if err := set(pairs("one more", "v")...); !errors.Is(err, problem.ErrQuotaExceeded) ||
			!strings.Contains(err.Error(), "128") {
			t.Errorf("the 129th item: %v", err)
		}
		if err := set(pairs("item-0", "changed")...); err != nil {
			t.Errorf("an item that is there: %v", err)
		}
		if _, err := s.CreateResource(ctx, resource.Input{Type: "OS::Manila::Share", Name: "x",
			Metadata: append(many, pairs("z", "z")...)}); !errors.Is(err, problem.ErrQuotaExceeded) {
			t.Errorf("created with 129 items: %v", err)
		}
	})
}

// openRuled opens a store with an operator's options.
func openRuled(t *testing.T, options store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestOperatorsRulesForMetadata checks that every way to write protects the
// operator's keys and observes the operator's maximum.
func TestOperatorsRulesForMetadata(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := openRuled(t, store.Options{URL: url, Resources: store.ResourceOptions{
			Limits: &resource.Limits{MetadataItems: 3}, ProtectedMetadataKeys: []string{"__managed_at"},
		}})
		uuid := newShare(t, s, "demo")
		if _, _, err := s.ChangeMetadata(asMember("demo"),
			resource.MetadataChange{Resource: uuid, Items: pairs("k", "v")}); err != nil {
			t.Fatal(err)
		}
		member := asMember("demo")
		for name, attempt := range map[string]func() error{
			"merging": func() error {
				_, _, err := s.ChangeMetadata(member,
					resource.MetadataChange{Resource: uuid, Items: pairs("__managed_at", "x")})
				return err
			},
			"replacing": func() error {
				_, _, err := s.ChangeMetadata(member,
					resource.MetadataChange{Resource: uuid,
						Mode: resource.ReplaceMetadata, Items: pairs("__managed_at", "x")})
				return err
			},
			"creating": func() error {
				_, err := s.CreateResource(member,
					resource.Input{Type: "OS::Manila::Share", Name: "x", Metadata: pairs("__managed_at", "x")})
				return err
			},
		} {
			if err := attempt(); !errors.Is(err, problem.ErrForbidden) {
				t.Errorf("%s a protected key: %v", name, err)
			}
		}
		if _, _, err := s.ChangeMetadata(storetest.AsAdmin(),
			resource.MetadataChange{Resource: uuid, Items: pairs("__managed_at", "x")}); err != nil {
			t.Error(err)
		}
		_, retained, err := s.ChangeMetadata(member,
			resource.MetadataChange{Resource: uuid, Mode: resource.ReplaceMetadata})
		if err != nil || len(retained) != 1 || retained[0].Key != "__managed_at" {
			t.Errorf("retained %v, error %v", retained, err)
		}
		if _, _, err := s.ChangeMetadata(member,
			resource.MetadataChange{Resource: uuid, Items: pairs("a", "1", "b", "2", "c", "3")}); !errors.Is(err,
			problem.ErrQuotaExceeded) {
			t.Errorf("more than the operator allows: %v", err)
		}
	})
}

// TestStrictTypesHoldMetadataToItsDefinitions checks that strict types refuse
// unknown keys, suggesting the nearest known one, and values that break their
// definition. Other types only report.
func TestStrictTypesHoldMetadataToItsDefinitions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		sockets := metadeftest.Property("sockets", metadef.Integer)
		sockets.Minimum = metadeftest.To(1.0)
		_, err := s.CreateNamespace(ctx, metadef.NamespaceInput{
			Name: "Acme", NamespacePatch: metadef.NamespacePatch{Visibility: metadeftest.To(access.Public)},
			Properties:               []metadef.PropertyInput{sockets},
			ResourceTypeAssociations: []metadef.DocumentAssociation{{ResourceType: "Acme::Box", Prefix: new("hw:")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		box, err := s.CreateResource(ctx,
			resource.Input{Type: "Acme::Box", Name: "box", Metadata: pairs("hw:sockets", "many", "hw:socket", "2")})
		if err != nil {
			t.Fatalf("a type that is not strict: %v", err)
		}
		reports, err := s.MetadataReports(ctx, []int64{box.ID})
		if err != nil || reports[box.ID].Valid {
			t.Errorf("the report is %v, error %v", reports[box.ID], err)
		}
		if _, err := s.UpdateResourceType(ctx, metadef.ResourceTypeChange{Name: "Acme::Box",
			Strict: metadef.Change[*bool]{Set: true, Value: new(true)}}); err != nil {
			t.Fatal(err)
		}
		_, _, err = s.ChangeMetadata(ctx,
			resource.MetadataChange{Resource: box.UUID, Items: pairs("hw:sockets", "0", "hw:socket", "3")})
		var invalid *problem.InvalidInput
		if !errors.As(err, &invalid) || len(invalid.Problems) != 2 ||
			invalid.Problems[0].Field != "input.items[0].value" ||
			!strings.Contains(invalid.Problems[1].Message, "hw:sockets") {
			t.Errorf("a strict type: %v", err)
		}
		if _, err := s.CreateResource(ctx, resource.Input{Type: "Acme::Box", Name: "box",
			Metadata: pairs("unknown", "2")}); !errors.Is(err, problem.ErrInvalidInput) {
			t.Errorf("creating on a strict type: %v", err)
		}
		if _, _, err := s.ChangeMetadata(ctx, resource.MetadataChange{Resource: box.UUID,
			Mode: resource.ReplaceMetadata, Items: pairs("hw:sockets", "2")}); err != nil {
			t.Error(err)
		}
	})
}
