package metadef

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestPlanUpgradeKeepsLocalEditsAndReportsThem(t *testing.T) {
	t.Parallel()
	const base = `{"namespace":"N","description":"one","visibility":"public","protected":true,
		"resource_type_associations":[{"name":"T","prefix":"hw:"},{"name":"U"}],
		"properties":{
			"same":{"title":"S","type":"string"},
			"both":{"title":"B","type":"integer","default":1,"minimum":0},
			"retired":{"title":"R","type":"string"},
			"retired_edited":{"title":"R","type":"string"},
			"removed_here":{"title":"R","type":"string"},
			"odd":{"title":"O","type":"string","enum":["a","b"],"default":"a"}},
		"objects":[{"name":"o","required":["x"],"properties":{"x":{"title":"X","type":"string"},"y":{"title":"Y","type":"string"}}}],
		"tags":[{"name":"Top"},{"name":"Leaf","parent":"Top"}]}`
	const local = `{"namespace":"N","description":"mine","visibility":"private","protected":true,"owner":"us",
		"resource_type_associations":[{"name":"T","prefix":"hw:"},{"name":"U"}],
		"properties":{
			"same":{"title":"S","type":"string"},
			"both":{"title":"Mine","type":"integer","default":1,"minimum":0},
			"retired":{"title":"R","type":"string"},
			"retired_edited":{"title":"Mine","type":"string"},
			"odd":{"title":"O","type":"string","enum":["a","b"],"default":"b"},
			"mine":{"title":"M","type":"string"}},
		"objects":[{"name":"o","required":["x"],"properties":{"x":{"title":"Mine","type":"string"},"y":{"title":"Y","type":"string"}}}],
		"tags":[{"name":"Top"},{"name":"Leaf","parent":"Top"},{"name":"Mine","parent":"Top"}]}`
	const shipped = `{"namespace":"N","description":"two","display_name":"Name","visibility":"public","protected":true,
		"resource_type_associations":[{"name":"T","prefix":"hw:"},{"name":"V"}],
		"properties":{
			"new":{"title":"N","type":"string"},
			"same":{"title":"Same","type":"string"},
			"both":{"title":"B","type":"integer","default":2,"minimum":0,"maximum":9},
			"removed_here":{"title":"R","type":"string"},
			"odd":{"title":"O","type":"string","enum":["a","c"],"default":"a"}},
		"objects":[{"name":"o","description":"d","required":["x","z"],"properties":{"x":{"title":"X","type":"string","readonly":true},"z":{"title":"Z","type":"string"}}}],
		"tags":[{"name":"Leaf"}]}`
	const want = `{"namespace":"N","display_name":"Name","description":"mine","visibility":"private","protected":true,"owner":"us",
		"resource_type_associations":[{"name":"T","prefix":"hw:"},{"name":"V"}],
		"properties":{
			"new":{"title":"N","type":"string"},
			"same":{"title":"Same","type":"string"},
			"both":{"title":"Mine","type":"integer","default":2,"minimum":0,"maximum":9},
			"retired_edited":{"title":"Mine","type":"string"},
			"odd":{"title":"O","type":"string","enum":["a","b"],"default":"b"},
			"mine":{"title":"M","type":"string"}},
		"objects":[{"name":"o","description":"d","required":["x","z"],"properties":{"x":{"title":"Mine","type":"string","readonly":true},"z":{"title":"Z","type":"string"}}}],
		"tags":[{"name":"Leaf"},{"name":"Mine"}]}`
	plan := PlanUpgrade(parsed(t, base), parsed(t, local), parsed(t, shipped))
	if plan.Outcome != ImportUpdated {
		t.Fatalf("%s: %v", plan.Outcome, plan.Problems)
	}
	if got := plan.Result.Text(); got != parsed(t, want).Text() {
		t.Errorf("result %s", got)
	}
	wantPaths(t, "drift", plan.Warnings, "$.description", "$.visibility",
		"$.properties.both.title", "$.properties.retired_edited",
		"$.properties.odd", "$.properties.removed_here", "$.properties.mine",
		"$.objects.o.properties.x.title", "$.tags.Mine", "$.tags.mine")

	wantEdits := []ImportEdit{
		{"$.description", `"one"`, `"mine"`, `"two"`},
		{"$.visibility", `"public"`, `"private"`, `"public"`},
		{"$.properties.both.title", `"B"`, `"Mine"`, `"B"`},
		{"$.properties.retired_edited", `{"title":"R","type":"string"}`, `{"title":"Mine","type":"string"}`, ""},
		{"$.properties.odd", `{"title":"O","type":"string","enum":["a","b"],"default":"a"}`,
			`{"title":"O","type":"string","enum":["a","b"],"default":"b"}`,
			`{"title":"O","type":"string","enum":["a","c"],"default":"a"}`},
		{"$.properties.removed_here", `{"title":"R","type":"string"}`, "", `{"title":"R","type":"string"}`},
		{"$.properties.mine", "", `{"title":"M","type":"string"}`, ""},
		{"$.objects.o.properties.x.title", `"X"`, `"Mine"`, `"X"`},
		{"$.tags.mine", "", `{"name":"Mine","parent":"Top"}`, ""},
	}
	byPath := func(a, b ImportEdit) int { return strings.Compare(a.Path, b.Path) }
	slices.SortFunc(plan.Edits, byPath)
	slices.SortFunc(wantEdits, byPath)
	if !slices.Equal(plan.Edits, wantEdits) {
		t.Errorf("edits\n%q\nwant\n%q", plan.Edits, wantEdits)
	}

	again := PlanUpgrade(parsed(t, shipped), plan.Result, parsed(t, shipped))
	if again.Outcome != ImportUnchanged || len(again.Differences) > 0 {
		t.Errorf("the same again: %s %q", again.Outcome, again.Differences)
	}
}

