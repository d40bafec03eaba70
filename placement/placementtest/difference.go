// Package placementtest compares worlds in tests.
package placementtest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/cadastre-dev/cadastre/placement"
)

// Difference returns the first difference between two worlds in words, "" if
// they are equal. It compares names, all fields of all providers, trees, and
// the providers with each trait, in each aggregate and with a free unit of each
// resource class of a provider in a. Tests use it to compare a world after updates
// with a world built from scratch.
func Difference(a, b *placement.World) string {
	for _, c := range []struct {
		what string
		list func(w *placement.World) []string
	}{
		{"traits", func(w *placement.World) []string { return w.Names().Traits }},
		{"resource classes", func(w *placement.World) []string { return w.Names().ResourceClasses }},
		{"uuids", func(w *placement.World) []string { return slices.Sorted(slices.Values(uuids(all(w)))) }},
	} {
		if d := differenceOf(c.what, c.list(a), c.list(b)); d != "" {
			return d
		}
	}
	for _, p := range all(a) {
		other, _ := b.Provider(p.UUID)
		if d := differenceOfProviders(p, other); d != "" {
			return fmt.Sprintf("provider %s: %s", p.UUID, d)
		}
		if named, ok := b.ProviderNamed(p.Name); !ok || named.UUID != p.UUID {
			return fmt.Sprintf("provider %s: the second finds another by its name", p.UUID)
		}
		if d := differenceOf("tree of "+p.UUID, uuids(a.Tree(p.UUID)), uuids(b.Tree(p.UUID))); d != "" {
			return d
		}
		if d := differenceOf("children of "+p.UUID, uuids(a.Children(p.UUID)), uuids(b.Children(p.UUID))); d != "" {
			return d
		}
	}
	filters := filtersOf(a)
	for _, what := range slices.Sorted(maps.Keys(filters)) {
		if d := differenceOf(what, uuids(a.Filter(filters[what])), uuids(b.Filter(filters[what]))); d != "" {
			return d
		}
	}
	return ""
}

func all(w *placement.World) []*placement.Provider { return slices.Collect(w.Providers()) }

func uuids(providers []*placement.Provider) []string {
	list := make([]string, len(providers))
	for i, p := range providers {
		list[i] = p.UUID
	}
	return list
}

// filtersOf returns a filter for each trait, aggregate and resource class that
// a provider of the world has.
func filtersOf(w *placement.World) map[string]placement.ProviderFilter {
	filters := map[string]placement.ProviderFilter{}
	for p := range w.Providers() {
		for _, trait := range p.Traits {
			filters["providers with the trait "+trait] = placement.ProviderFilter{RequiredAll: []string{trait}}
		}
		for _, aggregate := range p.Aggregates {
			filters["members of the aggregate "+aggregate] = placement.ProviderFilter{
				MemberOf: []placement.AggregateFilter{{AnyOf: []string{aggregate}}},
			}
		}
		for _, i := range p.Inventories {
			filters["providers with free "+i.ResourceClass] = placement.ProviderFilter{
				Resources: []placement.Amount{{ResourceClass: i.ResourceClass, Amount: 1}},
			}
		}
	}
	return filters
}

// differenceOf returns the first difference of two lists in words, "" if they are
// equal.
func differenceOf(what string, a, b []string) string {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(b):
			return fmt.Sprintf("%s: only the first has %s", what, a[i])
		case i >= len(a):
			return fmt.Sprintf("%s: only the second has %s", what, b[i])
		case a[i] != b[i]:
			return fmt.Sprintf("%s: the first has %s where the second has %s", what, a[i], b[i])
		}
	}
	return ""
}

// differenceOfProviders returns the first field that differs, in words, "" for
// none. Empty and absent lists are equal, and so are times of the same instant.
func differenceOfProviders(p, other *placement.Provider) string {
	a, b := *p, *other
	if !a.CreatedAt.Equal(b.CreatedAt) || !a.UpdatedAt.Equal(b.UpdatedAt) {
		return fmt.Sprintf("created %v and %v, updated %v and %v", a.CreatedAt, b.CreatedAt, a.UpdatedAt, b.UpdatedAt)
	}
	b.CreatedAt, b.UpdatedAt = a.CreatedAt, a.UpdatedAt
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		first, second := x.Field(i), y.Field(i)
		if first.Kind() == reflect.Slice && first.Len() == 0 && second.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(first.Interface(), second.Interface()) {
			return fmt.Sprintf("%s is %v in the first and %v in the second",
				x.Type().Field(i).Name, first.Interface(), second.Interface())
		}
	}
	return ""
}
