package metadef

import (
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/text"
)

// NameThrough returns the effective name of a definition under an association's
// prefix. Unlike the reference system, it does not repeat the prefix on a name
// that already has it.
func NameThrough(prefix, name string) string {
	if strings.HasPrefix(name, prefix) {
		return name
	}
	return prefix + name
}

// AppliedNamespace is a namespace as one of its associations applies it to a
// resource type. It has everything that a metadata dialog shows of the
// namespace.
type AppliedNamespace struct {
	Namespace   *Namespace
	Association *ResourceTypeAssociation
	Properties  []*PropertyDefinition // of the namespace itself, with effective names
	Objects     []AppliedObject
	Conflicts   []DefinitionConflict
	Search      string // the string that chose properties and objects; "" for all
}

// AppliedObject is an object and its properties, with effective names.
type AppliedObject struct {
	*ObjectDefinition
	Properties []*PropertyDefinition
}

// DefinitionConflict is an effective name that several definitions share for
// the same resource type and target. A value of that key is ambiguous.
type DefinitionConflict struct {
	Name        string
	Definitions []*PropertyDefinition // at least two, in the order of their namespaces
}

// Apply returns the definitions of a namespace under their names in an
// association. properties contains the namespace's own properties and the
// properties of its objects. Each returned property says whether its object
// requires it. Apply does not modify its arguments.
func Apply(namespace *Namespace, association *ResourceTypeAssociation, properties []*PropertyDefinition,
	objects []*ObjectDefinition) AppliedNamespace {
	through := []*ResourceTypeAssociation{association}
	owned := lists.Group(properties, func(p *PropertyDefinition) (object int64, property *PropertyDefinition) {
		return p.ObjectID, p
	})
	applied := AppliedNamespace{Namespace: namespace, Association: association,
		Properties: PropertiesThrough(through, owned[0])}
	for _, object := range ObjectsThrough(through, objects) {
		applied.Objects = append(applied.Objects, AppliedObject{object, PropertiesOfObject(object, owned[object.ID])})
	}
	return applied
}

// Definitions returns every property of the namespace: first its own, then the
// properties of each object.
func (a AppliedNamespace) Definitions() []*PropertyDefinition {
	definitions := slices.Clone(a.Properties)
	for _, object := range a.Objects {
		definitions = append(definitions, object.Properties...)
	}
	return definitions
}

// NoteConflicts sets the conflicts of all namespaces that apply to one resource
// type. Two definitions are in conflict if they have the same effective name
// for the same target. Each of their namespaces lists the conflict; the lists
// are sorted by name. One definition that has the same name in two associations
// is not in conflict.
func NoteConflicts(applied []AppliedNamespace) {
	keyOf := func(a AppliedNamespace, p *PropertyDefinition) [2]string {
		return [2]string{text.OrEmpty(a.Association.PropertiesTarget), p.Name}
	}
	sharing := map[[2]string][]*PropertyDefinition{} // by target and name
	for _, a := range applied {
		for _, p := range a.Definitions() {
			k := keyOf(a, p)
			if !slices.ContainsFunc(sharing[k], func(other *PropertyDefinition) bool { return other.ID == p.ID }) {
				sharing[k] = append(sharing[k], p)
			}
		}
	}
	for i, a := range applied {
		applied[i].Conflicts = nil
		seen := map[string]bool{}
		for _, p := range a.Definitions() {
			if shared := sharing[keyOf(a, p)]; len(shared) > 1 && !seen[p.Name] {
				seen[p.Name] = true
				applied[i].Conflicts = append(applied[i].Conflicts, DefinitionConflict{p.Name, shared})
			}
		}
		slices.SortFunc(applied[i].Conflicts, func(x, y DefinitionConflict) int {
			return strings.Compare(x.Name, y.Name)
		})
	}
}

// Matching keeps the definitions that contain search in their name, title or
// description, ignoring case, and reports whether anything matches. If the
// namespace itself matches or search is empty, all definitions stay. Otherwise
// only matching properties stay, and whole objects if the object or one of its
// properties matches, because an object is never shown in part.
func (a AppliedNamespace) Matching(search string) (AppliedNamespace, bool) {
	wanted := text.Fold(search)
	has := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(input string) bool { return strings.Contains(text.Fold(input), wanted) })
	}
	if has(a.Namespace.Name, a.Namespace.Title, text.OrEmpty(a.Namespace.Description)) {
		return a, true
	}
	hasNot := func(p *PropertyDefinition) bool { return !has(p.Name, p.Title, text.OrEmpty(p.Description)) }
	a.Properties = slices.DeleteFunc(slices.Clone(a.Properties), hasNot)
	a.Objects = slices.DeleteFunc(slices.Clone(a.Objects), func(object AppliedObject) bool {
		return !has(object.Name, text.OrEmpty(object.Description)) &&
			!slices.ContainsFunc(object.Properties, func(p *PropertyDefinition) bool { return !hasNot(p) })
	})
	shown := lists.Set(a.Definitions(), func(p *PropertyDefinition) string { return p.Name })
	a.Conflicts = slices.DeleteFunc(slices.Clone(a.Conflicts), func(c DefinitionConflict) bool {
		return !shown[c.Name]
	})
	return a, len(a.Properties)+len(a.Objects) > 0
}

// PropertiesThrough returns the properties as each association applies them,
// under its prefix.
func PropertiesThrough(associations []*ResourceTypeAssociation,
	properties []*PropertyDefinition) []*PropertyDefinition {
	var seen []*PropertyDefinition
	for _, association := range associations {
		for _, property := range properties {
			through := *property
			through.Association = association.UUID
			through.Name = NameThrough(text.OrEmpty(association.Prefix), property.BaseName)
			seen = append(seen, &through)
		}
	}
	return seen
}

// ObjectsThrough returns the objects as each association applies them, with the
// names of their required properties under its prefix.
func ObjectsThrough(associations []*ResourceTypeAssociation, objects []*ObjectDefinition) []*ObjectDefinition {
	var seen []*ObjectDefinition
	for _, association := range associations {
		for _, object := range objects {
			through := *object
			through.Association, through.Prefix = association.UUID, text.OrEmpty(association.Prefix)
			through.Required = make([]string, len(object.Required))
			for i, name := range object.Required {
				through.Required[i] = NameThrough(text.OrEmpty(association.Prefix), name)
			}
			seen = append(seen, &through)
		}
	}
	return seen
}

// PropertiesOfObject returns the properties of an object under the object's
// prefix. Each says whether the object requires it.
func PropertiesOfObject(object *ObjectDefinition, properties []*PropertyDefinition) []*PropertyDefinition {
	seen := make([]*PropertyDefinition, len(properties))
	for i, property := range properties {
		through := *property
		through.Association = object.Association
		through.Name = NameThrough(object.Prefix, property.BaseName)
		through.Required = slices.Contains(object.Required, through.Name)
		seen[i] = &through
	}
	return seen
}
