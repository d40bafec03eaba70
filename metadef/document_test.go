package metadef

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// realDocuments returns the reference system's definition files by file name,
// from the folder in CADASTRE_TEST_DEFINITIONS.
func realDocuments(t testing.TB) map[string]string {
	t.Helper()
	folder := os.Getenv("CADASTRE_TEST_DEFINITIONS")
	if folder == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("CADASTRE_TEST_DEFINITIONS must name the folder of definition files")
		}
		t.Skip("CADASTRE_TEST_DEFINITIONS is not set")
	}
	if !filepath.IsAbs(folder) { // relative to the repository, not to the package
		folder = filepath.Join("..", folder)
	}
	names, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no definition files in %s: %v", folder, err)
	}
	texts := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(name)] = string(text)
	}
	return texts
}

// documentCounts are the numbers of definitions in definition files.
type documentCounts struct {
	files, properties, objects, objectProperties, associations, integerDefaults, textDefaults int
}

func (c *documentCounts) add(t *testing.T, name string, document *Document) {
	t.Helper()
	properties := slices.Clone(document.Properties)
	for _, object := range document.Objects {
		c.objectProperties += len(object.Properties)
		properties = append(properties, object.Properties...)
	}
	for _, p := range properties {
		switch {
		case p.Default == nil:
		case p.Type == Integer:
			c.integerDefaults++
			if strings.ContainsAny(string(*p.Default), `".`) {
				t.Errorf("%s %s: default %s is no integer", name, p.Name, *p.Default)
			}
		case strings.HasPrefix(string(*p.Default), `"`):
			c.textDefaults++
		}
		if p.Name == "cpu_info:features" && len(p.ItemEnum) != 178 {
			t.Errorf("%s: %d item values", p.Name, len(p.ItemEnum))
		}
	}
	c.files++
	c.properties += len(document.Properties)
	c.objects += len(document.Objects)
	c.associations += len(document.Associations)
}

func TestParseDocumentReadsEveryRealFileWhole(t *testing.T) {
	t.Parallel()
	var got documentCounts
	warned := map[string]int{}
	types := map[string]bool{}
	for name, text := range realDocuments(t) {
		document, warnings, problems := ParseDocument(text)
		if len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
			continue
		}
		for _, w := range warnings {
			warned[name+" "+w.Field]++
		}
		for _, a := range document.Associations {
			types[a.ResourceType] = true
		}
		got.add(t, name, document)
		checkRoundTrip(t, document)
	}
	if want := (documentCounts{33, 136, 23, 63, 63, 21, 17}); got != want {
		t.Errorf("read %+v, want %+v", got, want)
	}
	if len(types) != 6 {
		t.Errorf("resource types %v", types)
	}
	want := map[string]int{
		"software-databases.json $.objects[3].properties.sw_database_oracle_edition.default":     1,
		"software-databases.json $.objects[2].properties.sw_database_sqlserver_edition.enum[10]": 1,
		"software-databases.json $.objects[2].properties.sw_database_sqlserver_edition.enum[14]": 1,
	}
	if !reflect.DeepEqual(warned, want) {
		t.Errorf("warnings %v, want %v", warned, want)
	}
}

func checkRoundTrip(t testing.TB, document *Document) {
	t.Helper()
	text := document.Text()
	again, warnings, problems := ParseDocument(text)
	if len(problems) > 0 {
		t.Fatalf("the export has problems %v:\n%s", problems, text)
	}
	for _, w := range warnings {
		if strings.Contains(w.Message, "left out") || strings.Contains(w.Message, "read as") {
			t.Errorf("the export needs a repair: %v", w)
		}
	}
	if !reflect.DeepEqual(document, again) {
		t.Errorf("the export defines something else:\n%#v\n%#v", document, again)
	}
	if again.Text() != text {
		t.Error("the export of the export differs")
	}
}

func TestParseDocumentKeepsOrderAndTypes(t *testing.T) {
	t.Parallel()
	text := `{"namespace": "N", "tags": [{"name": "MySQL", "parent": "database"}, {"name": "Database"}],
	"objects": [{"name": "o", "required": ["b,c", "a"], "properties": {
		"b,c": {"type": "integer", "title": "B", "default": 100}, "a": {"title": "A", "type": "boolean", "default": true}}}],
	"properties": {"z": {"type": "number", "title": "Z", "minimum": 0.5, "maximum": 9.9}, "a:b.c": {"title": "A", "type": "string"}}}`
	document, warnings, problems := ParseDocument(text)
	wantPaths(t, "problems", problems)
	wantPaths(t, "warnings", warnings)
	const want = `{
    "namespace": "N",
    "properties": {
        "z": {
            "type": "number",
            "title": "Z",
            "minimum": 0.5,
            "maximum": 9.9
        },
        "a:b.c": {
            "title": "A",
            "type": "string"
        }
    },
    "objects": [
        {
            "name": "o",
            "required": [
                "b,c",
                "a"
            ],
            "properties": {
                "b,c": {
                    "type": "integer",
                    "title": "B",
                    "default": 100
                },
                "a": {
                    "title": "A",
                    "type": "boolean",
                    "default": true
                }
            }
        }
    ],
    "tags": [
        {
            "name": "MySQL",
            "parent": "Database"
        },
        {
            "name": "Database"
        }
    ]
}
`
	if got := document.Text(); got != want {
		t.Errorf("got\n%s", got)
	}
	checkRoundTrip(t, document)
}

