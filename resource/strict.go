package resource

import (
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
)

// CheckStrictly adds what is wrong with metadata to write on a resource of a
// strict type: a key that no definition has, with the nearest one that the
// viewer may see, and a value that breaks its definition.
func CheckStrictly(problems *problem.Problems, path string, items []metadef.KeyValue, definitions, visible []*metadef.PropertyDefinition) {
	report := metadef.ValidateMetadata(definitions, items)
	var hints metadef.MetadataReport
	for i, item := range report.Items {
		if item.IsCustom || item.Suggestion != nil {
			if hints.Items == nil {
				hints = metadef.ValidateMetadata(visible, items)
			}
			message := "is not defined for the type"
			if near := hints.Items[i].Suggestion; near != nil {
				message += "; the nearest key is " + *near
			}
			problems.Add(problem.Join(problem.Index(path, i), "key"), "%s", message)
			continue
		}
		for _, violation := range item.Violations {
			problems.Add(problem.Join(problem.Index(path, i), "value"), "breaks %s: %s", violation.Rule, violation.Message)
		}
	}
}
