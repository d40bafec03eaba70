package resource

import (
	"math"
	"slices"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// MetadataMode says how a change treats the items that it does not name.
type MetadataMode int

// The modes of a change.
const (
	MergeMetadata   MetadataMode = iota // keeps them; sets Items and deletes Keys
	ReplaceMetadata                     // deletes them, except items that only administrators and services may change
	DeleteMetadata                      // keeps them; deletes Keys
)

// MetadataChange is a change of the metadata of one resource.
type MetadataChange struct {
	Resource string // a uuid
	Mode     MetadataMode
	Items    []metadef.KeyValue // to merge, or to replace all items with
	Keys     []string           // to delete
	// UserModifiable is the flag of every item in Items. Nil keeps the flag of
	// existing items, and means true for new ones.
	UserModifiable *bool
	// IncludeServiceOwned makes ReplaceMetadata also delete items that only
	// administrators and services may change.
	IncludeServiceOwned bool
	Revision            *int // of the resource, to refuse concurrent changes
	// DerivedFrom is the row id of the namespace whose rules give the items, 0
	// for a writer. An item that a writer sets is no longer derived, even if its
	// value stays the same.
	DerivedFrom int64
}

// MetadataChanges are changes of different resources.
type MetadataChanges struct {
	Items []MetadataChange
	// Atomic makes all of them or none.
	Atomic bool
}

// Check adds all problems of the change itself.
func (c MetadataChange) Check(problems *problem.Problems, path string) {
	seen := map[string]bool{}
	checkMetadata(problems, problem.Join(path, "items"), c.Items, seen)
	keys := problem.Join(path, c.keysField())
	for i, key := range c.Keys {
		at := problem.Index(keys, i)
		text.Check(problems, at, key, 1, metadef.MaxMetadataKey)
		text.CheckUnique(problems, at, key, seen)
	}
	if c.Mode == DeleteMetadata && len(c.Keys) == 0 {
		problems.Add(keys, "must not be empty")
	}
}

// keysField returns the input field with the keys to delete.
func (c MetadataChange) keysField() string {
	if c.Mode == DeleteMetadata {
		return "keys"
	}
	return "deleteKeys"
}

// MaxMetadataChanges is the maximum number of resources in one change of
// metadata.
const MaxMetadataChanges = 1000

// MetadataRules are the operator's rules for all metadata.
type MetadataRules struct {
	MaxItems      int      // of one resource; 0 is no limit
	ProtectedKeys []string // only administrators and services may write these, regardless of their flag
}

// owns reports whether the item belongs to the service: only administrators and
// services may change it.
func (r MetadataRules) owns(item MetadataItem) bool {
	return !item.UserModifiable || slices.Contains(r.ProtectedKeys, item.Key)
}

// MayChange reports whether a viewer who may write the resource may change one
// of its items.
func (r MetadataRules) MayChange(viewer access.Viewer, item MetadataItem) bool {
	return viewer.May(access.RuleServiceMetadata) || !r.owns(item)
}

// MetadataPlan is the effect of a change on the current items.
type MetadataPlan struct {
	Set      []MetadataItem // new or changed items; ID is 0 for new ones
	Delete   []MetadataItem
	Retained []MetadataItem // not named by a replacement, but kept
}

// Empty reports whether the plan changes nothing.
func (p MetadataPlan) Empty() bool { return len(p.Set)+len(p.Delete) == 0 }

// Plan returns the effect of the change on the current items. It refuses nothing:
// the caller also calls AddRefused.
func (c MetadataChange) Plan(rules MetadataRules, current []*MetadataItem) (plan MetadataPlan) {
	there := itemsByKey(current)
	for _, key := range c.Keys {
		if item := there[key]; item != nil {
			plan.Delete = append(plan.Delete, *item)
		}
	}
	named := map[string]bool{}
	for _, pair := range c.Items {
		named[pair.Key] = true
		item := itemNamed(pair.Key, there)
		changed := item
		changed.Value, changed.DerivedFrom = pair.Value, c.DerivedFrom
		if c.UserModifiable != nil {
			changed.UserModifiable = *c.UserModifiable
		}
		if changed != item || item.ID == 0 {
			plan.Set = append(plan.Set, changed)
		}
	}
	for _, item := range current {
		switch {
		case c.Mode != ReplaceMetadata || named[item.Key]:
		case rules.owns(*item) && !c.IncludeServiceOwned:
			plan.Retained = append(plan.Retained, *item)
		default:
			plan.Delete = append(plan.Delete, *item)
		}
	}
	return plan
}

func itemsByKey(items []*MetadataItem) map[string]*MetadataItem {
	return lists.ByKey(items, func(item *MetadataItem) string { return item.Key })
}

// itemNamed returns the item with a key, or a new one.
func itemNamed(key string, there map[string]*MetadataItem) MetadataItem {
	if existing := there[key]; existing != nil {
		return *existing
	}
	return MetadataItem{Key: key, UserModifiable: true}
}

// Fits refuses a plan that adds items if the resource would have too many.
func (c MetadataChange) Fits(plan MetadataPlan, rules MetadataRules, current []*MetadataItem) error {
	added := 0
	for _, item := range plan.Set {
		if item.ID == 0 {
			added++
		}
	}
	after := len(current) + added - len(plan.Delete)
	if rules.MaxItems > 0 && added > 0 && after > rules.MaxItems {
		return problem.Refuse(problem.ErrQuotaExceeded,
			"resource %s would have %d metadata items, at most %d are allowed", c.Resource, after, rules.MaxItems).
			On("items")
	}
	return nil
}

// Write returns the change as a write to check, given the current items and the
// plan.
func (c MetadataChange) Write(current []*MetadataItem, plan MetadataPlan) MetadataWrite {
	return MetadataWrite{Current: current, Items: c.Items,
		Deleted: lists.Map(plan.Delete, func(item MetadataItem) string { return item.Key })}
}

// MetadataWrite is a write to the metadata of one resource.
type MetadataWrite struct {
	Current []*MetadataItem    // the current items
	Items   []metadef.KeyValue // the written items
	Deleted []string           // the deleted keys of Current
}

// Judge returns the verdict on a write by a viewer. It adds a violation for
// each item that only administrators and services may change, unless the viewer
// is one of them. Writes and their validation both use this verdict.
func (r MetadataRules) Judge(viewer access.Viewer, definitions *metadef.Rules,
	write MetadataWrite) metadef.MetadataVerdict {
	verdict := definitions.Judge(metadef.MetadataWrite{Before: Pairs(write.Current),
		Items: write.Items, Deleted: write.Deleted})
	there := itemsByKey(write.Current)
	for i, item := range verdict.Items {
		if !r.MayChange(viewer, itemNamed(item.Key, there)) {
			verdict.Valid, verdict.Accepted, verdict.Items[i].Accepted = false, false, false
			verdict.Items[i].Violations = append(item.Violations,
				metadef.Violation{Rule: metadef.RuleUserModifiable, Message: ownedMessage})
		}
	}
	return verdict
}

const ownedMessage = "can be changed by administrators and services only"

// addOwned adds a problem for the key of an item that only administrators and
// services may change.
func addOwned(problems *problem.Problems, field, key string) {
	problems.AddKind(problem.ErrForbidden, field, "metadata key %q "+ownedMessage, key)
}

// Pairs returns the keys and values of items.
func Pairs(items []*MetadataItem) []metadef.KeyValue {
	return lists.Map(items, func(item *MetadataItem) metadef.KeyValue {
		return metadef.KeyValue{Key: item.Key, Value: item.Value}
	})
}

// AddRefused adds the problems that refuse a change at a path, given the
// current items and the verdict on the write. Definitions, items that only
// administrators and services may change, and unknown keys to delete cause
// problems.
func (c MetadataChange) AddRefused(problems *problem.Problems, path string, viewer access.Viewer, rules MetadataRules,
	current []*MetadataItem, verdict metadef.MetadataVerdict) {
	items := problem.Join(path, "items")
	addRefusedItems(problems, verdict.Items, func(i int) string { return problem.Index(items, i) })
	there := itemsByKey(current)
	for i, key := range c.Keys {
		at := problem.Index(problem.Join(path, c.keysField()), i)
		switch item := there[key]; {
		case !rules.MayChange(viewer, itemNamed(key, there)):
			addOwned(problems, at, key)
		case item == nil:
			problems.AddKind(problem.ErrNotFound, at, "resource %s has no metadata key %q", c.Resource, key)
		}
	}
	for _, needed := range verdict.Needed {
		at := problem.Join(path, "items")
		if i := slices.Index(c.Keys, needed.Key); i >= 0 {
			at = problem.Index(problem.Join(path, c.keysField()), i)
			problems.Add(at, "%s", needed.Message)
			continue
		}
		problems.Add(at, "lacks %s: it %s", metadef.Shorten(needed.Key), needed.Message)
	}
}

// addRefusedItems adds the problems of refused items, each at its path.
func addRefusedItems(problems *problem.Problems, items []metadef.MetadataReportItem, path func(i int) string) {
	for i, item := range items {
		if item.Accepted {
			continue
		}
		for _, violation := range item.Violations {
			if violation.Rule == metadef.RuleUserModifiable {
				addOwned(problems, problem.Join(path(i), metadef.RuleKey), item.Key)
				continue
			}
			*problems = append(*problems, violation.Problem(path(i)))
		}
	}
}

// AddRefused adds the problems that rules find with the metadata of an input at
// a path.
func (in Input) AddRefused(problems *problem.Problems, path string, verdict metadef.MetadataVerdict) {
	addRefusedItems(problems, verdict.Items, func(i int) string {
		if own := len(in.Metadata); i >= own {
			return problem.Index(problem.Join(path, "serviceMetadata"), i-own)
		}
		return problem.Index(problem.Join(path, "metadata"), i)
	})
}

// Validation asks how a write of metadata would be answered: setMetadata on a
// resource, or createResource of a type for a project.
type Validation struct {
	ResourceType *string // by name; with Resource nil or its type
	Target       *string // only associations with this properties target; nil for all
	Resource     *string // a uuid
	Project      *string // nil for the viewer's
	Values       []metadef.KeyValue
}

// Check adds the problems of the arguments.
func (v Validation) Check(problems *problem.Problems) {
	metadef.CheckReportValues(problems, "values", v.Values)
	text.CheckOptional(problems, "resourceType", v.ResourceType, 0, math.MaxInt)
	text.CheckOptional(problems, "target", v.Target, 0, math.MaxInt)
	text.CheckOptional(problems, "project", v.Project, 1, MaxProject)
	switch {
	case v.Resource != nil && v.Project != nil:
		problems.Add("project", "cannot be combined with resource, which has a project")
	case v.Resource == nil && v.ResourceType == nil:
		problems.Add("resourceType", "is required without resource")
	}
}