// documentCase is a file and the paths of its problems and warnings.
type documentCase struct {
	name, text string
	problems   []string
	warnings   []string
}

func documentCases() []documentCase {
	many := strings.Repeat(`{"name":"x"},`, MaxDefinitions) + `{"name":"x"}`
	return []documentCase{
		{"only a name", `{"namespace":"N"}`, nil, nil},
		{"byte order mark", "\uFEFF{\"namespace\":\"N\"}", nil, []string{"$"}},
		{"emoji", `{"namespace":"N😀","display_name":"😀","properties":{"😀":{"type":"string","title":"😀"}}}`, nil, nil},
		{"list", `[]`, []string{"$"}, nil},
		{"text", `"N"`, []string{"$"}, nil},
		{"garbage", "{\n  oops", []string{"$"}, nil},
		{"nothing", ``, []string{"$"}, nil},
		{"two values", `{"namespace":"N"} {}`, []string{"$"}, nil},
		{"not UTF-8", "{\"namespace\":\"N\xff\"}", []string{"$.namespace"}, nil},
		{"UTF-16", "\xff\xfe{\x00}\x00", []string{"$"}, nil},
		{"no name", `{"display_name":"N"}`, []string{"$.namespace"}, nil},
		{"empty name", `{"namespace":""}`, []string{"$.namespace"}, nil},
		{"name null", `{"namespace":null}`, []string{"$.namespace"}, nil},
		{"name with a slash", `{"namespace":"a/b","properties":{"c/d":{"title":"T","type":"string"}}}`,
			[]string{"$.namespace", "$.properties['c/d']"}, nil},
		{"name with a control character", `{"namespace":"a\u0007"}`, []string{"$.namespace"}, nil},
		{"long names", `{"namespace":"` + strings.Repeat("ä", 81) + `","tags":[{"name":"` + strings.Repeat("t", 81) + `"}],
			"resource_type_associations":[{"name":"T","prefix":"` + strings.Repeat("p", 80) + `:"}]}`,
			[]string{"$.namespace", "$.resource_type_associations[0].prefix", "$.tags[0].name"}, nil},
		{"long texts", `{"namespace":"N","description":"` + strings.Repeat("d", 501) + `","owner":"` +
			strings.Repeat("o", 256) + `","display_name":"` + strings.Repeat("n", 81) + `"}`,
			[]string{"$.description", "$.display_name", "$.owner"}, nil},
		{"fields of the wrong kind", `{"namespace":"N","visibility":"shared","protected":"true","owner":5,"display_name":[],"description":{},
			"properties":[],"objects":"o","tags":{},"resource_type_associations":{}}`,
			[]string{"$.description", "$.display_name", "$.objects", "$.owner", "$.properties", "$.protected",
				"$.resource_type_associations", "$.tags", "$.visibility"}, nil},
		{"null fields",
			`{"namespace":"N","description":null,"properties":null,"resource_type_associations":[{"name":"T","prefix":null,"properties_target":""}],"owner":""}`,
			nil, []string{"$.description", "$.owner", "$.properties", "$.resource_type_associations[0].prefix",
				"$.resource_type_associations[0].properties_target"}},
		{"unknown keys", `{"namespace":"N","propertys":{},"x":1,"self":"/","created_at":"2014"}`, nil,
			[]string{"$.created_at", "$.propertys", "$.self", "$.x"}},
		{"nameless things", `{"namespace":"N","objects":[{}],"tags":[{}],"resource_type_associations":[{}]}`,
			[]string{"$.objects[0].name", "$.resource_type_associations[0].name", "$.tags[0].name"}, nil},
		{"things of the wrong kind",
			`{"namespace":"N","objects":[1],"tags":["t"],"resource_type_associations":[null],"properties":{"p":null}}`,
			[]string{"$.objects[0]", "$.properties.p", "$.resource_type_associations[0]", "$.tags[0]"}, nil},
		{"everything twice", `{"namespace":"N","namespace":"N","properties":{"p":{"title":"T","type":"string"},"p":{"title":"T","type":"string"}},
			"objects":[{"name":"o"},{"name":"o"}],"tags":[{"name":"BigData"},{"name":"bigdata"},{"name":"Big-Data"}],
			"resource_type_associations":[{"name":"T","prefix":"a:"},{"name":"T","prefix":"b:"},{"name":"T","prefix":"a:"}]}`,
			[]string{"$.namespace", "$.objects[1].name", "$.properties.p",
				"$.resource_type_associations[2].name", "$.tags[1].name"}, nil},
		{"tags in a circle",
			`{"namespace":"N","tags":[{"name":"a","parent":"B"},{"name":"b","parent":"a"},{"name":"c","parent":"a"},{"name":"d","parent":"x"},{"name":"e","parent":"e"}]}`,
			[]string{"$.tags[0].parent", "$.tags[1].parent", "$.tags[3].parent", "$.tags[4].parent"}, nil},
		{"prefix without separator", `{"namespace":"N","resource_type_associations":[{"name":"T","prefix":"hw"}]}`, nil,
			[]string{"$.resource_type_associations[0].prefix"}},
		{"required that is not there",
			`{"namespace":"N","objects":[{"name":"o","required":["a","b","a"],"properties":{"a":{"title":"T","type":"string"}}}]}`,
			nil, []string{"$.objects[0].required[1]", "$.objects[0].required[2]"}},
		{"required that is no list",
			`{"namespace":"N","objects":[{"name":"o","required":"a"},{"name":"p","required":[1]}]}`,
			[]string{"$.objects[0].required", "$.objects[1].required[0]"}, nil},
		{"schema of a property",
			`{"namespace":"N","properties":{"cpu_info:x":{"type":"object","bogus":1}},"objects":[{"name":"o","properties":{"it's":{"type":"x"}}}]}`,
			[]string{"$.objects[0].properties['it\\'s'].type",
				"$.properties['cpu_info:x'].bogus", "$.properties['cpu_info:x'].type"},
			[]string{"$.objects[0].properties['it\\'s'].title", "$.properties['cpu_info:x'].title"}},
		{"unusable text",
			`{"namespace":"N","description":"a\u0000","properties":{"p":{"title":"T","type":"string","enum":["\udfff"]}}}`,
			[]string{"$.description", "$.properties.p.enum[0]"}, nil},
		{"more than a namespace holds", `{"namespace":"N","objects":[` + many + `],"tags":[` + many + `]}`,
			[]string{"$.objects", "$.tags"}, nil},
		{"too large", `{"namespace":"N","x":"` + strings.Repeat("x", MaxDocument) + `"}`, []string{"$"}, nil},
		{"too deep", strings.Repeat(`{"x":`, 100000) + "1" + strings.Repeat("}", 100000), []string{"$"}, nil},
	}
}

