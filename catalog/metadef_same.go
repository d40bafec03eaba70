package catalog

import (
	"cmp"
	"slices"
)

// Holds tells whether a stored document says everything that another one says:
// where the other is silent about a field, or orders its tags or associations
// otherwise, it holds it all the same.
func (d *Document) Holds(other *Document) bool {
	filled := *other
	fill(&filled.DisplayName, d.DisplayName)
	fill(&filled.Description, d.Description)
	fill(&filled.Visibility, d.Visibility)
	fill(&filled.Protected, d.Protected)
	fill(&filled.Owner, d.Owner)
	return d.ordered().Text() == filled.ordered().Text()
}

func fill[T any](field **T, from *T) {
	if *field == nil {
		*field = from
	}
}

// ordered is the document with its tags and associations in a fixed order.
func (d *Document) ordered() *Document {
	out := *d
	out.Tags = slices.SortedFunc(slices.Values(d.Tags), func(a, b DocumentTag) int {
		return cmp.Compare(Fold(a.Name), Fold(b.Name))
	})
	out.Associations = slices.SortedFunc(slices.Values(d.Associations), func(a, b DocumentAssociation) int {
		return cmp.Or(cmp.Compare(a.ResourceType, b.ResourceType), comparePointers(a.Prefix, b.Prefix),
			comparePointers(a.PropertiesTarget, b.PropertiesTarget))
	})
	return &out
}

func comparePointers(a, b *string) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Compare(*a, *b)
}
