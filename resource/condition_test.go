package resource_test

import (
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/resource/resourcetest"
)

func TestMatchingRefusesWhatIsMalformed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`["==", "$m", 4096]`, `["==", "m", "4096"]`, `["==", "$", "4096"]`, `["==", "$m", ""]`,
		`["and"]`, `["and", ["==", "$m", "1"], []]`,
		`["and", "x"]`, `["in", "$m", "1,2"]`, `["like", "$m", "1"]`,
		`[["==", "$m", "1"], ["==", "$m", "1"]]`, `{}`, `"x"`, `x`, `   `,
		`5`, `true`, `null`, `{"a": 1, "b": 2}`, `["==", "$m"]`, `["==", "$m", "1", "2"]`,
		`["not", ["==", "$m", "1"], ["==", "$m", "1"]]`, `["=="]`,
		`["==", "$m", "1"] []`, strings.Repeat(`["not", `, 20) + `["==", "$m", "1"]` + strings.Repeat(`]`, 20),
	} {
		var problems problem.Problems
		if resource.ParseMatching(text, &problems, "filter.matching"); len(problems) == 0 {
			t.Errorf("%s is accepted", text)
		}
	}
}

func TestMatchingMeans(t *testing.T) {
	t.Parallel()
	facts := resourcetest.Facts{Capabilities: map[string]string{"m": "4096", "my key": "a b", "n": "100",
		"arch": "x86", "flags": `["aes", "9"]`}}
	for text, want := range map[string]bool{
		``:                                true,
		`[]`:                              true,
		` [ ] `:                           true,
		`["=", "$m", "4096"]`:             true,
		`["==", "$m", "4096.0"]`:          true,
		`["==", "$my key", "a b"]`:        true,
		`[">=", "$n", "20"]`:              true, // as text, it would be less
		`["<", "$n", "20"]`:               false,
		`[">=", "$arch", "20"]`:           false, // text and a number
		`["!=", "$arch", "20"]`:           false,
		`["!=", "$arch", "arm"]`:          true,
		`["!=", "$absent", "arm"]`:        false,
		`["==", "$flags", "aes"]`:         true,
		`[">", "$flags", "8"]`:            true,
		`["not", ["==", "$m", "4096"]]`:   false,
		`["not", ["==", "$absent", "1"]]`: true,
		`["and", ["==", "$m", "4096"]]`:   true,
		`["and", ["==", "$m", "4096"], ["and", ["==", "$arch", "x86"], ["==", "$n", "1"]]]`: false,
		`["or", ["==", "$m", "1"], ["==", "$n", "100"]]`:                                    true,
	} {
		var problems problem.Problems
		condition := resource.ParseMatching(text, &problems, "matching")
		if len(problems) > 0 || resourcetest.Matches(condition, facts) != want {
			t.Errorf("%s: %v, want %v; problems %v", text, resourcetest.Matches(condition, facts), want, problems)
		}
	}
}

