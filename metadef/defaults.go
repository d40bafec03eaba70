package metadef

import (
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// MaxDefaultRules is the maximum number of default rules of a namespace.
const MaxDefaultRules = 100

// DefaultRule gives a value to a key of the resources of a type that lack the
// key. It follows `DefaultRuleInput`.
type DefaultRule struct {
	// TypeID is the row id of the type. It stays when the type is renamed.
	TypeID       int64   `json:"typeId"`
	ResourceType string  `json:"resourceType"`
	ProjectID    *string `json:"projectId,omitempty"` // nil for all
	// HasKey and HasValue are metadata that the resource must have, nil for none.
	HasKey   *string `json:"hasKey,omitempty"`
	HasValue *string `json:"hasValue,omitempty"`
	Key      string  `json:"key"`
	Value    string  `json:"value"`
}

// DefaultsChange replaces the default rules of a namespace. It follows
// `SetDefaultsInput`.
type DefaultsChange struct {
	Namespace string
	Rules     []DefaultRule
	Revision  *int
}

// Check returns all problems of the rules themselves.
func (c DefaultsChange) Check() (problems problem.Problems) {
	if !text.CheckCount(&problems, "input.rules", len(c.Rules), MaxDefaultRules) {
		return problems
	}
	for i, rule := range c.Rules {
		rule.check(&problems, problem.Index("input.rules", i))
	}
	return problems
}

func (r DefaultRule) check(problems *problem.Problems, path string) {
	text.Check(problems, problem.Join(path, "resourceType"), r.ResourceType, 1, text.MaxName)
	text.CheckOptional(problems, problem.Join(path, "projectId"), r.ProjectID, 1, MaxOwner)
	KeyValue{r.Key, r.Value}.Check(problems, path)
	text.CheckOptional(problems, problem.Join(path, "hasKey"), r.HasKey, 1, MaxMetadataKey)
	text.CheckOptional(problems, problem.Join(path, "hasValue"), r.HasValue, 0, MaxMetadataValue)
	if (r.HasKey == nil) != (r.HasValue == nil) {
		problems.Add(path, "must have both of hasKey and hasValue, or neither")
	}
}
