package resourcetest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/text"
)

// World is all resources, and the rules of who may discover capabilities. Tests
// evaluate filters and facets on it, resource by resource.
type World struct {
	Resources []*Thing
	// Private are the capabilities that only administrators and services
	// discover, by type and name. Registered are all capabilities.
	Private, Registered map[[2]string]bool
	Discovery           resource.CapabilityDiscovery
	// Below maps a tag to the tags that visible definitions place below it,
	// folded.
	Below map[string][]string
}

// Thing is a resource with its metadata, capabilities and tags.
type Thing struct {
	UUID, Type, Name, Description, Project, Parent string
	Visibility                                     access.Visibility
	UpdatedAt                                      time.Time
	Metadata, Capabilities                         map[string]string
	Tags                                           []string
}

// Sees reports whether a viewer may see a resource.
func Sees(viewer access.Viewer, of *Thing) bool {
	return viewer.CanRead() && (viewer.IsAdmin() || viewer.IsService() || of.Visibility == access.Public ||
		viewer.ProjectID != "" && of.Project == viewer.ProjectID)
}

// CapabilitiesSeen returns the capabilities of a resource that a viewer may
// discover.
func (w World) CapabilitiesSeen(viewer access.Viewer, of *Thing) map[string]string {
	seen := map[string]string{}
	for name, value := range of.Capabilities {
		if w.discovers(viewer, of.Type, name) {
			seen[name] = value
		}
	}
	return seen
}

func (w World) discovers(viewer access.Viewer, ofType, name string) bool {
	return resource.MayDiscover(viewer, w.Discovery) == nil &&
		(viewer.IsAdmin() || viewer.IsService() || !w.Private[[2]string{ofType, name}])
}

// knows reports whether a viewer may know of a capability name on any type, or
// on one of the given ones.
func (w World) knows(viewer access.Viewer, types []string, name string) bool {
	for of := range w.Registered {
		if of[1] == name && (types == nil || slices.Contains(types, of[0])) && w.discovers(viewer, of[0], name) {
			return true
		}
	}
	return false
}

// Matching returns the visible resources that match a filter, and false if the
// store must refuse the filter.
func (w World) Matching(viewer access.Viewer, filter resource.Filter) ([]*Thing, bool) {
	var problems problem.Problems
	filter.Check(&problems, "filter")
	plan := filter.Plan(&problems, "filter")
	conditions := plan.Conditions(resource.CapabilityNames{Knows: func(name string) bool {
		return w.knows(viewer, filter.Types, name)
	}}, &problems)
	if len(problems) > 0 || len(filter.Types) > 0 && !viewer.CanRead() { // a viewer who sees no type
		return nil, false
	}
	var matching []*Thing
	for _, of := range w.Resources {
		if !Sees(viewer, of) || !w.matchesPlainly(viewer, filter, of) {
			continue
		}
		facts := w.FactsOf(viewer, of)
		if !slices.ContainsFunc(conditions, func(c resource.FilterCondition) bool {
			return !c.Ignored && !Matches(c.Condition, facts)
		}) {
			matching = append(matching, of)
		}
	}
	return matching, true
}

// FactsOf returns the facts of a resource that a viewer knows, to evaluate a
// tree of conditions.
func (w World) FactsOf(viewer access.Viewer, of *Thing) Facts {
	return Facts{Metadata: of.Metadata, Capabilities: w.CapabilitiesSeen(viewer, of),
		Plain: func(c resource.Condition) bool {
			if c.Kind == resource.ConditionUpdatedSince {
				return !of.UpdatedAt.Before(c.Since)
			}
			return slices.ContainsFunc(c.Test.Operands, func(operand string) bool {
				return w.holdsPlainly(viewer, c, operand, of)
			})
		}}
}

