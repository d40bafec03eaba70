package placement

import (
	"fmt"
	"slices"
)

// MaxNewProviders is the maximum number of providers in one request.
const MaxNewProviders = 1000

// NewProviders are providers to create together. It follows
// `CreateResourceProvidersInput`.
type NewProviders struct {
	Items []NewProvider
	// Atomic means that either all of them are created or none.
	Atomic bool
	DryRun bool
}

// Existing is the state of the database that new providers are checked against.
// It must be complete for everything that they refer to or could collide with.
type Existing struct {
	UUIDs  map[string]bool   // of providers
	Names  map[string]string // of providers, with their uuids
	Linked map[string]bool   // uuids of resources that a provider is linked to
	// The resources (by uuid), traits and classes that new providers refer to and
	// that exist.
	Resources map[string]bool
	KnownNames
}

// Admit returns the problems of a new provider, each at its path below path
// ("input"). The provider's UUID must be set. If there are no problems, Admit
// adds the provider to the existing ones.
func (e *Existing) Admit(n *NewProvider, path string) []Problem {
	v := validator{problems: n.Validate(path)}
	e.checkTaken(&v, n, path)
	e.checkParent(&v, n, path)
	e.checkResource(&v, n, path)
	v.checkKnown(path, n.Inventories, n.Traits, e.KnownNames)
	if len(v.problems) > 0 {
		return v.problems
	}
	e.UUIDs[*n.UUID], e.Names[n.Name] = true, *n.UUID
	if n.Resource != nil {
		e.Linked[*n.Resource] = true
	}
	return nil
}

// checkTaken checks that no other provider has the uuid or the name of the new
// one.
func (e *Existing) checkTaken(v *validator, n *NewProvider, path string) {
	if e.UUIDs[*n.UUID] {
		v.taken(under(path, "uuid"), "resource provider %s already exists", *n.UUID)
	}
	if e.Names[n.Name] != "" {
		v.taken(under(path, "name"), "resource provider named %q already exists", n.Name)
	}
}

// checkResource checks that the resource of a new provider exists and is not
// linked to another provider.
func (e *Existing) checkResource(v *validator, n *NewProvider, path string) {
	switch {
	case n.Resource == nil:
	case !e.Resources[*n.Resource]:
		v.add(under(path, "resource"), "resource %s does not exist", *n.Resource)
	case e.Linked[*n.Resource]:
		v.taken(under(path, "resource"), "another resource provider is linked to resource %s", *n.Resource)
	}
}

// taken adds the problem that another provider has a value already.
func (v *validator) taken(path, format string, args ...any) {
	v.problems = append(v.problems, Problem{Path: path, Message: fmt.Sprintf(format, args...), Taken: true})
}

// checkParent checks that the parent of a new provider exists.
func (e *Existing) checkParent(v *validator, n *NewProvider, path string) {
	switch {
	case n.Parent != nil && *n.Parent != *n.UUID && !e.UUIDs[*n.Parent]:
		v.add(under(path, "parent"), "resource provider %s does not exist", *n.Parent)
	case n.ParentName != nil && *n.ParentName != n.Name &&
		IsProviderName(*n.ParentName) && e.Names[*n.ParentName] == "":
		v.add(under(path, "parentName"), "resource provider %q does not exist", *n.ParentName)
	}
}

// ParentOf returns the uuid of the parent of an admitted provider, "" for a
// root.
func (e *Existing) ParentOf(n *NewProvider) string {
	switch {
	case n.Parent != nil:
		return *n.Parent
	case n.ParentName != nil:
		return e.Names[*n.ParentName]
	}
	return ""
}

// References are the names and uuids to look up before Admit: the names and
// uuids of the new providers, and the uuids and names that they refer to.
// Invalid names are omitted.
type References struct {
	UUIDs, Names, ParentUUIDs, ParentNames, Resources, Traits, ResourceClasses []string
}

// ReferencesOf returns the references of new providers, without duplicates. The
// UUIDs of the providers must be set.
func ReferencesOf(items []NewProvider) References {
	var r References
	for i := range items {
		n := &items[i]
		r.UUIDs = append(r.UUIDs, *n.UUID)
		r.Names = append(r.Names, n.Name)
		r.ParentUUIDs = appendGiven(r.ParentUUIDs, n.Parent)
		r.ParentNames = appendGiven(r.ParentNames, n.ParentName)
		r.Resources = appendGiven(r.Resources, n.Resource)
		r.Traits = append(r.Traits, n.Traits...)
		for _, inventory := range n.Inventories {
			r.ResourceClasses = append(r.ResourceClasses, inventory.ResourceClass)
		}
	}
	r.UUIDs, r.ParentUUIDs, r.Resources = sortedSet(r.UUIDs), sortedSet(r.ParentUUIDs), sortedSet(r.Resources)
	r.Names, r.ParentNames = setThat(IsProviderName, r.Names), setThat(IsProviderName, r.ParentNames)
	r.Traits, r.ResourceClasses = setThat(isName, r.Traits), setThat(isName, r.ResourceClasses)
	return r
}

func appendGiven(list []string, given *string) []string {
	if given == nil {
		return list
	}
	return append(list, *given)
}

// setThat returns the strings for which mayExist holds, sorted and without
// duplicates.
func setThat(mayExist func(string) bool, list []string) []string {
	return slices.DeleteFunc(sortedSet(list), func(text string) bool { return !mayExist(text) })
}
