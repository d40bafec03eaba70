package resource

import (
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// DefaultsOf returns the change that applies the default rules of a namespace
// to a resource: it sets the values of matching rules, and removes values that
// rules gave earlier but no longer give. For each key, the first matching rule
// decides. The conditions of rules ignore values that rules of the namespace gave,
// so a second change has no effect. Written items and values of other namespaces
// stay.
func DefaultsOf(namespace int64, rules []metadef.DefaultRule, of *Resource, current []*MetadataItem) MetadataChange {
	change := MetadataChange{Resource: of.UUID, DerivedFrom: namespace}
	given, others, wanted := map[string]string{}, map[string]string{}, map[string]bool{}
	for _, item := range current {
		if item.DerivedFrom == namespace {
			given[item.Key] = item.Value
		} else {
			others[item.Key] = item.Value
		}
	}
	for _, rule := range rules {
		if _, isOther := others[rule.Key]; isOther || wanted[rule.Key] || !matches(rule, of, others) {
			continue
		}
		wanted[rule.Key] = true
		if value, isGiven := given[rule.Key]; !isGiven || value != rule.Value {
			change.Items = append(change.Items, metadef.KeyValue{Key: rule.Key, Value: rule.Value})
		}
	}
	for _, item := range current {
		if item.DerivedFrom == namespace && !wanted[item.Key] {
			change.Keys = append(change.Keys, item.Key)
		}
	}
	return change
}

// matches reports whether a rule is for a resource with these items.
func matches(rule metadef.DefaultRule, of *Resource, items map[string]string) bool {
	if rule.TypeID != of.TypeID || rule.ProjectID != nil && *rule.ProjectID != of.ProjectID {
		return false
	}
	if rule.HasKey == nil {
		return true
	}
	value, ok := items[*rule.HasKey]
	return ok && value == text.OrEmpty(rule.HasValue)
}

// DefaultsRun is a page of resources to apply the default rules of a namespace
// to. It follows `ApplyDefaultsInput`.
type DefaultsRun struct {
	Namespace string
	First     int
	After     *string // a uuid
	DryRun    bool
}

// Check adds all problems of the run itself.
func (r DefaultsRun) Check(problems *problem.Problems) {
	if r.First < 1 || r.First > MaxMetadataChanges {
		problems.Add("input.first", "must be between 1 and %d", MaxMetadataChanges)
	}
}

// AppliedDefaults is the effect of a run. It follows `ApplyDefaultsPayload`.
type AppliedDefaults struct {
	Added, Changed, Removed int // items
	Refused                 int // resources
	Results                 []*DefaultsResult
	Next                    *string // the uuid after which more resources follow; nil at the end
}

// DefaultsResult is the change of one resource, or the problems that refuse it.
type DefaultsResult struct {
	Resource          string // a uuid
	Items, DeleteKeys []*ValueChange
	Problems          problem.Problems
}

// ValueChange is the value of a key before and after a change, nil for none.
type ValueChange struct {
	Key           string
	Before, After *string
}

// Add adds the change of a resource with these items, or its refusal.
func (a *AppliedDefaults) Add(change MetadataChange, current []*MetadataItem, problems problem.Problems) {
	there := itemsByKey(current)
	result := &DefaultsResult{Resource: change.Resource, Items: []*ValueChange{},
		DeleteKeys: []*ValueChange{}, Problems: problems}
	added := 0
	for _, item := range change.Items {
		of := &ValueChange{Key: item.Key, After: &item.Value}
		if is := there[item.Key]; is != nil {
			of.Before = &is.Value
		} else {
			added++
		}
		result.Items = append(result.Items, of)
	}
	for _, key := range change.Keys {
		result.DeleteKeys = append(result.DeleteKeys, &ValueChange{Key: key, Before: &there[key].Value})
	}
	a.Results = append(a.Results, result)
	if len(problems) > 0 {
		a.Refused++
		return
	}
	a.Added, a.Changed, a.Removed = a.Added+added, a.Changed+len(change.Items)-added, a.Removed+len(change.Keys)
}
