package resource

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// matchingOperators are the comparisons of a matching expression.
var matchingOperators = map[string]Operator{
	"=": Equals, "==": Equals, "!=": Differs, ">=": GreaterOrEqual, "<=": LessOrEqual, ">": Greater, "<": Less,
}

// ParseMatching reads a matching expression, the JSON text by which reservations
// ask for hosts: ["==", "$arch", "x86_64"], and ["and", A, B, ...], ["or", A, B,
// ...], ["not", A] of such. The empty text and [] are no condition. What is wrong
// with it is noted.
func ParseMatching(input string, problems *problem.Problems, path string) Condition {
	if input == "" {
		return Condition{Kind: ConditionAll}
	}
	text.Check(problems, path, input, 0, MaxMatching)
	var value json.RawMessage
	decoder := json.NewDecoder(strings.NewReader(input))
	if err := decoder.Decode(&value); err != nil {
		problems.Add(path, "is not JSON")
		return Condition{Kind: ConditionNever}
	}
	if _, err := decoder.Token(); err != io.EOF {
		problems.Add(path, "goes on after the expression")
		return Condition{Kind: ConditionNever}
	}
	if members, ok := arrayOfJSON(value); ok && len(members) == 0 {
		return Condition{Kind: ConditionAll}
	}
	tests := 0
	return parseMatching(value, problems, path, 1, &tests)
}

// MaxMatching is how long a matching expression may be, in code points.
const MaxMatching = 65536

func parseMatching(value json.RawMessage, problems *problem.Problems, path string, depth int, tests *int) Condition {
	malformed := func(format string, args ...any) Condition {
		problems.Add(path, format, args...)
		return Condition{Kind: ConditionNever}
	}
	members, ok := arrayOfJSON(value)
	if !ok || len(members) == 0 {
		return malformed(`must be a list such as ["==", "$name", "value"] or ["and", ...]`)
	}
	word, ok := textOfJSON(members[0])
	if !ok {
		return malformed(`must begin with an operator: = == != >= <= > < and or not`)
	}
	inner := func(kind ConditionKind) Condition {
		switch {
		case depth > MaxConditionDepth:
			return malformed("is deeper than %d conditions", MaxConditionDepth)
		case len(members) == 1:
			return malformed("%q takes an expression", word)
		case kind == ConditionNot && len(members) > 2:
			return malformed("%q takes one expression", word)
		}
		condition := Condition{Kind: kind}
		for i, member := range members[1:] {
			condition.Members = append(condition.Members, parseMatching(member, problems, problem.Index(path, i+1), depth+1, tests))
		}
		return condition
	}
	switch word {
	case "and":
		return inner(ConditionAll)
	case "or":
		return inner(ConditionAny)
	case "not":
		return inner(ConditionNot)
	}
	operator, known := matchingOperators[word]
	if !known {
		return malformed("%q is no operator; there are = == != >= <= > < and or not", metadef.Shorten(word))
	}
	if len(members) != 3 {
		return malformed("%q takes a name and a value", word)
	}
	countTest(problems, path, tests)
	name, isText := textOfJSON(members[1])
	name, marked := strings.CutPrefix(name, "$")
	if !isText || !marked || name == "" {
		return malformed(`the name must be a text such as "$memory_mb"`)
	}
	operand, isText := textOfJSON(members[2])
	if !isText || operand == "" {
		return malformed("the value must be a text that is not empty; write numbers as text")
	}
	return Condition{Kind: ConditionCapability, Test: Test{name, operator, Pairwise, []string{operand}}}
}

// arrayOfJSON is the members of a JSON array.
func arrayOfJSON(value json.RawMessage) ([]json.RawMessage, bool) {
	if !bytes.HasPrefix(bytes.TrimSpace(value), []byte("[")) {
		return nil, false
	}
	var members []json.RawMessage
	return members, json.Unmarshal(value, &members) == nil
}

// textOfJSON is a JSON string.
func textOfJSON(value json.RawMessage) (string, bool) {
	if !bytes.HasPrefix(bytes.TrimSpace(value), []byte(`"`)) {
		return "", false
	}
	var text string
	return text, json.Unmarshal(value, &text) == nil
}
