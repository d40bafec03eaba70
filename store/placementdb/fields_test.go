package placementdb_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// kept are the fields of a provider that the store sets itself.
var kept = []string{"Generation", "Version", "Row", "Root", "ResourceRow", "CreatedAt", "UpdatedAt"}

// TestEveryFieldOfAProviderIsFilled fills a provider with a value in every
// field, and reads it back. It gets the fields by reflection, so it fails for a
// forgotten field.
func TestEveryFieldOfAProviderIsFilled(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		linked, err := s.CreateResource(storetest.AsAdmin(), resource.Input{Type: "physical:host", Name: "linked"})
		if err != nil {
			t.Fatal(err)
		}
		root := placement.Provider{UUID: storetest.UUID(1), Name: "root"}
		filled := placement.Provider{UUID: storetest.UUID(2), Parent: root.UUID, Resource: linked.UUID,
			Traits: []string{"HW_CPU_X86_AVX2"}, Aggregates: []string{storetest.UUID(3)},
			Inventories: []placement.Inventory{{ResourceClass: "VCPU", Total: 8, Reserved: 1, MinUnit: 2, MaxUnit: 6,
				StepSize: 2, AllocationRatio: 1.5, Capacity: 10}}}
		of := reflect.ValueOf(&filled).Elem()
		for i := range of.NumField() {
			if name := of.Type().Field(i).Name; of.Field(i).IsZero() && !slices.Contains(kept, name) {
				of.Field(i).Set(someValue(of.Field(i).Type()))
			}
		}
		if err := s.FillPlacement(storetest.AsAdmin(), placement.Names{},
			[]placement.Provider{filled, root}, nil); err != nil {
			t.Fatal(err)
		}
		world, err := s.World(storetest.AsAdmin())
		if err != nil {
			t.Fatal(err)
		}
		found, _ := world.Provider(filled.UUID)
		for i := range of.NumField() {
			name := of.Type().Field(i).Name
			if got := reflect.ValueOf(*found).Field(i).Interface(); !slices.Contains(kept, name) &&
				!reflect.DeepEqual(got, of.Field(i).Interface()) {
				t.Errorf("%s is filled with %v, the database has %v", name, of.Field(i).Interface(), got)
			}
		}
	})
}

// someValue returns a non-zero value of a type.
func someValue(of reflect.Type) reflect.Value {
	made := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.Pointer:
		made.Set(reflect.New(of.Elem()))
		made.Elem().Set(someValue(of.Elem()))
	case reflect.String:
		made.SetString("text")
	case reflect.Bool:
		made.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		made.SetInt(3)
	case reflect.Float64:
		made.SetFloat(1.5)
	}
	return made
}