// TestPlanFollowPrefersTheBundle follows a bundle over local edits and additions.
func TestPlanFollowPrefersTheBundle(t *testing.T) {
	t.Parallel()
	const base = `{"namespace":"N","description":"one","visibility":"public","protected":true,
		"resource_type_associations":[{"name":"T","prefix":"hw:"},{"name":"U"}],
		"properties":{
			"both":{"title":"B","type":"integer","default":1},
			"dropped":{"title":"D","type":"string"},
			"dropped_edited":{"title":"D","type":"string"},
			"removed_here":{"title":"R","type":"string"},
			"odd":{"title":"O","type":"integer"}},
		"objects":[{"name":"o","required":["x"],"properties":{"x":{"title":"X","type":"string"},"y":{"title":"Y","type":"string"}}}],
		"tags":[{"name":"Top"},{"name":"Leaf","parent":"Top"}]}`
	const local = `{"namespace":"N","display_name":"Mine","description":"mine","visibility":"private","protected":false,"owner":"us",
		"resource_type_associations":[{"name":"T","prefix":"hw:"},{"name":"V"}],
		"properties":{
			"both":{"title":"Mine","type":"integer","default":1,"description":"mine"},
			"dropped":{"title":"D","type":"string"},
			"dropped_edited":{"title":"Mine","type":"string"},
			"odd":{"title":"O","type":"integer","maximum":9},
			"mine":{"title":"M","type":"string"},
			"meanwhile":{"title":"M","type":"string","description":"mine"}},
		"objects":[{"name":"o","required":[],"properties":{"x":{"title":"Mine","type":"string"},"mine":{"title":"M","type":"string"}}}],
		"tags":[{"name":"Top"},{"name":"mine","parent":"Top"}]}`
	const shipped = `{"namespace":"N","description":"two","visibility":"public","protected":true,
		"resource_type_associations":[{"name":"T","prefix":"hw:"},{"name":"U"}],
		"properties":{
			"both":{"title":"B","type":"integer","default":2},
			"removed_here":{"title":"R","type":"string"},
			"odd":{"title":"O","type":"string"},
			"meanwhile":{"title":"W","type":"string"}},
		"objects":[{"name":"o","required":["x"],"properties":{"x":{"title":"X","type":"string"}}}],
		"tags":[{"name":"Top"},{"name":"Leaf","parent":"Top"}]}`
	const want = `{"namespace":"N","display_name":"Mine","description":"two","visibility":"public","protected":true,"owner":"us",
		"resource_type_associations":[{"name":"T","prefix":"hw:"},{"name":"U"},{"name":"V"}],
		"properties":{
			"both":{"title":"B","type":"integer","default":2,"description":"mine"},
			"dropped_edited":{"title":"Mine","type":"string"},
			"removed_here":{"title":"R","type":"string"},
			"odd":{"title":"O","type":"string"},
			"mine":{"title":"M","type":"string"},
			"meanwhile":{"title":"W","type":"string","description":"mine"}},
		"objects":[{"name":"o","required":["x"],"properties":{"x":{"title":"X","type":"string"},"mine":{"title":"M","type":"string"}}}],
		"tags":[{"name":"Top"},{"name":"mine","parent":"Top"},{"name":"Leaf","parent":"Top"}]}`
	plan := PlanFollow(parsed(t, base), parsed(t, local), parsed(t, shipped))
	if plan.Outcome != ImportUpdated {
		t.Fatalf("%s: %v", plan.Outcome, plan.Problems)
	}
	if differences := Differences(parsed(t, want), plan.Result); len(differences) > 0 {
		t.Errorf("result %s differs from the wanted one: %q", plan.Result.Text(), differences)
	}
	wantPaths(t, "edits", plan.Warnings, "$.display_name", "$.properties.dropped_edited",
		"$.properties.odd", "$.properties.both.description",
		"$.properties.mine", "$.properties.meanwhile.description", "$.objects.o.properties.mine",
		"$.tags.mine", "$.resource_type_associations.V")
	if slices.ContainsFunc(plan.Edits, func(edit ImportEdit) bool { return edit.Path == "$.properties.odd" }) {
		t.Error("an edit that was replaced is listed as kept")
	}
	if again := PlanFollow(parsed(t, shipped), plan.Result, parsed(t, shipped)); again.Outcome != ImportUnchanged {
		t.Errorf("the same again: %s %q", again.Outcome, again.Differences)
	}
}

