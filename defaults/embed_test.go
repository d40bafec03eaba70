package defaults_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/defaults"
)

func TestStandardNamesAreComplete(t *testing.T) {
	t.Parallel()
	traits, classes := defaults.Traits(), defaults.ResourceClasses()
	if len(traits) != 377 || !slices.IsSorted(traits) || len(slices.Compact(slices.Clone(traits))) != 377 {
		t.Errorf("%d traits; want 377 different ones, sorted", len(traits))
	}
	if len(classes) != 21 || classes[0] != "VCPU" || classes[20] != "NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC" {
		t.Errorf("resource classes are %v; want 21 in the order of their ids", classes)
	}
	for _, name := range slices.Concat(traits, classes) {
		if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || strings.HasPrefix(name, "CUSTOM_") {
			t.Errorf("%q is no standard name", name)
		}
	}
}

func TestBuiltInResourceTypesNameTheirParents(t *testing.T) {
	t.Parallel()
	types := defaults.ResourceTypes()
	names := map[string]bool{}
	for i, resourceType := range types {
		names[resourceType.Name] = true
		if i > 0 && types[i-1].Name >= resourceType.Name {
			t.Errorf("%s is out of order", resourceType.Name)
		}
	}
	if len(types) != 16 {
		t.Errorf("%d built-in types, want 16", len(types))
	}
	for _, resourceType := range types {
		if resourceType.Parent != "" && !names[resourceType.Parent] {
			t.Errorf("the parent of %s is %s, which is not built in", resourceType.Name, resourceType.Parent)
		}
		if resourceType.ParentRequired && resourceType.Parent == "" {
			t.Errorf("%s requires a parent of no type", resourceType.Name)
		}
	}
}
