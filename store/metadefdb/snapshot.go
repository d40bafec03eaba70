package metadefdb

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/internal/lru"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/text"
)

// definitions are all namespaces with their definitions and members, and all
// resource types, as one snapshot of the database sees them. They are
// immutable: callers must not modify returned values.
type definitions struct {
	namespaces map[int64]*heldNamespace
	types      map[int64]heldType
	typeNamed  map[string]int64
	links      map[int64][]definedLink // by type; sorted by row id of namespace and association
	bytes      int64                   // of memory, approximately

	// Caches of the results of appliedTo and of rulesOf, shared by viewers who
	// see the same definitions.
	dialogs *lru.Cache[[]metadef.AppliedNamespace]
	rules   *lru.Cache[*metadef.Rules]
}

// heldNamespace is a namespace with its definitions and audience.
type heldNamespace struct {
	*metadef.Namespace
	audience     metadef.Audience
	associations []*metadef.ResourceTypeAssociation // sorted by row id
	properties   []*metadef.PropertyDefinition      // including properties of objects
	objects      []*metadef.ObjectDefinition
	bytes        int64
}

// heldType has the fields that decide who knows a resource type and whether its
// rules are strict.
type heldType struct {
	ID                         int64
	Name                       string
	Protected, Strict, Implied bool
}

// definedLink is an association with the namespace that it applies to its type.
type definedLink struct {
	*metadef.ResourceTypeAssociation
	in         *metadef.Namespace
	audience   metadef.Audience
	properties []*metadef.PropertyDefinition
	objects    []*metadef.ObjectDefinition
	isWhole    bool // whether the whole namespace was read, not only its name
}

// apply returns the namespace as the association applies it to its type.
func (l definedLink) apply() metadef.AppliedNamespace {
	applied := metadef.Apply(l.in, l.ResourceTypeAssociation, l.properties, l.objects)
	if l.isWhole {
		for _, property := range applied.Definitions() { // these are copies for the association
			property.In = l.in
		}
	}
	return applied
}

// isFor reports whether a link has a properties target; nil is any.
func (l definedLink) isFor(target *string) bool {
	return target == nil || text.OrEmpty(l.PropertiesTarget) == *target
}

// Approximate maximum memory of the caches, in bytes.
const (
	dialogBytes = 32 << 20
	rulesBytes  = 32 << 20
	// appliedBytes is the approximate size of a definition in either cache, in
	// bytes.
	appliedBytes = 1200
)

func newDefinitions(namespaces map[int64]*heldNamespace, types map[int64]heldType) *definitions {
	d := &definitions{namespaces: namespaces, types: types,
		typeNamed: make(map[string]int64, len(types)), links: map[int64][]definedLink{},
		dialogs: lru.New[[]metadef.AppliedNamespace](dialogBytes), rules: lru.New[*metadef.Rules](rulesBytes)}
	for id, of := range types {
		d.typeNamed[of.Name] = id
	}
	for _, id := range slices.Sorted(maps.Keys(namespaces)) {
		in := namespaces[id]
		d.bytes += in.bytes
		for _, association := range in.associations {
			d.links[association.ResourceTypeID] = append(d.links[association.ResourceTypeID],
				definedLink{association, in.Namespace, in.audience, in.properties, in.objects, true})
		}
	}
	return d
}

// changedThings has the names of changed namespaces and types, and the current
// namespaces and types with these names.
type changedThings struct {
	namespaceNames, typeNames []string
	namespaces                []*heldNamespace
	types                     []heldType
}

// with returns the definitions with the changed namespaces and types replaced.
func (d *definitions) with(c changedThings) *definitions {
	namespaces, types := maps.Clone(d.namespaces), maps.Clone(d.types)
	changed := lists.Set(c.namespaceNames, lists.Itself)
	maps.DeleteFunc(namespaces, func(_ int64, in *heldNamespace) bool { return changed[in.Name] })
	for _, in := range c.namespaces {
		namespaces[in.ID] = in
	}
	renamed := lists.Set(c.typeNames, lists.Itself)
	maps.DeleteFunc(types, func(_ int64, of heldType) bool { return renamed[of.Name] })
	for _, of := range c.types {
		types[of.ID] = of
	}
	return newDefinitions(namespaces, types)
}

