package metadef_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/text"
)

// typed returns a value in all of its typed forms.
func typed(v *metadef.PropertyValue) string {
	out := []string{v.Text()}
	if s := v.StringValue(); s != nil {
		out = append(out, "string "+*s)
	}
	if i := v.IntegerValue(); i != nil {
		out = append(out, fmt.Sprint("integer ", *i))
	}
	if f := v.FloatValue(); f != nil {
		out = append(out, fmt.Sprint("float ", *f))
	}
	if b := v.BooleanValue(); b != nil {
		out = append(out, fmt.Sprint("boolean ", *b))
	}
	if list := v.ListValue(); list != nil {
		for i, item := range list {
			out = append(out, fmt.Sprint("item ", i, ": ", typed(item)))
		}
		out = append(out, fmt.Sprint("items ", len(list)))
	}
	return strings.Join(out, "; ")
}

func TestDefaultsHaveTypes(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`"a \"b\""`:            `a "b"; string a "b"`,
		`""`:                   `; string `,
		`"true"`:               `true; string true`,
		`true`:                 `true; boolean true`,
		`false`:                `false; boolean false`,
		`0`:                    `0; integer 0; float 0`,
		`-0e5`:                 `-0e5; integer 0; float -0`,
		`1.50e2`:               `1.50e2; integer 150; float 150`,
		`1.5`:                  `1.5; float 1.5`,
		`9223372036854775807`:  `9223372036854775807; integer 9223372036854775807; float 9.223372036854776e+18`,
		`-9223372036854775808`: `-9223372036854775808; integer -9223372036854775808; float -9.223372036854776e+18`,
		`9223372036854775808`:  `9223372036854775808; float 9.223372036854776e+18`,
		`1e400`:                `1e400`,
		`1e1000000000`:         `1e1000000000`,
		`["a", 1, true]`:       `["a",1,true]; item 0: a; string a; item 1: 1; integer 1; float 1; item 2: true; boolean true; items 3`,
		`[]`:                   `[]; items 0`,
		`null`:                 `null`,
		fmt.Sprint(math.Pi):    fmt.Sprint(math.Pi, "; float ", math.Pi),
	} {
		schema := metadef.ReadPropertySchema(text.JSON(`{"title": "T", "type": "string", "default": ` + value + `}`))
		if got := typed(schema.DefaultValue()); got != want {
			t.Errorf("%s is %s, want %s", value, got, want)
		}
	}
	if schema := metadef.ReadPropertySchema(`{"title": "T", "type": "string"}`); schema.DefaultValue() != nil ||
		schema.EnumMembers() != nil {
		t.Error("a definition without default and enum has them")
	}
}

func TestEnumMembersHaveLabels(t *testing.T) {
	t.Parallel()
	for _, of := range []struct{ keywords, want, problems string }{
		{`"type": "string", "enum": ["a", "b", ""], "enumLabels": {"b": "Bee", "": "None"}`, "a=-, b=Bee, =None", ""},
		{`"type": "integer", "enum": [4, 8], "enumLabels": {"4": "Four"}`, "4=Four, 8=-", ""},
		{`"type": "boolean", "enum": [true], "enumLabels": {"true": "Yes"}`, "true=Yes", ""},
		{`"type": "array", "items": {"type": "string", "enum": ["x"]}, "enumLabels": {"x": "Ex"}`, "x=Ex", ""},
		{`"type": "string", "enum": ["a"], "enumLabels": {}`, "a=-", ""},
		{`"type": "string", "enum": ["a"], "enumLabels": {"c": "See"}`, "a=-",
			"p.enumLabels: c is not a member of the enum"},
		{`"type": "string", "enumLabels": {"c": "See"}`, "", "p.enumLabels: c is not a member of the enum"},
		{`"type": "string", "enum": ["a"], "enumLabels": {"a": ""}`, "a=",
			"p.enumLabels: the label of a must have 1 to 80 characters"},
		{`"type": "string", "enum": ["a"], "enumLabels": {"a": 1}`, "a=", "p.enumLabels: must be text, is a number"},
		{`"type": "string", "enum": ["a"], "enumLabels": ["A"]`, "a=-", "p.enumLabels: must be a map, is a list"},
		{`"type": "string", "enum": ["a"], "enumLabels": {"a": "A", "a": "B"}`, "a=A", "p.enumLabels: appears twice"},
	} {
		schema, _, problems := metadef.ParsePropertySchema(text.JSON(`{"title": "T", `+of.keywords+`}`), "", "p",
			metadef.Strict)
		var members []string
		for _, member := range append(schema.EnumMembers(), schema.ItemEnumMembers()...) {
			label := "-"
			if member.Label != nil {
				label = *member.Label
			}
			members = append(members, member.Value.Text()+"="+label)
		}
		got := ""
		if err := problems.Err(); err != nil {
			got = err.Error()
		}
		if list := strings.Join(members, ", "); list != of.want || got != of.problems {
			t.Errorf("%s: %q with %q, want %q with %q", of.keywords, list, got, of.want, of.problems)
		}
	}
}
