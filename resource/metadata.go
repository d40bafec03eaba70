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

// MetadataMode is what a change does with the items that it does not name.
type MetadataMode int

// The modes of a change.
const (
	MergeMetadata   MetadataMode = iota // leaves them, except those to delete
	ReplaceMetadata                     // deletes them, except those that only services change
	DeleteMetadata                      // leaves them; those named go
)

// MetadataChange is a change of the metadata of one resource.
type MetadataChange struct {
	Resource string // a uuid
	Mode     MetadataMode
	Items    []metadef.KeyValue // to merge, or to replace all by
	Keys     []string           // to delete
	// UserModifiable sets the flag of every item named; nil keeps it, true for
	// new ones.
	UserModifiable *bool
	// IncludeServiceOwned replaces items that only services change, too.
	IncludeServiceOwned bool
	Revision            *int // of the resource, to refuse changes made meanwhile
}

// MetadataChanges are changes of several resources, each once.
type MetadataChanges struct {
	Items []MetadataChange
	// Atomic says that all of them are made or none.
	Atomic bool
}

// Check adds everything that is wrong with the change in itself.
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

// keysField returns what the keys to delete are called in the input.
func (c MetadataChange) keysField() string {
	if c.Mode == DeleteMetadata {
		return "keys"
	}
	return "deleteKeys"
}

// MaxMetadataChanges is how many resources one mutation changes the metadata
// of.
const MaxMetadataChanges = 1000

// MetadataRules are what the operator chose for all metadata.
type MetadataRules struct {
	MaxItems      int      // of one resource; 0 is no limit
	ProtectedKeys []string // which only admins and services write, whatever their flag
}

// owns reports whether an item is the service's: only admins and services
// change it.
func (r MetadataRules) owns(item MetadataItem) bool {
	return !item.UserModifiable || slices.Contains(r.ProtectedKeys, item.Key)
}

// MayChange reports whether a viewer who may write the resource may change an
// item of it.
func (r MetadataRules) MayChange(viewer access.Viewer, item MetadataItem) bool {
	return viewer.May(access.RuleServiceMetadata) || !r.owns(item)
}

// MetadataPlan is what a change comes to, given the items that are there.
type MetadataPlan struct {
	Set      []MetadataItem // to write, new or changed; ID is 0 for new ones
	Delete   []MetadataItem
	Retained []MetadataItem // kept by a replacement that did not name them
}

// Empty reports whether nothing changes.
func (p MetadataPlan) Empty() bool { return len(p.Set)+len(p.Delete) == 0 }

// Plan returns what the change comes to, given the items that are there, for a
// viewer whom AddRefused does not refuse it.
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
		changed.Value = pair.Value
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

// itemNamed returns the item of a key, or a new one.
func itemNamed(key string, there map[string]*MetadataItem) MetadataItem {
	if existing := there[key]; existing != nil {
		return *existing
	}
	return MetadataItem{Key: key, UserModifiable: true}
}

// Fits refuses a plan with which the resource would have more items than it may.
func (c MetadataChange) Fits(plan MetadataPlan, rules MetadataRules, current []*MetadataItem) error {
	added := 0
	for _, item := range plan.Set {
		if item.ID == 0 {
			added++
		}
	}
	after := len(current) + added - len(plan.Delete)
	if rules.MaxItems > 0 && added > 0 && after > rules.MaxItems {
		return problem.Refuse(problem.ErrQuotaExceeded, "resource %s would have %d metadata items, at most %d are allowed", c.Resource, after, rules.MaxItems).On("items")
	}
	return nil
}

// Write returns the change as it is judged, given the items that are there and
// what the change comes to.
func (c MetadataChange) Write(current []*MetadataItem, plan MetadataPlan) MetadataWrite {
	return MetadataWrite{Current: current, Items: c.Items,
		Deleted: lists.Map(plan.Delete, func(item MetadataItem) string { return item.Key })}
}