// isSame reports whether the type with a name equals the current one in among,
// or whether neither the definitions nor among have one.
func (d *definitions) isSame(name string, among []heldType) bool {
	id, held := d.typeNamed[name]
	i := slices.IndexFunc(among, func(of heldType) bool { return of.Name == name })
	return held == (i >= 0) && (!held || d.types[id] == among[i])
}

// knows returns the row id of the resource type with a name, and reports
// whether definitions let a viewer know it. A viewer may also know a type by
// its resources, which knows does not consider.
func (d *definitions) knows(viewer access.Viewer, name string) (id int64, ok bool) {
	id, ok = d.typeNamed[name]
	if !ok {
		return 0, false
	}
	of := d.types[id]
	return id, metadef.KnowsType(viewer, of.Protected, !of.Implied) ||
		slices.ContainsFunc(d.links[id], func(link definedLink) bool { return link.audience.IncludesViewer(viewer) })
}

// appliedTo returns the visible namespaces that apply to a resource type. If
// target is not nil, only associations with that target count.
func (d *definitions) appliedTo(viewer access.Viewer, resourceType string, target *string) []metadef.AppliedNamespace {
	signature := &strings.Builder{} // of the ids alone: a name may contain anything
	var links []definedLink
	count := 1
	for _, link := range d.links[d.typeNamed[resourceType]] {
		if link.isFor(target) && link.audience.IncludesViewer(viewer) {
			fmt.Fprint(signature, " ", link.ID)
			links = append(links, link)
			count += len(link.properties) + len(link.objects)
		}
	}
	applied, ok := d.dialogs.Get(signature.String())
	if !ok {
		applied = applyInOrder(links)
		d.dialogs.Add(signature.String(), applied, int64(count)*appliedBytes)
	}
	return applied
}

// applyInOrder returns the namespaces as links apply them, by display name,
// with conflicts noted.
func applyInOrder(links []definedLink) []metadef.AppliedNamespace {
	links = slices.Clone(links)
	slices.SortStableFunc(links, func(a, b definedLink) int {
		return cmp.Or(cmp.Compare(a.in.DisplayName(), b.in.DisplayName()), cmp.Compare(a.in.Name, b.in.Name),
			cmp.Compare(text.OrEmpty(a.Prefix), text.OrEmpty(b.Prefix)),
			cmp.Compare(text.OrEmpty(a.PropertiesTarget), text.OrEmpty(b.PropertiesTarget)))
	})
	applied := lists.Map(links, definedLink.apply)
	metadef.NoteConflicts(applied)
	return applied
}

// rulesFor returns the rules of each key, made from the namespaces that its
// project sees. It returns nil if the definitions lack the type of a key.
func (d *definitions) rulesFor(viewer access.Viewer, keys []RulesKey, target *string) map[RulesKey]*metadef.Rules {
	rules := make(map[RulesKey]*metadef.Rules, len(keys))
	for _, key := range keys {
		of, found := d.types[key.TypeID]
		if !found {
			return nil
		}
		if rules[key] != nil {
			continue
		}
		links := d.links[key.TypeID]
		if target != nil {
			links = slices.DeleteFunc(slices.Clone(links), func(link definedLink) bool { return !link.isFor(target) })
		}
		rules[key] = rulesOf(viewer, key, of.Strict, links, d.rules)
	}
	return rules
}

// rulesOf returns the rules for the resources of a type and a project, made
// from the type's associations. It hides definitions that the viewer does not
// see. Viewers with the same visible and hidden definitions share a cached
// result.
func rulesOf(viewer access.Viewer, key RulesKey, strict bool, links []definedLink,
	kept *lru.Cache[*metadef.Rules]) *metadef.Rules {
	var holds []definedLink
	hidden, weight := map[int64]bool{}, 1
	signature := &strings.Builder{}
	fmt.Fprint(signature, key.TypeID, strict)
	for _, link := range links {
		if !link.audience.Includes(key.ProjectID) {
			continue
		}
		holds = append(holds, link)
		weight += len(link.properties) + len(link.objects)
		if !link.audience.IncludesViewer(viewer) {
			hidden[link.in.ID] = true
		}
		fmt.Fprint(signature, " ", link.ID, hidden[link.in.ID])
	}
	rules, ok := kept.Get(signature.String())
	if !ok {
		rules = metadef.NewRules(strict, lists.Map(holds, definedLink.apply), hidden)
		kept.Add(signature.String(), rules, int64(weight)*appliedBytes)
	}
	return rules
}