func TestConditionsHaveExactlyOneField(t *testing.T) {
	t.Parallel()
	yes, text := true, "x"
	for name, condition := range map[string]resource.ConditionInput{
		"nothing":       {},
		"two":           {All: []resource.ConditionInput{}, Any: []resource.ConditionInput{}},
		"no operator":   {Metadata: &resource.MetadataCondition{Key: "a"}},
		"two operators": {Capability: &resource.CapabilityCondition{Name: "a", Exists: &yes, Equals: &text}},
		"empty key":     {Metadata: &resource.MetadataCondition{Key: "", Exists: &yes}},
		"inside":        {Not: &resource.ConditionInput{All: []resource.ConditionInput{{}}}},
	} {
		var problems problem.Problems
		if condition.Condition(&problems, "filter.where"); len(problems) == 0 {
			t.Errorf("%s is accepted", name)
		}
	}
	deep := resource.ConditionInput{Metadata: &resource.MetadataCondition{Key: "a", Exists: &yes}}
	matching := `["==", "$a", "1"]`
	for depth := 1; depth <= 6; depth++ {
		inner := deep
		deep, matching = resource.ConditionInput{Not: &inner}, `["not", `+matching+`]`
		var problems problem.Problems
		deep.Condition(&problems, "where")
		if (len(problems) > 0) != (depth > 5) {
			t.Errorf("where, %d deep: %v", depth, problems)
		}
		problems = nil
		resource.ParseMatching(matching, &problems, "matching")
		if (len(problems) > 0) != (depth > 5) {
			t.Errorf("matching, %d deep: %v", depth, problems)
		}
	}
	many := make([]resource.ConditionInput, 51)
	for i := range many {
		many[i] = resource.ConditionInput{Metadata: &resource.MetadataCondition{Key: "a", Exists: &yes}}
	}
	for _, n := range []int{50, 51} {
		var problems problem.Problems
		(resource.ConditionInput{Any: many[:n]}).Condition(&problems, "where")
		if (len(problems) > 0) != (n > 50) {
			t.Errorf("%d tests: %v", n, problems)
		}
	}
}

func TestNumberKeysCompareAsNumbers(t *testing.T) {
	t.Parallel()
	ascending := []string{"-1e4998", "-1000", "-10.5", "-10", "-9", "-0.5", "-0.12", "-0.1", "-1e-300", "0", "1e-300",
		"0.09", "0.1", "0.12", "0.123", "1", "2", "9", "9007199254740992", "9007199254740993", "1e300", "1e4000"}
	for i, a := range ascending {
		for j, b := range ascending {
			x, _ := resource.NumberKey(a)
			y, _ := resource.NumberKey(b)
			if x == "" || y == "" || strings.Compare(x, y) != compareInts(i, j) {
				t.Errorf("%s and %s: %q and %q", a, b, x, y)
			}
			if len(x) > 80 {
				t.Errorf("%s: %q is too long", a, x)
			}
		}
	}
	for _, same := range [][2]string{{"12", "12.0"}, {"1e2", "100"}, {"-0", "0.00"}, {"2.50", "2.5"}} {
		x, _ := resource.NumberKey(same[0])
		if y, _ := resource.NumberKey(same[1]); x != y {
			t.Errorf("%v: %q and %q", same, x, y)
		}
	}
	for _, text := range []string{"", "abc", "007", "+7", "1,5", " 1", "2.1.0", "True", "inf", "NaN", "0x10",
		strings.Repeat("1", 65), "1e5001", "-1e5001", "1e999999999999"} {
		if key, ok := resource.NumberKey(text); ok {
			t.Errorf("%q is the number %q", text, key)
		}
	}
}

func compareInts(i, j int) int {
	switch {
	case i < j:
		return -1
	case i > j:
		return 1
	}
	return 0
}

func TestMembersOfCapabilityValues(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`["aes", "vmx", "aes"]`: "aes|vmx", ` [ "a" ]`: "a", `[]`: "", `["a", 1]`: "plain", `["a", null]`: "plain",
		`[a]`: "plain", `{"a": 1}`: "plain", `x`: "plain", `["a"] `: "a",
	} {
		members, inList := resource.CapabilityMembers(value)
		got := strings.Join(members, "|")
		if !inList {
			got = "plain"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}

// TestFiltersTakeWhatASyncWrites filters by pairs with values of several lengths.
func TestFiltersTakeWhatASyncWrites(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]int{0: 0, 1: 0, metadef.MaxSyncedValue: 0, metadef.MaxSyncedValue + 1: 1} {
		var problems problem.Problems
		resource.Filter{Metadata: []metadef.KeyValue{{Key: "k", Value: strings.Repeat("a", length)}}}.
			Check(&problems, "filter")
		if len(problems) != want {
			t.Errorf("a value of %d characters: %v", length, problems)
		}
	}
}