func TestPlanUpgradeWithoutLocalEditsIsTheShippedDocument(t *testing.T) {
	t.Parallel()
	base := parsed(t,
		`{"namespace":"N","visibility":"public","properties":{"a":{"title":"A","type":"string"},"b":{"type":"string","title":"B"}},"objects":[{"name":"o"}]}`)
	local := *base
	local.Owner, local.Protected = pointer("us"), pointer(false)
	shipped := parsed(t,
		`{"namespace":"N","visibility":"public","properties":{"b":{"title":"B","type":"string"},"c":{"title":"C","type":"string"},"a":{"title":"A2","type":"string"}},"tags":[{"name":"t"}]}`)
	plan := PlanUpgrade(base, &local, shipped)
	want := *shipped
	want.Owner, want.Protected = local.Owner, local.Protected
	if plan.Outcome != ImportUpdated || plan.Result.Text() != want.Text() {
		t.Errorf("%s %s", plan.Outcome, plan.Result.Text())
	}
	wantPaths(t, "drift", plan.Warnings)
	if plan := PlanUpgrade(base, &local, base); plan.Outcome != ImportUnchanged ||
		len(plan.Warnings)+len(plan.Edits) > 0 {
		t.Errorf("the same version: %+v", plan)
	}
}

func TestUnionKeepsBothOrders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ first, second, want []string }{
		{[]string{"a", "b"}, []string{"a", "x", "b", "y"}, []string{"a", "x", "b", "y"}},
		{[]string{"b", "a"}, []string{"x", "a", "y", "b", "z"}, []string{"x", "b", "z", "a", "y"}},
		{nil, []string{"x", "y"}, []string{"x", "y"}},
		{[]string{"a"}, nil, []string{"a"}},
		{[]string{"", "a"}, []string{"x", "a"}, []string{"x", "", "a"}},
	} {
		if got := union(c.first, c.second); !slices.Equal(got, c.want) {
			t.Errorf("union(%q, %q) = %q, want %q", c.first, c.second, got, c.want)
		}
	}
}

func FuzzPlanImport(f *testing.F) {
	f.Add(importExisting, importIncoming)
	f.Add(`{"namespace":"N","tags":[{"name":"a"}]}`, `{"namespace":"N","tags":[{"name":"A"}]}`)
	f.Fuzz(func(t *testing.T, one, other string) {
		existing, _, problems := ParseDocument(one)
		incoming, _, more := ParseDocument(other)
		if len(problems)+len(more) > 0 {
			return
		}
		existing = planCreation(existing).Result
		for _, mode := range []ImportMode{Merge, PreferNew, Overwrite} {
			plan := PlanImport(existing, incoming, mode, true)
			if plan.Result == nil {
				continue
			}
			if _, _, problems := ParseDocument(plan.Result.Text()); len(problems) > 0 {
				t.Fatalf("%s makes %v", mode, problems)
			}
			if again := PlanImport(plan.Result, incoming, mode, true); again.Outcome != ImportUnchanged {
				t.Fatalf("%s again: %s %q", mode, again.Outcome, again.Differences)
			}
		}
		plan := PlanUpgrade(existing, existing, incoming)
		if plan.Result != nil {
			if again := PlanUpgrade(incoming, plan.Result, incoming); again.Outcome != ImportUnchanged {
				t.Fatalf("upgrade again: %s %q", again.Outcome, again.Differences)
			}
		}
	})
}

func TestEditsOfAnUpgradeAreBounded(t *testing.T) {
	t.Parallel()
	many := &Document{Name: "N"}
	for i := range maxEdits + 5 {
		many.Tags = append(many.Tags, DocumentTag{Name: strconv.Itoa(i)})
	}
	plan := PlanUpgrade(&Document{Name: "N"}, many, &Document{Name: "N"})
	if len(plan.Edits) != maxEdits || plan.Edits[maxEdits-1].Here == "" {
		t.Errorf("%d edits", len(plan.Edits))
	}
}
