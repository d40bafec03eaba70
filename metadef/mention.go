package metadef

import (
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

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
