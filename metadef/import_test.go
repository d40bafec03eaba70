package metadef

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
)

func parsed(t testing.TB, text string) *Document {
	t.Helper()
	document, _, problems := ParseDocument(text)
	if len(problems) > 0 {
		t.Fatalf("%v in %s", problems, text)
	}
	return document
}

func wantLines(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The current namespace, edited since it was loaded: description, visibility,
// owner, an added property.
const importExisting = `{"namespace":"N","display_name":"Name","description":"local","visibility":"private","protected":false,"owner":"us",
	"resource_type_associations":[{"name":"T","prefix":"hw:"},{"name":"U"}],
	"properties":{"kept":{"title":"K","type":"string"},"retired":{"title":"R","type":"string"},"added":{"title":"A","type":"string"}},
	"objects":[{"name":"o","required":["a"],"properties":{"a":{"title":"A","type":"integer","default":5}}}],
	"tags":[{"name":"Database"},{"name":"MySQL","parent":"Database"}]}`

const importIncoming = `{"namespace":"N","display_name":"Name","description":"shipped",
	"resource_type_associations":[{"name":"T","prefix":"hw_"},{"name":"V"}],
	"properties":{"kept":{"title":"Kept","type":"string"},"new":{"title":"N","type":"string"}},
	"objects":[{"name":"o","properties":{"a":{"title":"A","type":"integer","default":6}}},{"name":"p"}],
	"tags":[{"name":"mysql"},{"name":"New","parent":"MySQL"}]}`

func TestPlanImportFollowsTheModes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode    ImportMode
		outcome ImportOutcome
		want    string
		lines   []string
	}{
		{Merge, ImportUpdated, `{"namespace":"N","display_name":"Name","description":"local","visibility":"private","protected":false,"owner":"us",
			"resource_type_associations":[{"name":"T","prefix":"hw:"},{"name":"U"},{"name":"V"}],
			"properties":{"kept":{"title":"K","type":"string"},"new":{"title":"N","type":"string"},"retired":{"title":"R","type":"string"},"added":{"title":"A","type":"string"}},
			"objects":[{"name":"o","required":["a"],"properties":{"a":{"title":"A","type":"integer","default":5}}},{"name":"p"}],
			"tags":[{"name":"Database"},{"name":"MySQL","parent":"Database"},{"name":"New","parent":"MySQL"}]}`,
			[]string{"added $.resource_type_associations.V", "added $.properties.new",
				"added $.objects.p", "added $.tags.new"}},
		{PreferNew, ImportUpdated, `{"namespace":"N","display_name":"Name","description":"shipped","visibility":"private","protected":false,"owner":"us",
			"resource_type_associations":[{"name":"T","prefix":"hw_"},{"name":"U"},{"name":"V"}],
			"properties":{"kept":{"title":"Kept","type":"string"},"new":{"title":"N","type":"string"},"retired":{"title":"R","type":"string"},"added":{"title":"A","type":"string"}},
			"objects":[{"name":"o","properties":{"a":{"title":"A","type":"integer","default":6}}},{"name":"p"}],
			"tags":[{"name":"Database"},{"name":"mysql"},{"name":"New","parent":"mysql"}]}`,
			[]string{`changed $.description: "local" -> "shipped"`,
				"added $.resource_type_associations['T, prefix hw_']", "added $.resource_type_associations.V",
				"removed $.resource_type_associations['T, prefix hw:']",
				`changed $.properties.kept.title: "K" -> "Kept"`, "added $.properties.new",
				`removed $.objects.o.required: ["a"]`,
				"changed $.objects.o.properties.a.default: 5 -> 6", "added $.objects.p",
				`changed $.tags.mysql.name: "MySQL" -> "mysql"`,
				`changed $.tags.mysql.parent: "Database" -> ""`, "added $.tags.new"}},
		{Overwrite, ImportUpdated, `{"namespace":"N","display_name":"Name","description":"shipped","visibility":"private","protected":false,"owner":"us",
			"resource_type_associations":[{"name":"T","prefix":"hw_"},{"name":"V"}],
			"properties":{"kept":{"title":"Kept","type":"string"},"new":{"title":"N","type":"string"}},
			"objects":[{"name":"o","properties":{"a":{"title":"A","type":"integer","default":6}}},{"name":"p"}],
			"tags":[{"name":"mysql"},{"name":"New","parent":"mysql"}]}`, nil},
		{Skip, ImportSkipped, "", nil},
		{"APPEND", ImportFailed, "", nil},
	} {
		t.Run(string(c.mode), func(t *testing.T) {
			t.Parallel()
			existing, incoming := parsed(t, importExisting), parsed(t, importIncoming)
			plan := PlanImport(existing, incoming, c.mode, false)
			if plan.Outcome != c.outcome {
				t.Fatalf("outcome %s: %v", plan.Outcome, plan.Problems)
			}
			if c.lines != nil {
				wantLines(t, "differences", plan.Differences, c.lines...)
			}
			if c.want == "" {
				if plan.Result != nil {
					t.Errorf("there is something to write: %s", plan.Result.Text())
				}
				return
			}
			if want := parsed(t, c.want); plan.Result.Text() != want.Text() {
				t.Errorf("result %s", plan.Result.Text())
			}
			if again := PlanImport(plan.Result, incoming, c.mode, false); again.Outcome != ImportUnchanged ||
				again.Result != nil || len(again.Differences) > 0 {
				t.Errorf("the second time: %s %q", again.Outcome, again.Differences)
			}
			if !reflect.DeepEqual(existing, parsed(t, importExisting)) ||
				!reflect.DeepEqual(incoming, parsed(t, importIncoming)) {
				t.Error("the plan changed its inputs")
			}
		})
	}
}

