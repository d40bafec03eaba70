package resource_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/resource/resourcetest"
	"github.com/cadastre-dev/cadastre/text"
)

// tablesOf returns the rows of a document's tables, by the first word of the
// table heads. It removes backquotes around cells.
func tablesOf(t *testing.T, path string) map[string][][]string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string][][]string{}
	head := ""
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") {
			if !strings.HasPrefix(line, "|") {
				head = ""
			}
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), " | ") {
			cells = append(cells, strings.Trim(strings.TrimSpace(cell), "`"))
		}
		if head == "" {
			head = cells[0]
			continue
		}
		tables[head] = append(tables[head], cells)
	}
	return tables
}

// typed returns the rules of one definition for each type. The definitions have
// the names of their types and list no operators.
func typed() *metadef.Rules {
	of := metadef.AppliedNamespace{Namespace: &metadef.Namespace{}}
	for i, name := range []string{"string", "integer", "number", "boolean", "array"} {
		keywords := text.JSON(`{"title": "T", "type": "` + name + `", "items": {"type": "string"}}`)
		of.Properties = append(of.Properties, &metadef.PropertyDefinition{ID: int64(i + 1), Name: name,
			PropertySchema: metadef.ReadPropertySchema(keywords)})
	}
	return metadef.NewRules(false, []metadef.AppliedNamespace{of}, nil)
}

func validates(rules *metadef.Rules, key, value string) metadef.MetadataReportItem {
	return rules.Judge(metadef.MetadataWrite{Items: []metadef.KeyValue{{Key: key, Value: value}}}).Items[0]
}

// TestTheTableOfOperators checks docs/operators.md with both parsers of the
// language: the validation of values, and requirements.
func TestTheTableOfOperators(t *testing.T) {
	t.Parallel()
	tables := tablesOf(t, "../docs/operators.md")
	rules := typed()
	seen := map[string]bool{}
	for _, row := range tables["operator"] {
		seen[row[0]] = true
		checkExample(t, rules, row)
	}
	for _, written := range []string{"aes,avx2", `["aes","avx2"]`} {
		if item := validates(rules, "array", written); !slices.Equal(item.Values, []string{"aes", "avx2"}) {
			t.Errorf("the array %s has the values %q", written, item.Values)
		}
	}
	for _, operator := range append(metadef.Operators(), "none") {
		if !seen[operator] {
			t.Errorf("the table has no row of %s", operator)
		}
	}
	if len(tables["operator"]) < 25 || len(tables["refused"]) < 8 {
		t.Errorf("the tables have %d and %d rows", len(tables["operator"]), len(tables["refused"]))
	}
}

// checkExample checks a row of the table: the operator, the types, an example, a
// value that meets it and a value that does not.
func checkExample(t *testing.T, rules *metadef.Rules, row []string) {
	t.Helper()
	operator, types, example, met, unmet := row[0], row[1], row[2], row[3], row[4]
	for name := range strings.SplitSeq(types, ", ") {
		item := validates(rules, name, example)
		if len(item.Violations) > 0 || operator != "none" && (item.Operator == nil || *item.Operator != operator) {
			t.Errorf("%q on a property of the type %s: %+v", example, name, item)
		}
	}
	var problems problem.Problems
	condition := resource.Requirement{Key: "c", Requirement: example}.Condition(&problems, "")
	meets := func(value string) bool {
		return len(problems) == 0 &&
			resourcetest.Matches(condition, resourcetest.Facts{Capabilities: map[string]string{"c": value}})
	}
	if len(problems) > 0 || !meets(met) || meets(unmet) {
		t.Errorf("%q is met by %q: %v, and by %q: %v; problems %v", example, met,
			meets(met), unmet, meets(unmet), problems)
	}
}

// TestTheTableOfRefusedTexts checks that both parsers refuse the strings that
// docs/operators.md lists as refused, with the same message.
func TestTheTableOfRefusedTexts(t *testing.T) {
	t.Parallel()
	rules := typed()
	for _, row := range tablesOf(t, "../docs/operators.md")["refused"] {
		var problems problem.Problems
		resource.Requirement{Key: "c", Requirement: row[0]}.Condition(&problems, "")
		item := validates(rules, "string", row[0])
		if len(problems) != 1 || !strings.Contains(problems[0].Message, row[1]) || len(item.Violations) != 1 ||
			item.Violations[0].Message != problems[0].Message {
			t.Errorf("%q is refused because %q: %v, %v", row[0], row[1], problems, item.Violations)
		}
	}
}

// TestValuesAreRequirements makes random strings of the language. A value that
// definitions accept as well-formed must be a requirement with the same
// operands. Both parsers must refuse a malformed string for the same reason.
func TestValuesAreRequirements(t *testing.T) {
	t.Parallel()
	rules := typed()
	chance := rand.New(rand.NewPCG(3, 8))
	pieces := append(metadef.Operators(), " ", " ", " ", "  ", ",", `"`, `"a b"`, `\"`, `\`, "a", "b c", "64", "-1.5",
		"NVIDIA A2", "<is>", "\t", "é", "=5", ">x", "[", `["a"]`)
	malformed := 0
	for range 50_000 {
		var random strings.Builder
		for range 1 + chance.IntN(7) {
			random.WriteString(pieces[chance.IntN(len(pieces))])
		}
		value := random.String()
		var problems problem.Problems
		condition := resource.Requirement{Key: "c", Requirement: value}.Condition(&problems, "")
		for _, name := range []string{"string", "integer", "array"} {
			item := validates(rules, name, value)
			told := slices.ContainsFunc(item.Violations, func(v metadef.Violation) bool {
				return len(problems) > 0 && v.Rule == "operators" && v.Message == problems[0].Message
			})
			if told != (len(problems) > 0) {
				t.Fatalf("%q on %s: %+v, as a requirement: %v", value, name, item.Violations, problems)
			}
			if name == "string" && len(problems) == 0 &&
				fmt.Sprintf("%q", item.Values) != fmt.Sprintf("%q", condition.Test.Operands) {
				t.Fatalf("%q: the values %q, the operands %q", value, item.Values, condition.Test.Operands)
			}
		}
		if len(problems) > 0 {
			malformed++
		}
	}
	if malformed < 5_000 || malformed > 45_000 {
		t.Errorf("%d of 50000 texts are malformed", malformed)
	}
}
