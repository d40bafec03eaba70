package metadef

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/text"
)

// describe returns an item of a report on one line: operator, values, broken
// rules, suggestion.
func describe(item MetadataReportItem) string {
	out := []string{}
	if item.IsCustom {
		out = append(out, "custom")
	}
	if item.Operator != nil {
		out = append(out, *item.Operator)
	}
	out = append(out, strings.Join(item.Values, "|"))
	for _, v := range item.Violations {
		out = append(out, "!"+v.Rule)
	}
	if item.Suggestion != nil {
		out = append(out, "?"+*item.Suggestion)
	}
	return strings.Join(out, " ")
}

func definition(id int64, name string, keywords text.JSON) *PropertyDefinition {
	return &PropertyDefinition{ID: id, Name: name, BaseName: name, PropertySchema: ReadPropertySchema(keywords)}
}

// validate returns the report on the metadata of a new resource, of a type that
// is not strict.
func validate(definitions []*PropertyDefinition, values []KeyValue) MetadataReport {
	rules := NewRules(false, []AppliedNamespace{{Namespace: &Namespace{}, Properties: definitions}}, nil)
	return rules.Judge(MetadataWrite{Items: values}).MetadataReport
}

func TestValidateMetadataJudgesEveryValue(t *testing.T) {
	t.Parallel()
	definitions := []*PropertyDefinition{
		definition(1, "cores", `{"title":"C","type":"integer","minimum":1,"maximum":9007199254740993}`),
		definition(2, "ratio", `{"title":"R","type":"number","minimum":0.5,"maximum":9.9}`),
		definition(3, "fast", `{"title":"F","type":"boolean"}`),
		definition(4, "mode", `{"title":"M","type":"string","enum":["a","b","c d"],"operators":["<or>"]}`),
		definition(5, "label", `{"title":"L","type":"string","minLength":2,"maxLength":3,"pattern":"^[a-zä]+$"}`),
		definition(6, "features",
			`{"title":"F","type":"array","items":{"type":"string","enum":["aes","vme","de"]},"operators":["<or>","<all-in>"],"minItems":1,"maxItems":2,"uniqueItems":true}`),
		definition(7, "ports", `{"title":"P","type":"array","items":{"type":"integer"}}`),
		definition(8, "texts", `{"title":"T","type":"integer","enum":["1","2"]}`),
		definition(9, "own", `{"title":"O","type":"string","operators":["s==","<bogus>"]}`),
		definition(10, "odd", `{"title":"O","type":"string","pattern":"(?!a)"}`),
		definition(11, "vif", `{"title":"V","type":"string","enum":["virtio","e1000"]}`),
		definition(12, "vif", `{"title":"V","type":"string","enum":["e1000","VirtualE1000"]}`),
		definition(13, "pair",
			`{"title":"P","type":"array","items":{"type":"integer","enum":[1,2]},"minItems":2,"maxItems":2,"uniqueItems":true}`),
	}
	for _, c := range []struct{ key, value, want string }{
		{"cores", "2", "2"},
		{"cores", "two", "two !type"},
		{"cores", "2.5", "2.5 !type"},
		{"cores", "0", "0 !minimum"},
		{"cores", "9007199254740993", "9007199254740993"},
		{"cores", "9007199254740994", "9007199254740994 !maximum"},
		{"cores", "", " !value"},
		{"cores", "0x10", "0x10 !type"},
		{"cores", "<or> 1 <or> x", "<or> 1|x !operators !type"},
		{"ratio", "0.5", "0.5"},
		{"ratio", "10", "10 !maximum"},
		{"ratio", "NaN", "NaN !type"},
		{"fast", "true", "true"},
		{"fast", "True", "True !type"},
		{"fast", "TRUE", "TRUE !type"},
		{"cores", " 5", " 5 !type"},
		{"ratio", "1.5\n", "1.5\n !type"},
		{"fast", "yes", "yes !type"},
		{"mode", "a", "<or> a"},
		{"mode", "x", "<or> x !enum"},
		{"mode", "<or> a <or> c d", "<or> a|c d"},
		{"mode", "<or> a,b", "<or> a|b"},
		{"mode", "<or>a<or>b", "<or>a<or>b !operators"},
		{"mode", `<or> "c d"`, "<or> c d"},
		{"mode", "<or> c d", "<or> c d !operators"},
		{"mode", "<or> a <or> x", "<or> a|x !enum"},
		{"mode", "<in> a", "<in> a !operators"},
		{"mode", "<or>", "<or> !operators"},
		{"label", "aä", "aä"},
		{"label", "aaaa", "aaaa !maxLength"},
		{"label", "1", "1 !minLength !pattern"},
		{"features", "<all-in> aes vme", "<all-in> aes|vme"},
		{"features", "<all-in> aes,vme", "<all-in> aes|vme"},
		{"features", "<or> aes <or> de", "<or> aes|de"},
		{"features", "aes", "<or> aes"},
		{"features", "aes,de", "<or> aes|de"},
		{"features", `["aes","de"]`, "<or> aes|de"},
		{"features", "<in> aes", "<in> aes !operators"},
		{"features", "<or> aes <or> x <or> aes", "<or> aes|x|aes !maxItems !itemEnum !uniqueItems"},
		{"features", "", "<or>  !value"},
		{"ports", "80,x", "<in> 80|x !itemType"},
		{"pair", "1,x", "<in> 1|x !itemType"},
		{"pair", "x", "<in> x !itemType !minItems"},
		{"pair", "1,2,x", "<in> 1|2|x !itemType !maxItems"},
		{"pair", "x,x", "<in> x|x !itemType !itemType !uniqueItems"},
		{"ports", "<in> 80", "<in> 80"},
		{"texts", "1", "1"},
		{"texts", "3", "3 !enum"},
		{"own", "s== a", "s== a"},
		{"own", "s==a", "s==a !operators"},
		{"own", "<bogus> a b,c", "<bogus> a b|c"},
		{"cores", ">= 2", ">= 2"},
		{"cores", "> 0", "> 0"},
		{"cores", "== 0", "== 0 !minimum"},
		{"cores", "<or> 1 <or> 2", "<or> 1|2 !operators"},
		{"fast", "s== true", "s== true"},
		{"fast", "s== True", "s== True !type"},
		{"own", "<bogus> a", "<bogus> a"},
		{"odd", "a", "a"},
		{"vif", "virtio", "virtio"},
		{"vif", "VirtualE1000", "VirtualE1000"},
		{"vif", "none", "none !enum"},
		{"CORES", "x", "x !type ?cores"},
		{"capabilities:features", "aes", "<or> aes"},
		{"Capabilities:Features", "aes", "<or> aes ?features"},
		{"feature", "<or> x <or> y", "custom <or> x|y ?features"},
		{"corse", "1", "custom 1 ?cores"},
		{"foo", "1", "custom 1"},
		{"", "", "custom  !key !value"},
	} {
		report := validate(definitions, []KeyValue{{Key: c.key, Value: c.value}})
		if got := describe(report.Items[0]); got != c.want {
			t.Errorf("%s = %q: %s, want %s", c.key, c.value, got, c.want)
		}
		if report.Valid == strings.Contains(c.want, "!") {
			t.Errorf("%s = %q: valid is %v", c.key, c.value, report.Valid)
		}
	}
	for value, want := range map[string]string{" 5": " 5 is not of type integer; write 5",
		"five": "five is not of type integer"} {
		if got := validate(definitions, []KeyValue{{"cores", value}}).Items[0].Violations[0].Message; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestValidateMetadataOnRealFlavorDefinitions(t *testing.T) {
	t.Parallel()
	report := validate(definitionsOf(realApplied(t, "OS::Nova::Flavor")), []KeyValue{
		{"hw:cpu_sockets", "two"}, {"hw:cpu_socket", "2"}, {"capabilities:cpu_info:features", "<all-in> aes vmx"},
		{"capabilities:cpu_info:features", "aes"}, {"cpu_info:features", "<all-in> aes,vme"}})
	want := []string{"two !type", "custom 2 ?hw:cpu_sockets", "<all-in> aes|vmx", "<or> aes",
		"<all-in> aes|vme ?capabilities:cpu_info:features"}
	for i, item := range report.Items {
		if got := describe(item); got != want[i] {
			t.Errorf("%s: %s, want %s", item.Key, got, want[i])
		}
	}
	if report.Valid {
		t.Error("the report is valid")
	}
}

func TestValidateMetadataMatchesKeysWhateverTheirCaseOnRealImages(t *testing.T) {
	t.Parallel()
	report := validate(definitionsOf(realApplied(t, "OS::Glance::Image")),
		[]KeyValue{{"HW_VIF_MODEL", "virtio"}, {"foo", "1"}})
	first, second := report.Items[0], report.Items[1]
	if len(first.Definitions) != 2 || first.IsCustom || first.Suggestion == nil ||
		*first.Suggestion != "hw_vif_model" || len(first.Violations) > 0 {
		t.Errorf("HW_VIF_MODEL: %+v", first)
	}
	if !second.IsCustom || second.Suggestion != nil {
		t.Errorf("foo: %+v", second)
	}
}

func TestNearestSuggestsOnlyWhatIsAlike(t *testing.T) {
	t.Parallel()
	known := []string{"hw:cpu_sockets", "hw:cpu_cores", "quota:disk_read", "ab", "b", "quota:disk_reed"}
	for name, want := range map[string]string{
		"hw:cpu_socket": "hw:cpu_sockets", "hw:cpu_scokets": "hw:cpu_sockets", "HW:CPU_CORE": "hw:cpu_cores",
		"quota:disk_raed": "quota:disk_read",
		"quota:disk_rxyz": "quota:disk_read", "hw:mem": "", "a": "ab", "": "b", "completely:different": "",
	} {
		if got := text.Nearest(name, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
	if slices.Contains(known, "") {
		t.Fatal("the empty name is none")
	}
}

func FuzzValidateMetadata(f *testing.F) {
	f.Add("<all-in> a b", `{"title":"T","type":"array","items":{"type":"integer","enum":["1"]},"uniqueItems":true}`,
		"key")
	f.Add("<or> 1e5 <or>", `{"title":"T","type":"integer","minimum":1,"operators":["<or>",""]}`, "Key")
	f.Fuzz(func(t *testing.T, value, keywords, key string) {
		schema := ReadPropertySchema(text.JSON(keywords))
		report := validate([]*PropertyDefinition{{ID: 1, Name: "key", PropertySchema: schema}},
			[]KeyValue{{key, value}})
		if len(report.Items) != 1 || report.Items[0].Key != key {
			t.Fatalf("report %+v", report)
		}
	})
}

// Where the namespace of placement applies, the keys that placement reads are
// known, and their values are checked.
func TestKeysOfPlacementAreKnownWhereItsNamespaceApplies(t *testing.T) {
	t.Parallel()
	report := func(namespace, key, value string) string {
		rules := NewRules(true, []AppliedNamespace{{Namespace: &Namespace{Name: namespace},
			Properties: []*PropertyDefinition{definition(1, "vcpus", `{"title":"V","type":"integer"}`)}}}, nil)
		verdict := rules.Judge(MetadataWrite{Items: []KeyValue{{Key: key, Value: value}}})
		return fmt.Sprintf("%s %t", describe(verdict.Items[0]), verdict.Accepted)
	}
	for _, c := range []struct{ key, value, want, without string }{
		{"resources:VGPU", "2", "2 true", "custom 2 !key false"},
		{"resources_NIC:CUSTOM_VF", "0", "0 true", "custom 0 !key false"},
		{"resources1:VGPU", "two", "two !value false", "custom two !key false"},
		{"resources:vgpu", "2", "2 !value false", "custom 2 !key false"},
		{"trait:HW_CPU_X86_AVX", "required", "required true", "custom required !key false"},
		{"trait2:HW_CPU_X86_AVX", "maybe", "maybe !value false", "custom maybe !key false"},
		{"required1", "in:A,B", "in:A,B true", "custom in:A,B !key false"},
		{"same_subtree_1", "_A,_B", "_A,_B true", "custom _A,_B !key false"},
		{"vcpus", "-1", "-1 !value false", "-1 true"},
		{"resource:VGPU", "2", "custom 2 !key false", "custom 2 !key false"},
	} {
		if got := report(placementNamespace, c.key, c.value); got != c.want {
			t.Errorf("%s=%s is %q, want %q", c.key, c.value, got, c.want)
		}
		if got := report("Other", c.key, c.value); got != c.without {
			t.Errorf("%s=%s without the namespace is %q, want %q", c.key, c.value, got, c.without)
		}
	}
}

// TestADeletionSpoilsNoValueOfAStrictType deletes metadata of a strict type where
// several definitions of a key conflict. A value that a definition accepts must
// not lose the keys that the definition requires.
func TestADeletionSpoilsNoValueOfAStrictType(t *testing.T) {
	t.Parallel()
	of := func(object int64, name, keywords string) *PropertyDefinition {
		of := definition(object, name, text.JSON(keywords))
		of.ObjectID = object
		return of
	}
	const anything, enum = `{"title":"K","type":"string"}`, `{"title":"K","type":"string","enum":["other"]}`
	one := &ObjectDefinition{ID: 1, Name: "one", Required: []string{"r1"}}
	two := &ObjectDefinition{ID: 2, Name: "two", Required: []string{"r2"}}
	free := []*PropertyDefinition{of(0, "r1", anything), of(0, "r2", anything)}
	type all []*PropertyDefinition
	for name, c := range map[string]struct {
		properties all
		before     string
		deleted    string
		refuses    bool
	}{
		"the only definition":              {all{of(1, "k", anything)}, "k r1", "r1", true},
		"another definition refuses it":    {all{of(1, "k", anything), of(0, "k", enum)}, "k r1", "r1", true},
		"another one lacks a key":          {all{of(1, "k", anything), of(2, "k", anything)}, "k r2", "r2", true},
		"another definition accepts it":    {all{of(1, "k", anything), of(0, "k", anything)}, "k r1", "r1", false},
		"two complete ones":                {all{of(1, "k", anything), of(2, "k", anything)}, "k r1 r2", "r2", false},
		"none was complete":                {all{of(1, "k", anything)}, "k r2", "r2", false},
		"a bad value of the only one":      {all{of(1, "k", enum)}, "k r1", "r1", true},
		"a bad value, as bad by the other": {all{of(1, "k", enum), of(0, "k", enum)}, "k r1", "r1", false},
	} {
		applied := Apply(&Namespace{}, &ResourceTypeAssociation{}, slices.Concat(free, c.properties),
			[]*ObjectDefinition{one, two})
		rules := NewRules(true, []AppliedNamespace{applied}, nil)
		write := MetadataWrite{Deleted: []string{c.deleted}}
		for _, key := range strings.Fields(c.before) {
			write.Before = append(write.Before, KeyValue{key, "v"})
		}
		again := write
		again.Items = []KeyValue{{"k", "v"}}
		for what, write := range map[string]MetadataWrite{"kept": write, "written again": again} {
			if got := rules.Judge(write); got.Accepted == c.refuses {
				t.Errorf("%s, %s: accepted %t, needed %v", name, what, got.Accepted, got.Needed)
			}
		}
	}
}