// TestNoNameHidesAnAssociation replaces an association by one of a type whose name
// reads like the association. That is a change, which editors may not make.
func TestNoNameHidesAnAssociation(t *testing.T) {
	t.Parallel()
	existing := parsed(t, `{"namespace":"N","visibility":"public","owner":"us",
		"resource_type_associations":[{"name":"A","prefix":"x_"}]}`)
	incoming := parsed(t, `{"namespace":"N","resource_type_associations":[{"name":"A, prefix x_"}]}`)
	plan := PlanImport(existing, incoming, Overwrite, false)
	wantLines(t, "differences", plan.Differences, `added $.resource_type_associations['"A, prefix x_"']`,
		"removed $.resource_type_associations['A, prefix x_']")
	if err := (NamespaceStanding{}).CheckChange(existing, plan.Result); err == nil {
		t.Error("an editor may make the change")
	}
}

func TestPlanImportKeepsAccessThatTheFileIsSilentAbout(t *testing.T) {
	t.Parallel()
	existing := parsed(t, `{"namespace":"N","description":"d","visibility":"private","protected":true,"owner":"us"}`)
	for _, mode := range []ImportMode{Merge, PreferNew} {
		if plan := PlanImport(existing, parsed(t, `{"namespace":"N"}`), mode, false); plan.Outcome != ImportUnchanged {
			t.Errorf("%s: %s %q", mode, plan.Outcome, plan.Differences)
		}
	}
	plan := PlanImport(existing, parsed(t, `{"namespace":"N"}`), Overwrite, true)
	wantLines(t, "overwritten", plan.Differences, `removed $.description: "d"`)
	plan = PlanImport(existing, parsed(t, `{"namespace":"N","visibility":"public","protected":false,"owner":"them"}`),
		PreferNew, false)
	wantLines(t, "preferred", plan.Differences, `changed $.visibility: "private" -> "public"`,
		"changed $.protected: true -> false", `changed $.owner: "us" -> "them"`)
	if plan = PlanImport(existing, parsed(t, `{"namespace":"N"}`), Skip, false); plan.Outcome != ImportSkipped {
		t.Errorf("a file that Overwrite would apply: %s", plan.Outcome)
	}
	wantLines(t, "skipped", plan.Differences, `removed $.description: "d"`)
	if plan := PlanImport(existing, parsed(t, `{"namespace":"N","description":"d"}`), Skip,
		false); plan.Outcome != ImportUnchanged {
		t.Errorf("a file that says nothing else: %s %q", plan.Outcome, plan.Differences)
	}
}

func TestPlanImportRefusesToOverwriteWhatIsProtected(t *testing.T) {
	t.Parallel()
	existing := parsed(t, `{"namespace":"N","visibility":"public","protected":true,"owner":"us"}`)
	incoming := parsed(t, `{"namespace":"N","description":"d"}`)
	plan := PlanImport(existing, incoming, Overwrite, false)
	if plan.Outcome != ImportFailed || plan.Result != nil ||
		!strings.HasPrefix(plan.Problems[0].Reported(), "$: PROTECTED: N ") {
		t.Errorf("plan %+v", plan)
	}
	for _, mode := range []ImportMode{Merge, PreferNew, Skip} {
		if plan := PlanImport(existing, incoming, mode, false); plan.Outcome == ImportFailed {
			t.Errorf("%s is refused", mode)
		}
	}
	if plan := PlanImport(existing, incoming, Overwrite, true); plan.Outcome != ImportUpdated ||
		!*plan.Result.Protected {
		t.Errorf("with protected ones included: %+v", plan)
	}
}

