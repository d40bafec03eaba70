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

// NameKind is the kind of object that an argument names.
type NameKind string

// The kinds of names that are looked up. A resource type or namespace that the
// viewer may not see is as unknown as one that does not exist.
const (
	NameOfResourceType NameKind = "resource type"
	NameOfNamespace    NameKind = "namespace"
)

// Mention is a list of names of one kind in the arguments of a field.
type Mention struct {
	Kind   NameKind
	Path   string // of the list, or of the single name
	Names  []string
	single bool
}

// MentionOf returns the mention of a list of names. A nil list mentions none.
func MentionOf(kind NameKind, path string, names []string) Mention {
	return Mention{Kind: kind, Path: path, Names: names}
}

// MentionOfOne returns the mention of a single name. A nil name mentions none.
func MentionOfOne(kind NameKind, path string, name *string) Mention {
	if name == nil {
		return Mention{Kind: kind, Path: path}
	}
	return Mention{Kind: kind, Path: path, Names: []string{*name}, single: true}
}

// Check adds a problem for each unknown name, and suggests the nearest one of
// the names in all, which must have only names that the viewer may see.
func (m Mention) Check(problems *problem.Problems, known func(name string) bool, all []string) {
	var spelling *text.Speller
	for i, name := range m.Names {
		if known(name) {
			continue
		}
		if spelling == nil {
			spelling = new(text.NewSpeller(all))
		}
		path := m.Path
		if !m.single {
			path = problem.Index(path, i)
		}
		problems.Add(path, "unknown %s %q%s", m.Kind, Shorten(name), spelling.DidYouMean(name))
	}
}

// Mentions returns the names in the filter at a path.
func (f NamespaceFilter) Mentions(path string) []Mention {
	return []Mention{MentionOf(NameOfResourceType, problem.Join(path, "resourceTypes"), f.ResourceTypes)}
}

// Mentions returns the names in the filter at a path.
func (f AssociationFilter) Mentions(path string) []Mention {
	return []Mention{
		MentionOf(NameOfNamespace, problem.Join(path, "namespaces"), f.Namespaces),
		MentionOf(NameOfResourceType, problem.Join(path, "resourceTypes"), f.ResourceTypes),
	}
}

// Mentions returns the names of resource types in the request at a path. It
// leaves out the names of namespaces: they are the objects of the request, not
// a condition.
func (r UnloadRequest) Mentions(path string) []Mention {
	return []Mention{MentionOf(NameOfResourceType, problem.Join(path, "resourceTypes"), r.ResourceTypes)}
}

// Mentions returns the names that must exist, in the filter at a path.
func (f ResourceTypeFilter) Mentions(path string) []Mention {
	if f.IgnoreUnknown {
		return nil
	}
	return []Mention{MentionOf(NameOfResourceType, problem.Join(path, "names"), f.Names)}
}