// holdsPlainly reports whether a condition with one operand holds.
func (w World) holdsPlainly(viewer access.Viewer, c resource.Condition, operand string, of *Thing) bool {
	switch c.Kind {
	case resource.ConditionType:
		return of.Type == operand
	case resource.ConditionProject:
		return of.Project == operand
	case resource.ConditionVisibility:
		return string(of.Visibility) == operand
	case resource.ConditionName:
		return of.Name == operand
	case resource.ConditionNameContains:
		return has(of.Name, operand)
	case resource.ConditionSearch:
		return mentions(of, operand)
	case resource.ConditionUUID:
		return of.UUID == operand
	case resource.ConditionParent:
		return of.Parent == operand && w.isSeen(viewer, of.Parent)
	case resource.ConditionAncestor:
		return slices.Contains(w.above(viewer, of), operand)
	}
	return w.hasTag(of, resource.TagFilter{Name: operand, IncludeDescendants: c.Below})
}

// matchesPlainly evaluates the fields of a filter other than Requirements,
// Matching and Where.
func (w World) matchesPlainly(viewer access.Viewer, f resource.Filter, of *Thing) bool {
	holds := []bool{
		f.Types == nil || slices.Contains(f.Types, of.Type),
		f.ProjectID == nil || *f.ProjectID == of.Project,
		f.ProjectIDs == nil || slices.Contains(f.ProjectIDs, of.Project),
		f.Visibility == nil || *f.Visibility == of.Visibility,
		f.Name == nil || *f.Name == of.Name,
		f.NameContains == nil || has(of.Name, *f.NameContains),
		f.Search == nil || mentions(of, *f.Search),
		f.UpdatedSince == nil || !of.UpdatedAt.Before(*f.UpdatedSince),
		f.UUIDs == nil || slices.Contains(f.UUIDs, of.UUID),
		f.Parent == nil || of.Parent == *f.Parent && w.isSeen(viewer, of.Parent),
		f.Ancestor == nil || slices.Contains(w.above(viewer, of), *f.Ancestor),
	}
	return !slices.Contains(append(holds, w.hasTags(f, of)...), false)
}

// hasTags evaluates each condition of Tags, AnyTags and Metadata.
func (w World) hasTags(f resource.Filter, of *Thing) (holds []bool) {
	for _, wanted := range f.Tags {
		holds = append(holds, w.hasTag(of, wanted))
	}
	if f.AnyTags != nil {
		holds = append(holds,
			slices.ContainsFunc(f.AnyTags, func(wanted resource.TagFilter) bool { return w.hasTag(of, wanted) }))
	}
	for _, pair := range f.Metadata {
		value, ok := of.Metadata[pair.Key]
		holds = append(holds, ok && slices.Contains(f.Metadata, metadef.KeyValue{Key: pair.Key, Value: value}))
	}
	return holds
}

func has(in, folded string) bool { return strings.Contains(text.Fold(in), text.Fold(folded)) }

func mentions(of *Thing, wanted string) bool {
	for _, value := range of.Metadata {
		if has(value, wanted) {
			return true
		}
	}
	return has(of.Name, wanted) || has(of.Description, wanted)
}

func (w World) hasTag(of *Thing, wanted resource.TagFilter) bool {
	names := []string{text.Fold(wanted.Name)}
	if wanted.IncludeDescendants {
		names = append(names, w.Below[names[0]]...)
	}
	return slices.ContainsFunc(of.Tags, func(tag string) bool { return slices.Contains(names, text.Fold(tag)) })
}

func (w World) isSeen(viewer access.Viewer, uuid string) bool {
	above := w.thing(uuid)
	return above != nil && Sees(viewer, above)
}

func (w World) thing(uuid string) *Thing {
	at := slices.IndexFunc(w.Resources, func(of *Thing) bool { return of.UUID == uuid })
	if at < 0 {
		return nil
	}
	return w.Resources[at]
}

// above returns the uuids of a resource's ancestors, up to the first one that
// the viewer may not see.
func (w World) above(viewer access.Viewer, of *Thing) (uuids []string) {
	for up := w.thing(of.Parent); up != nil && Sees(viewer, up); up = w.thing(up.Parent) {
		uuids = append(uuids, up.UUID)
	}
	return uuids
}

