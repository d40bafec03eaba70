package resource

import (
	"encoding/json"
	"strings"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// maxMatching is the maximum length of a matching expression in code points.
const maxMatching = 65536

// The keywords of matching expressions: comparisons, and kinds of conditions.
var (
	matchingOperators = map[string]Operator{
		"=": Equals, "==": Equals, "!=": Differs, ">=": GreaterOrEqual, "<=": LessOrEqual, ">": Greater, "<": Less,
	}
	matchingKinds = map[string]ConditionKind{"and": ConditionAll, "or": ConditionAny, "not": ConditionNot}
)

// ParseMatching returns the condition of a matching expression. Reservations
// ask for hosts by these JSON expressions: ["==", "$arch", "x86_64"], and
// combinations ["and", A, B, ...], ["or", A, B, ...] and ["not", A]. The empty
// string and [] are no condition. ParseMatching adds the expression's problems.
func ParseMatching(input string, problems *problem.Problems, path string) Condition {
	if input == "" {
		return Condition{Kind: ConditionAll}
	}
	text.Check(problems, path, input, 0, maxMatching)
	r := conditionReader{problems: problems}
	var value any
	if err := json.Unmarshal([]byte(input), &value); err != nil {
		return r.refuse(path, "is not JSON")
	}
	if members, isList := value.([]any); isList && len(members) == 0 {
		return Condition{Kind: ConditionAll}
	}
	return r.matching(value, path, 1)
}

func (r *conditionReader) matching(value any, path string, depth int) Condition {
	members, _ := value.([]any)
	if len(members) == 0 {
		return r.refuse(path, `must be a list such as ["==", "$name", "value"] or ["and", ...]`)
	}
	word, isText := members[0].(string)
	kind, combines := matchingKinds[word]
	operator, compares := matchingOperators[word]
	switch {
	case !isText:
		return r.refuse(path, "must begin with an operator: = == != >= <= > < and or not")
	case combines:
		return r.combined(kind, members, path, depth)
	case !compares:
		return r.refuse(path, "unknown operator %q; the operators are = == != >= <= > < and or not",
			metadef.Shorten(word))
	case len(members) != 3:
		return r.refuse(path, "%q takes a name and a value", word)
	}
	r.count(path)
	name, _ := members[1].(string)
	name, marked := strings.CutPrefix(name, "$")
	if !marked || name == "" {
		return r.refuse(path, `the name must be a string such as "$memory_mb"`)
	}
	operand, _ := members[2].(string)
	if operand == "" {
		return r.refuse(path, "the value must be a non-empty string; write numbers as strings")
	}
	return Condition{Kind: ConditionCapability, Test: Test{name, operator, Pairwise, []string{operand}}}
}

// combined reads the expressions after a keyword that combines them.
func (r *conditionReader) combined(kind ConditionKind, members []any, path string, depth int) Condition {
	switch {
	case depth > maxConditionDepth:
		return r.refuse(path, "is nested too deeply, at most %d levels are allowed", maxConditionDepth)
	case len(members) == 1:
		return r.refuse(path, "%q takes an expression", members[0])
	case kind == ConditionNot && len(members) > 2:
		return r.refuse(path, "%q takes one expression", members[0])
	}
	condition := Condition{Kind: kind}
	for i, member := range members[1:] {
		condition.Members = append(condition.Members, r.matching(member, problem.Index(path, i+1), depth+1))
	}
	return condition
}
