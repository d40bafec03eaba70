package metadef

import (
	"math"
	"slices"
	"unicode/utf8"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// MaxSearch is the maximum length of a search string in characters.
const MaxSearch = 200

// NamespaceFilter selects namespaces that meet every given condition. A nil
// list is no condition, an empty one matches nothing.
type NamespaceFilter struct {
	ResourceTypes    []string
	Visibility       *access.Visibility
	Owner            *string
	Search           *string // in names, titles and descriptions, ignoring case
	PropertiesTarget *string // "" selects associations without one
	DefinesKey       *string // with or without an association's prefix
	Tag              *string // ignoring case
}

// Check refuses strings that no name can equal, and lists that are too long.
func (f NamespaceFilter) Check() error {
	var problems problem.Problems
	text.CheckList(&problems, "filter.resourceTypes", f.ResourceTypes, text.MaxFilterList)
	text.CheckOptional(&problems, "filter.owner", f.Owner, 0, math.MaxInt)
	text.CheckOptional(&problems, "filter.search", f.Search, 0, MaxSearch)
	text.CheckOptional(&problems, "filter.propertiesTarget", f.PropertiesTarget, 0, math.MaxInt)
	text.CheckOptional(&problems, "filter.definesKey", f.DefinesKey, 0, MaxMetadataKey)
	text.CheckOptional(&problems, "filter.tag", f.Tag, 0, math.MaxInt)
	return problems.Err()
}

// AssociationFilter selects associations that meet every given condition. A nil
// list is no condition, an empty one matches nothing.
type AssociationFilter struct {
	Namespaces       []string // by name
	ResourceTypes    []string // by name
	Prefix           *string  // "" selects associations without one
	PropertiesTarget *string  // "" selects associations without one
}

// Check refuses strings that no name, prefix or target can equal, and lists that
// are too long.
func (f AssociationFilter) Check() error {
	var problems problem.Problems
	text.CheckList(&problems, "filter.namespaces", f.Namespaces, text.MaxFilterList)
	text.CheckList(&problems, "filter.resourceTypes", f.ResourceTypes, text.MaxFilterList)
	text.CheckOptional(&problems, "filter.prefix", f.Prefix, 0, text.MaxName)
	text.CheckOptional(&problems, "filter.propertiesTarget", f.PropertiesTarget, 0, text.MaxName)
	return problems.Err()
}

// Of returns the associations of the named namespace that match the filter, in
// their order.
func (f AssociationFilter) Of(namespace string, associations []*ResourceTypeAssociation) []*ResourceTypeAssociation {
	chosen := []*ResourceTypeAssociation{}
	for _, association := range associations {
		if f.matches(namespace, association) {
			chosen = append(chosen, association)
		}
	}
	return chosen
}

// matches reports whether an association of the named namespace meets every
// condition.
func (f AssociationFilter) matches(namespace string, a *ResourceTypeAssociation) bool {
	return (f.Namespaces == nil || slices.Contains(f.Namespaces, namespace)) &&
		(f.ResourceTypes == nil || slices.Contains(f.ResourceTypes, a.ResourceTypeName)) &&
		(f.Prefix == nil || *f.Prefix == text.OrEmpty(a.Prefix)) &&
		(f.PropertiesTarget == nil || *f.PropertiesTarget == text.OrEmpty(a.PropertiesTarget))
}

// ResourceTypeFilter selects resource types that meet every given condition. A
// nil list is no condition, an empty one matches nothing.
type ResourceTypeFilter struct {
	Names []string
	// IgnoreUnknown ignores names that do not exist.
	IgnoreUnknown bool
}

// Check refuses strings that no name can equal, and lists that are too long.
func (f ResourceTypeFilter) Check() error {
	var problems problem.Problems
	text.CheckList(&problems, "filter.names", f.Names, text.MaxFilterList)
	return problems.Err()
}

// KeyEnds returns the non-empty suffixes of a key, the key itself first. They
// are the names that become the key under some prefix.
func KeyEnds(key string) []string {
	ends := []string{}
	for key != "" {
		ends = append(ends, key)
		_, size := utf8.DecodeRuneInString(key)
		key = key[size:]
	}
	return ends
}
