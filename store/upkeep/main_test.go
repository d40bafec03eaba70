package upkeep_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// filled opens a store with the demo cloud, and a namespace of no project.
func filled(t *testing.T, url string) *store.Store {
	s := storetest.Open(t, url)
	if err := demo.Fill(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	ctx := access.WithViewer(t.Context(), access.Viewer{UserID: "root", Roles: []string{access.RoleAdmin}})
	if _, err := s.CreateNamespace(ctx, metadef.NamespaceInput{Name: "Of no project"}); err != nil {
		t.Fatal(err)
	}
	return s
}

// writing is a random writer of every domain. A refusal is no failure: other
// writers compete for the same things.
type writing struct {
	s      *store.Store
	random *rand.Rand
	number int
	made   []string // resources
	places []string // providers
	took   []string // consumers
}

func newWriting(s *store.Store, seed uint64) *writing {
	return &writing{s: s, random: rand.New(rand.NewPCG(seed, 1)), number: int(seed) * 100_000}
}

func (w *writing) uuid() string {
	w.number++
	return storetest.UUID(w.number)
}

// word returns a string that folds to another one.
func (w *writing) word() string {
	return fmt.Sprintf("%s %d", []string{"Größe", "İstanbul", "ΣΊΣΥΦΟΣ", "plain", `quo"te\`, "line\nend",
		"<a>&\u2028"}[w.random.IntN(7)], w.random.IntN(50))
}

func (w *writing) pick(from []string) string {
	if len(from) == 0 {
		return storetest.UUID(0)
	}
	return from[w.random.IntN(len(from))]
}

// do makes one random write.
func (w *writing) do() {
	write := []func(uuid, word string){w.create, w.describe, w.equip, w.unequip, w.provide,
		w.claim, w.release, w.resize, w.define}
	write[w.random.IntN(len(write))](w.uuid(), w.word())
}

func start(word string, length int) string { return string([]rune(word)[:length]) }

func (w *writing) create(uuid, word string) {
	made := resource.Input{Type: "OS::Cinder::Volume", Name: word, UUID: &uuid, Description: &word,
		Tags:         []string{start(word, 3), "b"},
		Metadata:     []metadef.KeyValue{{Key: "k", Value: word}},
		Capabilities: []metadef.KeyValue{{Key: "c", Value: `["A", "1.5", "` + start(word, 2) + `"]`}}}
	if w.random.IntN(2) == 0 && len(w.made) > 0 {
		made.Parent = new(w.pick(w.made))
	}
	if _, err := w.s.CreateResource(storetest.AsAdmin(), made); err == nil {
		w.made = append(w.made, uuid)
	}
}

func (w *writing) describe(_, word string) {
	_, _, _ = w.s.ChangeMetadata(storetest.AsAdmin(), resource.MetadataChange{Resource: w.pick(w.made),
		Items: []metadef.KeyValue{{Key: start(word, 1), Value: word}}})
}

func (w *writing) equip(_, word string) {
	_, _ = w.s.SetCapabilities(storetest.AsAdmin(), w.pick(w.made),
		[]metadef.KeyValue{{Key: []string{"c", "d"}[w.random.IntN(2)], Value: word}}, nil)
}

func (w *writing) unequip(_, _ string) {
	_, _ = w.s.UnsetCapabilities(storetest.AsAdmin(), w.pick(w.made), []string{"c"}, nil)
}

func (w *writing) provide(uuid, _ string) {
	made := placement.NewProvider{Name: uuid, UUID: &uuid, Traits: []string{"HW_CPU_X86_VMX"},
		Aggregates: []string{storetest.UUID(1)},
		Inventories: []placement.Inventory{{ResourceClass: "VCPU", Total: 10, MinUnit: 1, MaxUnit: 10,
			StepSize: 1, AllocationRatio: 1.7}}}
	if w.random.IntN(2) == 0 && len(w.places) > 0 {
		made.Parent = new(w.pick(w.places))
	}
	if _, _, err := w.s.CreateResourceProvider(storetest.AsAdmin(), made); err == nil {
		w.places = append(w.places, uuid)
	}
}

func (w *writing) claim(uuid, _ string) {
	claim := placement.ConsumerClaim{UUID: uuid, ProjectID: "p", UserID: "u",
		Allocations: []placement.ProviderAllocation{
			{Provider: w.pick(w.places),
				Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: 1 + int64(w.random.IntN(4))}}}}}
	if _, err := w.s.SetAllocations(storetest.AsAdmin(),
		placement.Claim{Consumers: []placement.ConsumerClaim{claim}}); err == nil {
		w.took = append(w.took, uuid)
	}
}

func (w *writing) release(_, _ string) {
	_, _ = w.s.DeleteAllocations(storetest.AsAdmin(), w.pick(w.took))
}

func (w *writing) resize(_, _ string) {
	_, _, _ = w.s.SetInventory(storetest.AsAdmin(),
		placement.InventoryChange{Provider: w.pick(w.places), Inventory: placement.Inventory{
			ResourceClass: "VCPU", Total: 5 + int32(w.random.IntN(9)), MinUnit: 1, MaxUnit: 10,
			StepSize: 1, AllocationRatio: 0.9}})
}

func (w *writing) define(uuid, word string) {
	_, _, _ = w.s.CreateProperty(storetest.AsAdmin(), metadef.NewProperty{Namespace: "Cadastre::Acceleration",
		PropertyInput: metadef.PropertyInput{Name: "p" + uuid, PropertyPatch: metadef.PropertyPatch{
			Title: metadef.Change[*string]{Set: true, Value: &word},
			Type:  metadef.Change[*metadef.PropertyType]{Set: true, Value: new(metadef.String)}}}})
}
