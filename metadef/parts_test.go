package metadef_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
)

// randomFile writes a definition file, with oddities.
func randomFile(chance *rand.Rand) string {
	var keys []string
	add := func(key, format string, args ...any) {
		if chance.IntN(4) > 0 {
			keys = append(keys, fmt.Sprintf("%q: %s", key, fmt.Sprintf(format, args...)))
		}
	}
	long := func() string {
		text, _ := json.Marshal(strings.Repeat([]string{"d", "ü", `"`, "\t"}[chance.IntN(4)], chance.IntN(200)))
		return string(text)
	}
	properties := func() string {
		var list []string
		for i := range chance.IntN(12) {
			kind := []string{"string", "integer", "banana"}[min(chance.IntN(60), 2)*chance.IntN(2)]
			list = append(list, fmt.Sprintf(`"p %d": {"title": "P", "type": %q, "description": %s}`, i, kind, long()))
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	list := func(most int, item func(i int) string) string {
		var items []string
		for i := range chance.IntN(most) {
			items = append(items, item(i))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	keys = append(keys, `"namespace": "Näme"`)
	add("description", "%s", long())
	add("visibility", `"public"`)
	add("unknown", `{"a": [1, 2]}`)
	add("properties", "%s", properties())
	add("objects", "%s", list(8, func(i int) string {
		if chance.IntN(20) == 0 {
			return []string{"7", `{"description": "nameless"}`, `{"name": "o 0"}`, `{"name": "odd", "properties": []}`}[chance.IntN(4)]
		}
		return fmt.Sprintf(`{"name": "o %d", "required": ["p 1", "p 7"], "properties": %s, "description": %s}`, i, properties(), long())
	}))
	add("tags", "%s", list(9, func(i int) string {
		return []string{fmt.Sprintf(`{"name": "t%d"}`, i), fmt.Sprintf(`{"name": "t%d", "parent": "t0"}`, i)}[min(i, 1)]
	}))
	add("resource_type_associations", "%s", list(9, func(i int) string { return fmt.Sprintf(`{"name": "T%d", "prefix": "x:"}`, i) }))
	chance.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return "{" + strings.Join(keys, ", ") + "}"
}

// said prints problems in any order.
func said(problems problem.Problems) string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.Field+": "+p.Message)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestPartsAreTheWhole splits random files at random sizes, and reads the parts as
// the whole is read, with every warning and problem.
func TestPartsAreTheWhole(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(6, 2))
	refused, several := 0, 0
	for i := range 1000 {
		file, size := randomFile(chance), 1+chance.IntN(2000)
		parts, problems := metadef.SplitDocument(file, size)
		if len(problems) > 0 {
			t.Fatalf("%v: %s", problems, file)
		}
		for k, part := range parts {
			if name, problems := metadef.CheckPart(part, "input.text"); name != "Näme" || len(problems) > 0 {
				t.Fatalf("part %d: %q, %v: %s", k, name, problems, part)
			}
			if most := size + 900; len(part) > most { // and the longest item
				t.Fatalf("part %d of %d has %d bytes: %s", k, len(parts), len(part), part)
			}
		}
		whole, warnings, problems := metadef.ParseDocument(file)
		joined, joinedWarnings, joinedProblems := metadef.ParseParts(parts)
		if len(parts) > 1 {
			several++
		}
		if len(problems) > 0 {
			refused++
		}
		if said(joinedWarnings) != said(warnings) || said(joinedProblems) != said(problems) || len(problems) == 0 && joined.Text() != whole.Text() {
			t.Fatalf("file %d in %d parts of %d bytes\n%s\nis read with\n%s\n%s\n%s\nits parts with\n%s\n%s\n%s", i, len(parts), size, file,
				whole.Text(), said(warnings), said(problems), joined.Text(), said(joinedWarnings), said(joinedProblems))
		}
	}
	if refused < 30 || several < 300 {
		t.Errorf("%d files were refused, %d had several parts", refused, several)
	}
}

// TestPartsThatDoNotFit reads parts of different files.
func TestPartsThatDoNotFit(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		parts []string
		want  string
	}{
		{[]string{`{"namespace": "A"}`, `{"namespace": "B"}`}, "$.namespace: is A in part 0 and B in part 1"},
		{[]string{`{"namespace": "A", "owner": "p"}`, `{"namespace": "A", "owner": "q"}`}, "$.owner: appears in several parts, again in part 1"},
		{[]string{`{"namespace": "A", "properties": {"p": {"type": "string"}}}`, `{"namespace": "A", "properties": {"p": {"type": "string"}}}`}, "$.properties.p: appears twice"},
		{[]string{`{"namespace": "A", "objects": [{"name": "o", "properties": {"p": {"type": "string"}}}]}`, `{"namespace": "A", "objects": [{"name": "o", "continued": true, "properties": {"p": {"type": "string"}}}]}`},
			"$.objects[0].properties.p: appears twice"},
		{[]string{`{"namespace": "A"}`, `{"namespace": "A"`}, "$: is not JSON: line 1, column 18: unexpected EOF"},
		{[]string{`{"namespace": "A", "properties": {}}`, `{"namespace": "A", "properties": []}`}, "$.properties: appears in several parts, again in part 1"},
	} {
		if _, _, problems := metadef.ParseParts(one.parts); said(problems) != one.want {
			t.Errorf("%q: %s, want %s", one.parts, said(problems), one.want)
		}
	}
	for text, want := range map[string]string{
		"[]": "input.text: is not a part of a definition file: it must be a map with the name of a namespace",
		"{":  "input.text: is not JSON: line 1, column 2: unexpected EOF",
		`{"namespace": "` + strings.Repeat("x", metadef.MaxDocument) + `"}`: fmt.Sprintf("input.text: has %d bytes, at most %d are allowed", metadef.MaxDocument+17, metadef.MaxDocument),
	} {
		if _, problems := metadef.CheckPart(text, "input.text"); said(problems) != want {
			t.Errorf("%.40s: %s, want %s", text, said(problems), want)
		}
	}
	if _, problems := metadef.SplitDocument(`{"properties": {}}`, 10); said(problems) != "$.namespace: is required" {
		t.Error(problems)
	}
}
