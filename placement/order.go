package placement

import (
	"fmt"
	"math"
)

// The fields of a ProviderOrder that compare inventories of a resource class.
const (
	OrderByFree      = "FREE"
	OrderByShareUsed = "SHARE_USED"
)

// ProviderOrder is the order of a list of providers.
type ProviderOrder struct {
	Field      string
	Descending bool
	// ResourceClass is the class whose inventories are compared, for OrderByFree
	// and OrderByShareUsed; else nil.
	ResourceClass *string
}

// ofClass reports whether the order compares inventories of a resource class.
func (o ProviderOrder) ofClass() bool {
	return o.Field == OrderByFree || o.Field == OrderByShareUsed
}

// Validate returns every problem of the order, each at its path below path: a
// class that is missing, unknown, or not allowed with the field.
func (o ProviderOrder) Validate(w *World, path string) []Problem {
	v := validator{world: w}
	path = under(path, "resourceClass")
	switch {
	case o.ofClass() && o.ResourceClass == nil:
		v.add(path, "is required to order by %s", o.Field)
	case o.ofClass():
		v.checkClass(path, *o.ResourceClass)
	case o.ResourceClass != nil:
		v.add(path, "is not allowed when ordering by %s", o.Field)
	}
	return v.problems
}

// Key returns a sort key for OrderByFree and OrderByShareUsed. Keys compare
// like the values, so a descending list reverses them. Providers without an
// inventory of the class, or with no capacity for a share, are last in either
// direction.
func (o ProviderOrder) Key(p *Provider) string {
	first, last := "0", "1"
	if o.Descending {
		first, last = last, first
	}
	for _, inventory := range p.Inventories {
		if inventory.ResourceClass != *o.ResourceClass {
			continue
		}
		number := uint64(inventory.Free()) ^ 1<<63 // sorts as the signed number does
		if o.Field == OrderByShareUsed {
			if inventory.Capacity <= 0 {
				return last
			}
			number = math.Float64bits(float64(inventory.Used) / float64(inventory.Capacity))
		}
		return fmt.Sprintf("%s%020d", first, number)
	}
	return last
}