// MetadataWrite is a write of metadata of one resource.
type MetadataWrite struct {
	Current []*MetadataItem    // what the resource has
	Items   []metadef.KeyValue // what is written
	Deleted []string           // the keys of Current that go
}

// Judge returns what a viewer is told of a write, by the definitions that hold.
// An item that only administrators and services change has a violation of its own
// for whoever is neither. A write and what validates it are both told this.
func (r MetadataRules) Judge(viewer access.Viewer, definitions *metadef.Rules, write MetadataWrite) metadef.MetadataVerdict {
	verdict := definitions.Judge(metadef.MetadataWrite{Before: Pairs(write.Current), Items: write.Items, Deleted: write.Deleted})
	there := itemsByKey(write.Current)
	for i, item := range verdict.Items {
		if !r.MayChange(viewer, itemNamed(item.Key, there)) {
			verdict.Valid, verdict.Accepted, verdict.Items[i].Accepted = false, false, false
			verdict.Items[i].Violations = append(item.Violations, metadef.Violation{Rule: metadef.RuleUserModifiable, Message: ownedMessage})
		}
	}
	return verdict
}

const ownedMessage = "can be changed by administrators and services only"

// addOwned adds that a key is of an item that only administrators and services
// change.
func addOwned(problems *problem.Problems, field, key string) {
	problems.AddKind(problem.ErrForbidden, field, "metadata key %q "+ownedMessage, key)
}

// Pairs returns the keys and values of items.
func Pairs(items []*MetadataItem) []metadef.KeyValue {
	return lists.Map(items, func(item *MetadataItem) metadef.KeyValue {
		return metadef.KeyValue{Key: item.Key, Value: item.Value}
	})
}

// AddRefused adds why a viewer is refused the change, which stands at a path,
// given the items that are there and the verdict on the write: by definitions, for
// what only administrators and services change, and for keys that are not there.
func (c MetadataChange) AddRefused(problems *problem.Problems, path string, viewer access.Viewer, rules MetadataRules, current []*MetadataItem, verdict metadef.MetadataVerdict) {
	AddRefusedItems(problems, verdict.Items, func(i int) string { return problem.Index(problem.Join(path, "items"), i) })
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

// AddRefusedItems adds why items are refused, each of which stands at a path.
func AddRefusedItems(problems *problem.Problems, items []metadef.MetadataReportItem, path func(i int) string) {
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

// AddRefused adds why the rules refuse the metadata of an input that stands at
// a path.
func (in Input) AddRefused(problems *problem.Problems, path string, verdict metadef.MetadataVerdict) {
	AddRefusedItems(problems, verdict.Items, func(i int) string {
		if own := len(in.Metadata); i >= own {
			return problem.Index(problem.Join(path, "serviceMetadata"), i-own)
		}
		return problem.Index(problem.Join(path, "metadata"), i)
	})
}

// Validation asks what a write of metadata would be told: setMetadata on a
// resource, or createResource of a type for a project.
type Validation struct {
	ResourceType *string // by name; nil where a resource is given
	Target       *string // only associations with this properties target; nil is all
	Resource     *string // a uuid
	Project      *string // nil is the viewer's
	Values       []metadef.KeyValue
}

// Check adds what is wrong with the arguments.
func (v Validation) Check(problems *problem.Problems) {
	metadef.CheckReportValues(problems, "values", v.Values)
	text.CheckOptional(problems, "resourceType", v.ResourceType, 0, math.MaxInt)
	text.CheckOptional(problems, "target", v.Target, 0, math.MaxInt)
	text.CheckOptional(problems, "project", v.Project, 1, MaxProject)
	switch {
	case v.Resource != nil && v.Project != nil:
		problems.Add("project", "cannot be combined with resource, which has a project")
	case v.Resource == nil && v.ResourceType == nil:
		problems.Add("resourceType", "is required where no resource is given")
	}
}