// TestPlanImportDeletesNothingFromWhatIsProtected checks an object that is
// replaced by one with fewer properties.
func TestPlanImportDeletesNothingFromWhatIsProtected(t *testing.T) {
	t.Parallel()
	existing := parsed(t, `{"namespace":"N","visibility":"public","protected":true,"owner":"us","resource_type_associations":[{"name":"T"}],
		"objects":[{"name":"o","properties":{"a":{"title":"A","type":"string"},"b":{"title":"B","type":"string"}}}]}`)
	for object, want := range map[string]ImportOutcome{
		`{"name":"o","properties":{"a":{"title":"A","type":"string"}}}`: ImportFailed,
		`{"name":"o"}`: ImportFailed,
		`{"name":"o","properties":{"b":{"title":"B","type":"string"},"c":{"title":"C","type":"string"},"a":{"title":"A","type":"integer"}}}`: ImportUpdated,
		`{"name":"p"}`: ImportUpdated,
	} {
		incoming := parsed(t, `{"namespace":"N","resource_type_associations":[{"name":"T","prefix":"t:"}],"objects":[`+
			object+`]}`)
		if plan := PlanImport(existing, incoming, PreferNew, false); plan.Outcome != want {
			t.Errorf("%s: %s %v, want %s", object, plan.Outcome, plan.Problems, want)
		}
		if plan := PlanImport(existing, incoming, PreferNew, true); plan.Outcome != ImportUpdated {
			t.Errorf("%s, with protected ones included: %s %v", object, plan.Outcome, plan.Problems)
		}
	}
}

func TestPlanImportCreatesPublicNamespacesAndSaysSo(t *testing.T) {
	t.Parallel()
	for _, mode := range []ImportMode{Skip, Merge, PreferNew, Overwrite} {
		plan := PlanImport(nil, parsed(t, `{"namespace":"N","properties":{"p":{"title":"P","type":"string"}}}`), mode,
			false)
		if plan.Outcome != ImportCreated || *plan.Result.Visibility != access.Public ||
			*plan.Result.Protected || plan.Result.Owner != nil {
			t.Errorf("%s: %+v", mode, plan)
		}
		wantPaths(t, "warnings", plan.Warnings, "$.visibility")
		wantLines(t, "differences", plan.Differences, `added $.visibility: "public"`,
			"added $.protected: false", "added $.properties.p")
	}
	plan := PlanImport(nil, parsed(t, `{"namespace":"N","visibility":"private"}`), Skip, false)
	wantPaths(t, "warnings", plan.Warnings)
}

func TestPlanImportRefusesWhatDoesNotGoTogether(t *testing.T) {
	t.Parallel()
	existing := parsed(t, `{"namespace":"N","tags":[{"name":"a","parent":"b"},{"name":"b"}]}`)
	circle := &Document{Name: "N", Tags: []DocumentTag{{Name: "b", Parent: "a"}}}
	if plan := PlanImport(existing, circle, PreferNew, false); plan.Outcome != ImportFailed || plan.Result != nil {
		t.Errorf("tags in a circle: %+v", plan)
	}
	for i := range MaxDefinitions {
		existing.Properties = append(existing.Properties, DocumentProperty{Name: strconv.Itoa(i)})
	}
	more := parsed(t, `{"namespace":"N","properties":{"p":{"title":"P","type":"string"}}}`)
	plan := PlanImport(existing, more, Merge, false)
	wantPaths(t, "problems", plan.Problems, "$.properties")
}

func TestRealFilesAreUnchangedTheSecondTime(t *testing.T) {
	t.Parallel()
	silent := 0
	for name, text := range realDocuments(t) {
		document := parsed(t, text)
		created := PlanImport(nil, document, Skip, false)
		silent += len(created.Warnings)
		for _, mode := range []ImportMode{Skip, Merge, PreferNew, Overwrite} {
			if plan := PlanImport(created.Result, document, mode, true); plan.Outcome != ImportUnchanged {
				t.Errorf("%s %s: %s %q", name, mode, plan.Outcome, plan.Differences)
			}
		}
	}
	if silent != 2 {
		t.Errorf("%d files are silent about visibility, want 2", silent)
	}
}
