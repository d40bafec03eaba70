package metadef

import (
	"math"
	"slices"
	"unicode/utf8"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// MaxSearch is how many characters a text search takes.
const MaxSearch = 200

// NamespaceFilter chooses namespaces; every condition given must hold. A nil
// list is no condition, an empty one matches nothing.
type NamespaceFilter struct {
	ResourceTypes    []string
	Visibility       *access.Visibility
	Owner            *string
	Search           *string // folded, in names, titles and descriptions
	PropertiesTarget *string // "" is an association without one
	DefinesKey       *string // with or without an association's prefix
	Tag              *string // whatever its case
}

// Check refuses texts that no name can be.
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

// AssociationFilter chooses associations; every condition given must hold. A
// nil list is no condition, an empty one matches nothing.
type AssociationFilter struct {
	Namespaces       []string // by name
	ResourceTypes    []string // by name
	Prefix           *string  // "" is an association without one
	PropertiesTarget *string  // "" is an association without one
}

// Check refuses texts that no name, prefix or target can be.
func (f AssociationFilter) Check() error {
	var problems problem.Problems
	text.CheckList(&problems, "filter.namespaces", f.Namespaces, text.MaxFilterList)
	text.CheckList(&problems, "filter.resourceTypes", f.ResourceTypes, text.MaxFilterList)
	text.CheckOptional(&problems, "filter.prefix", f.Prefix, 0, text.MaxName)
	text.CheckOptional(&problems, "filter.propertiesTarget", f.PropertiesTarget, 0, text.MaxName)
	return problems.Err()
}

// Of returns those of the associations of a namespace, given by name, that the
// filter chooses, in their order.
func (f AssociationFilter) Of(namespace string, associations []*ResourceTypeAssociation) []*ResourceTypeAssociation {
	chosen := []*ResourceTypeAssociation{}
	for _, association := range associations {
		if f.Matches(namespace, association) {
			chosen = append(chosen, association)
		}
	}
	return chosen
}

// Matches reports whether every condition holds of an association of the
// namespace with a name.
func (f AssociationFilter) Matches(namespace string, a *ResourceTypeAssociation) bool {
	return (f.Namespaces == nil || slices.Contains(f.Namespaces, namespace)) &&
		(f.ResourceTypes == nil || slices.Contains(f.ResourceTypes, a.ResourceTypeName)) &&
		(f.Prefix == nil || *f.Prefix == text.OrEmpty(a.Prefix)) &&
		(f.PropertiesTarget == nil || *f.PropertiesTarget == text.OrEmpty(a.PropertiesTarget))
}

// ResourceTypeFilter chooses resource types; every condition given must hold. A
// nil list is no condition, an empty one matches nothing.
type ResourceTypeFilter struct {
	Names []string
}

// Check refuses texts that no name can be.
func (f ResourceTypeFilter) Check() error {
	var problems problem.Problems
	text.CheckList(&problems, "filter.names", f.Names, text.MaxFilterList)
	return problems.Err()
}

// KeyEnds returns the ends of a key that are not empty, the key itself first:
// the names that some prefix makes the key of.
func KeyEnds(key string) []string {
	ends := []string{}
	for key != "" {
		ends = append(ends, key)
		_, size := utf8.DecodeRuneInString(key)
		key = key[size:]
	}
	return ends
}