func TestParseDocumentReportsEveryProblemWithItsPath(t *testing.T) {
	t.Parallel()
	for _, c := range documentCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			document, warnings, problems := ParseDocument(c.text)
			wantPaths(t, "problems", problems, c.problems...)
			wantPaths(t, "warnings", warnings, c.warnings...)
			if len(problems) == 0 {
				checkRoundTrip(t, document)
			}
		})
	}
}

func TestParseDocumentSaysWhereTheTextStopsBeingJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\n  \"namespace\": oops}":    "is not JSON: line 2, column 16: invalid character 'o' at start of value",
		"{\"namespace\": \"a\nb\"}":    "is not JSON: line 1, column 17: invalid character '\\n' in string (expecting non-control character)",
		"{\"namespace\": \"N\"":        "is not JSON: line 1, column 18: unexpected EOF",
		"{\"ä\": 1,}":                  "is not JSON: line 1, column 8: invalid character ',' at start of value",
		"{\"namespace\":\n\"a\xc3\"}":  "is not JSON: line 2, column 3: invalid UTF-8",
		"# comment\n{\"namespace\":1}": "is not JSON: line 1, column 1: invalid character '#' at start of value",
	} {
		if _, _, problems := ParseDocument(text); len(problems) != 1 || problems[0].Message != want {
			t.Errorf("%q: %v, want %q", text, problems, want)
		}
	}
}

func FuzzParseDocument(f *testing.F) {
	f.Add("\uFEFF{\"namespace\":\"N\",\"title\":\"t\",\"objects\":{\"name\":\"o\",\"properties\":{\"p\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}}")
	f.Add(`{"namespace":"N","tags":[{"name":"a","parent":"A"}],"resource_type_associations":[{"name":"T","prefix":"a"},{"name":"T","properties_target":"x"}]}`)
	f.Add(`{"namespace":"N","properties":{"p":{"type":"integer","default":1e9,"enum":[1,1.0]},"p":null}}`)
	f.Add(`[{"namespace":"\ud800"}]`)
	for _, text := range examples(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		document, _, problems := ParseDocument(text)
		if len(problems) == 0 {
			checkRoundTrip(t, document)
		}
	})
}
