package catalog

import (
	"slices"
	"strings"
)

// Prefixed is the effective name of a definition under an association's prefix.
// A name that carries the prefix already is not given it twice: a departure
// from the reference system.
func Prefixed(prefix, name string) string {
	if strings.HasPrefix(name, prefix) {
		return name
	}
	return prefix + name
}

// BaseNames gives the names, one or two, whose effective name under the prefix
// is the given one: the name without the prefix, and the name that carries it
// already. It is empty where the given name lacks the prefix.
func BaseNames(prefix, effective string) []string {
	base, carries := strings.CutPrefix(effective, prefix)
	switch {
	case !carries:
		return nil
	case prefix == "":
		return []string{effective}
	case base == "" || strings.HasPrefix(base, prefix):
		return []string{effective}
	}
	return []string{base, effective}
}

// AppliedNamespace is a namespace as one of its associations makes it
// applicable to a resource type: everything a metadata dialog shows of it.
type AppliedNamespace struct {
	Namespace   *Namespace
	Association *ResourceTypeAssociation
	Properties  []*PropertyDefinition // of the namespace itself, with effective names
	Objects     []AppliedObject
	Conflicts   []DefinitionConflict
}

// AppliedObject is an object and its properties, with effective names.
type AppliedObject struct {
	*ObjectDefinition
	Properties []*PropertyDefinition
}

// DefinitionConflict is one effective name that several definitions share for
// the same resource type and target, so that a value of that key means
// different things.
type DefinitionConflict struct {
	Name        string
	Definitions []*PropertyDefinition // two at least, in the order of their namespaces
}

// Apply gives the definitions of a namespace the names they have through an
// association; without one (nil) they keep theirs. Properties are those of the
// namespace and of its objects; each carries whether its object requires it.
// Nothing that is passed in is changed.
func Apply(namespace *Namespace, association *ResourceTypeAssociation, properties []*PropertyDefinition, objects []*ObjectDefinition) AppliedNamespace {
	applied := AppliedNamespace{Namespace: namespace, Association: association}
	prefix, associationID := "", int64(0)
	if association != nil {
		associationID = association.ID
		if association.Prefix != nil {
			prefix = *association.Prefix
		}
	}
	place := make(map[int64]int, len(objects))
	for i, object := range objects {
		named := *object
		named.AssociationID = associationID
		named.Required = nil
		for _, name := range object.Required {
			named.Required = append(named.Required, Prefixed(prefix, name))
		}
		place[object.ID] = i
		applied.Objects = append(applied.Objects, AppliedObject{ObjectDefinition: &named})
	}
	for _, property := range properties {
		named := *property
		named.BaseName, named.AssociationID = property.BaseName, associationID
		if named.BaseName == "" {
			named.BaseName = property.Name
		}
		named.Name = Prefixed(prefix, named.BaseName)
		named.Required = false
		if property.ObjectID == 0 {
			applied.Properties = append(applied.Properties, &named)
		} else if i, known := place[property.ObjectID]; known {
			named.Required = slices.Contains(objects[i].Required, named.BaseName)
			applied.Objects[i].Properties = append(applied.Objects[i].Properties, &named)
		}
	}
	return applied
}

// Definitions is every property of the namespace, its own first, then those of
// each object.
func (a AppliedNamespace) Definitions() []*PropertyDefinition {
	definitions := slices.Clone(a.Properties)
	for _, object := range a.Objects {
		definitions = append(definitions, object.Properties...)
	}
	return definitions
}

// NoteConflicts fills in the conflicts of all namespaces that apply to one
// resource type. Two definitions are in conflict when they have the same
// effective name for the same target; each of their namespaces lists it, sorted
// by name. One definition that two associations name alike is no conflict.
func NoteConflicts(applied []AppliedNamespace) {
	type key struct{ target, name string }
	keyOf := func(a AppliedNamespace, p *PropertyDefinition) key {
		if a.Association == nil || a.Association.PropertiesTarget == nil {
			return key{"", p.Name}
		}
		return key{*a.Association.PropertiesTarget, p.Name}
	}
	sharing := map[key][]*PropertyDefinition{}
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
		slices.SortFunc(applied[i].Conflicts, func(x, y DefinitionConflict) int { return strings.Compare(x.Name, y.Name) })
	}
}

// Matching keeps what has the searched text in its name, title or description,
// whatever its case: everything where the namespace itself has it, all
// properties of an object that has it, and single properties. False means that
// nothing has it. The empty text keeps all.
func (a AppliedNamespace) Matching(search string) (AppliedNamespace, bool) {
	wanted := Fold(search)
	has := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(Fold(text), wanted) })
	}
	if has(a.Namespace.Name, a.Namespace.Title, textOf(a.Namespace.Description)) {
		return a, true
	}
	matches := func(properties []*PropertyDefinition) []*PropertyDefinition {
		var found []*PropertyDefinition
		for _, p := range properties {
			if has(p.Name, p.Title, textOf(p.Description)) {
				found = append(found, p)
			}
		}
		return found
	}
	objects := a.Objects
	a.Properties, a.Objects = matches(a.Properties), nil
	for _, object := range objects {
		if !has(object.Name, textOf(object.Description)) {
			object.Properties = matches(object.Properties)
			if len(object.Properties) == 0 {
				continue
			}
		}
		a.Objects = append(a.Objects, object)
	}
	return a, len(a.Properties)+len(a.Objects) > 0
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
