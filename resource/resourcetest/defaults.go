package resourcetest

import (
	"maps"
	"slices"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
)

// Value is a value of metadata and where it is from, see
// resource.MetadataItem.DerivedFrom.
type Value struct {
	Value       string
	DerivedFrom int64
}

// Values returns items by key.
func Values(items []*resource.MetadataItem) map[string]Value {
	values := map[string]Value{}
	for _, item := range items {
		values[item.Key] = Value{item.Value, item.DerivedFrom}
	}
	return values
}

// WithDefaults returns the metadata of a resource after default rules, by their
// definition. First the values of the namespace are removed. Then the matching
// rules set their keys, from the last to the first. All other items stay.
func WithDefaults(namespace int64, rules []metadef.DefaultRule, of resource.Resource, resourceType string,
	items []*resource.MetadataItem) map[string]Value {
	others := Values(slices.DeleteFunc(slices.Clone(items), func(item *resource.MetadataItem) bool {
		return item.DerivedFrom == namespace
	}))
	after := map[string]Value{}
	for _, rule := range slices.Backward(rules) {
		isMet := rule.HasKey == nil
		for key, has := range others {
			isMet = isMet || key == *rule.HasKey && has.Value == *rule.HasValue
		}
		if isMet && rule.ResourceType == resourceType && (rule.ProjectID == nil || *rule.ProjectID == of.ProjectID) {
			after[rule.Key] = Value{rule.Value, namespace}
		}
	}
	maps.Copy(after, others)
	return after
}

// DrawRules draws up to 5 default rules with keys, values, types and projects from
// the lists. The id of a type is its index.
func DrawRules(intN func(int) int, types, projects, keys, values []string) []metadef.DefaultRule {
	rules := make([]metadef.DefaultRule, intN(6))
	for i := range rules {
		kind := intN(len(types))
		rules[i] = metadef.DefaultRule{TypeID: int64(kind), ResourceType: types[kind],
			Key: keys[intN(len(keys))], Value: values[intN(len(values))]}
		if intN(3) == 0 {
			rules[i].ProjectID = &projects[intN(len(projects))]
		}
		if intN(2) == 0 {
			rules[i].HasKey, rules[i].HasValue = &keys[intN(len(keys))], &values[intN(len(values))]
		}
	}
	return rules
}