// InOrder returns resources sorted by a key and, to break ties, by uuid.
func InOrder(of []*Thing, key func(*Thing) string) []*Thing {
	return slices.SortedFunc(slices.Values(of), func(a, b *Thing) int {
		return cmp.Or(strings.Compare(key(a), key(b)), strings.Compare(a.UUID, b.UUID))
	})
}

// Facet counts the visible resources that match a filter without the facet's
// own condition, by value. Tags are folded. It returns false if the store must
// refuse the filter.
func (w World) Facet(viewer access.Viewer, filter resource.Filter, of resource.FacetRequest) (map[string]int, bool) {
	matching, ok := w.Matching(viewer, withoutChoice(filter, of))
	counts := map[string]int{}
	for _, thing := range matching {
		for _, value := range w.valuesOf(viewer, thing, of) {
			counts[value]++
		}
	}
	return counts, ok
}

func (w World) valuesOf(viewer access.Viewer, of *Thing, wanted resource.FacetRequest) []string {
	switch wanted.By {
	case resource.FacetType:
		return []string{of.Type}
	case resource.FacetProject:
		return []string{of.Project}
	case resource.FacetVisibility:
		return []string{string(of.Visibility)}
	case resource.FacetTag:
		var tags []string
		for _, tag := range of.Tags {
			tags = append(tags, text.Fold(tag))
		}
		return tags
	case resource.FacetMetadataKey:
		return slices.Collect(maps.Keys(of.Metadata))
	case resource.FacetMetadataValue:
		if value, ok := of.Metadata[*wanted.Key]; ok {
			return []string{value}
		}
		return nil
	}
	value, ok := w.CapabilitiesSeen(viewer, of)[*wanted.Key]
	if !ok {
		return nil
	}
	members, _ := resource.CapabilityMembers(value)
	return members
}

// withoutChoice returns a filter without the conditions that only concern the
// facet.
func withoutChoice(f resource.Filter, of resource.FacetRequest) resource.Filter {
	switch of.By {
	case resource.FacetType:
		f.Types = nil
	case resource.FacetProject:
		f.ProjectID, f.ProjectIDs = nil, nil
	case resource.FacetVisibility:
		f.Visibility = nil
	case resource.FacetTag:
		f.Tags, f.AnyTags = nil, nil
	case resource.FacetMetadataValue:
		var kept []metadef.KeyValue
		for _, pair := range f.Metadata {
			if pair.Key != *of.Key {
				kept = append(kept, pair)
			}
		}
		f.Metadata = kept
	case resource.FacetCapabilityValue:
		var kept []resource.Requirement
		for _, requirement := range f.Requirements {
			if strings.TrimPrefix(requirement.Key, "capabilities:") != *of.Key {
				kept = append(kept, requirement)
			}
		}
		f.Requirements = kept
	}
	if f.Where != nil {
		f.Where = keptOf(*f.Where, of)
	}
	return f
}

// keptOf returns the part of a tree that remains without the conditions that
// only concern the facet, nil if none remains.
func keptOf(c resource.ConditionInput, of resource.FacetRequest) *resource.ConditionInput {
	switch {
	case c.All != nil:
		all := []resource.ConditionInput{}
		for _, member := range c.All {
			if kept := keptOf(member, of); kept != nil {
				all = append(all, *kept)
			}
		}
		return &resource.ConditionInput{All: all}
	case asksAlone(c, of):
		return nil
	}
	return &c
}

func asksAlone(c resource.ConditionInput, of resource.FacetRequest) bool {
	members := append(slices.Clone(c.All), c.Any...)
	if c.Not != nil {
		members = append(members, *c.Not)
	}
	switch {
	case c.Metadata != nil && c.Metadata.Exists != nil:
		return of.By == resource.FacetMetadataKey || of.By == resource.FacetMetadataValue && c.Metadata.Key == *of.Key
	case c.Metadata != nil:
		return of.By == resource.FacetMetadataValue && c.Metadata.Key == *of.Key
	case c.Capability != nil:
		return of.By == resource.FacetCapabilityValue && c.Capability.Name == *of.Key
	}
	for _, member := range members {
		if !asksAlone(member, of) {
			return false
		}
	}
	return len(members) > 0
}
