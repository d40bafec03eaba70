package metadef

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/text"
)

func pointer[T any](value T) *T { return &value }

func textProperty(name string) PropertyInput {
	return PropertyInput{name, PropertyPatch{Title: to("T"), Type: to(String)}}
}

func TestNamespaceInputDefinesWhatItsFileWould(t *testing.T) {
	t.Parallel()
	document, problems := NamespaceInput{
		Name: "N😀",
		NamespacePatch: NamespacePatch{DisplayName: to("Name"), Description: to(""), Visibility: to(access.Public),
			Protected: to(true), Owner: to("p")},
		Properties: []PropertyInput{{"cores",
			PropertyPatch{Title: to("Cores"), Type: to(Integer), Default: to(text.JSON("5"))}}},
		Objects: []ObjectInput{{"o",
			ObjectPatch{Required: list("b,c"), Properties: list(textProperty("b,c"), textProperty("a"))}}},
		Tags: []TagInput{{Name: "MySQL", Parent: pointer("DATABASE")}, {Name: "Database"}},
		ResourceTypeAssociations: []DocumentAssociation{{ResourceType: "T"},
			{ResourceType: "T", Prefix: pointer("a/")}, {ResourceType: "T", PropertiesTarget: pointer("image")}},
	}.Document("input")
	wantPaths(t, "problems", problems)
	again, warnings, problems := ParseDocument(document.Text())
	wantPaths(t, "problems of the file", problems)
	wantPaths(t, "warnings of the file", warnings)
	if !reflect.DeepEqual(document, again) {
		t.Errorf("%+v differs from its file %+v", document, again)
	}
	if document.Tags[0].Parent != "Database" {
		t.Errorf("the parent is spelled %q", document.Tags[0].Parent)
	}
}

func TestNamespaceInputReportsEveryProblemWithItsPath(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 81)
	for _, c := range []struct {
		name  string
		input NamespaceInput
		want  []string
	}{
		{"only a name", NamespaceInput{Name: "N"}, nil},
		{"own fields",
			NamespaceInput{Name: "a/b", NamespacePatch: NamespacePatch{DisplayName: to(long),
				Description: to(strings.Repeat(long, 7)), Visibility: to(access.Visibility("SHARED")), Owner: to("")}},
			[]string{"input.description", "input.displayName", "input.name", "input.owner", "input.visibility"}},
		{"names", NamespaceInput{Properties: []PropertyInput{textProperty(long)},
			Objects: []ObjectInput{{Name: "o\n"}}, Tags: []TagInput{{Name: ""}},
			ResourceTypeAssociations: []DocumentAssociation{{ResourceType: long}}},
			[]string{"input.name", "input.objects[0].name", "input.properties[0].name",
				"input.resourceTypeAssociations[0].resourceType", "input.tags[0].name"}},
		{"names twice", NamespaceInput{Name: "N",
			Properties: []PropertyInput{textProperty("p"), textProperty("P"), textProperty("p")},
			Objects: []ObjectInput{{"o",
				ObjectPatch{Properties: list(textProperty("p"), textProperty("p"))}}, {Name: "o"}},
			Tags:                     []TagInput{{Name: "BigData"}, {Name: "Big-Data"}, {Name: "bigdata"}},
			ResourceTypeAssociations: []DocumentAssociation{{ResourceType: "T"}, {ResourceType: "T"}}},
			[]string{"input.objects[0].properties[1].name", "input.objects[1].name", "input.properties[2].name",
				"input.resourceTypeAssociations[1].resourceType", "input.tags[2].name"}},
		{"nested schema",
			NamespaceInput{Name: "N", Objects: []ObjectInput{{"o", ObjectPatch{Required: list("p", "q", "p"),
				Properties: list(PropertyInput{"p",
					PropertyPatch{Type: to(Integer), Enum: list[text.JSON]("1", `"2"`)}})}}}},
			[]string{"input.objects[0].properties[0].enum[1]", "input.objects[0].properties[0].title",
				"input.objects[0].required[1]", "input.objects[0].required[2]"}},
		{"tags",
			NamespaceInput{Name: "N",
				Tags: []TagInput{{Name: "a", Parent: pointer("b")}, {Name: "b", Parent: pointer("A")},
					{Name: "c", Parent: pointer("d")}, {Name: "e", Parent: pointer("")}}},
			[]string{"input.tags[0].parent", "input.tags[1].parent", "input.tags[2].parent", "input.tags[3].parent"}},
		{"associations", NamespaceInput{Name: "N", ResourceTypeAssociations: []DocumentAssociation{
			{ResourceType: "T", Prefix: pointer("hw")}, {ResourceType: "U", Prefix: pointer("")},
			{ResourceType: "V", Prefix: pointer(long + ":"), PropertiesTarget: &long},
			{ResourceType: "W", Prefix: pointer("a\n:"), PropertiesTarget: pointer("")}}},
			[]string{"input.resourceTypeAssociations[0].prefix", "input.resourceTypeAssociations[1].prefix",
				"input.resourceTypeAssociations[2].prefix",
				"input.resourceTypeAssociations[2].propertiesTarget", "input.resourceTypeAssociations[3].prefix",
				"input.resourceTypeAssociations[3].propertiesTarget"}},
		{"too much", NamespaceInput{Name: "N", Properties: make([]PropertyInput, MaxDefinitions+1)},
			[]string{"input.properties"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, problems := c.input.Document("input")
			wantPaths(t, "problems", problems, c.want...)
		})
	}
}

func TestNamespacePatchKeepsWhatIsAbsentAndClearsWhatIsNull(t *testing.T) {
	t.Parallel()
	namespace := &Document{Name: "N", DisplayName: pointer("T"), Description: pointer("d"),
		Visibility: pointer(access.Public), Protected: pointer(true), Owner: pointer("o")}
	if got, problems := (NamespaceChange{}).Apply(namespace, "input"); !reflect.DeepEqual(got, namespace) ||
		problems != nil {
		t.Errorf("an empty patch made %+v, %v", got, problems)
	}
	got, problems := NamespaceChange{NamespacePatch: NamespacePatch{DisplayName: Change[*string]{Set: true},
		Description: Change[*string]{Set: true},
		Visibility:  Change[*access.Visibility]{Set: true}, Protected: Change[*bool]{Set: true}}}.Apply(namespace,
		"input")
	wantPaths(t, "problems", problems)
	if want := (&Document{Name: "N", Visibility: pointer(access.Private), Protected: pointer(false),
		Owner: pointer("o")}); !reflect.DeepEqual(got, want) {
		t.Errorf("cleared: %+v", got)
	}
	_, problems = NamespaceChange{NewName: Change[*string]{Set: true},
		NamespacePatch: NamespacePatch{Owner: Change[*string]{Set: true},
			Visibility: to(access.Visibility("shared")), DisplayName: to(strings.Repeat("x", 81))}}.Apply(namespace,
		"input")
	wantPaths(t, "problems", problems, "input.newName", "input.owner", "input.visibility", "input.displayName")
	got, problems = NamespaceChange{NewName: to("M"), NamespacePatch: NamespacePatch{Owner: to("p")}}.Apply(namespace,
		"input")
	wantPaths(t, "problems", problems)
	if got.Name != "M" || *got.Owner != "p" || *got.DisplayName != "T" {
		t.Errorf("renamed: %+v", got)
	}
}

func TestCheckTagsTakesExistingTagsAsParents(t *testing.T) {
	t.Parallel()
	tags, problems := CheckTags([]TagInput{{Name: "MySQL", Parent: pointer("DATABASE")}}, []string{"Database"},
		"input.tags")
	wantPaths(t, "problems", problems)
	if tags[0].Parent != "Database" {
		t.Errorf("the parent is spelled %q", tags[0].Parent)
	}
	_, problems = CheckTags([]TagInput{{Name: "MySQL", Parent: pointer("Database")}}, nil, "input.tags")
	wantPaths(t, "problems", problems, "input.tags[0].parent")
}

func TestMakesTagCycleFindsEveryLoop(t *testing.T) {
	t.Parallel()
	parents := map[int64]int64{2: 1, 3: 2, 7: 8, 8: 7}
	for _, c := range []struct {
		tag, parent int64
		want        bool
	}{{1, 3, true}, {1, 1, true}, {1, 0, false}, {4, 3, false}, {3, 1, false}, {5, 7, true}} {
		if got := MakesTagCycle(parents, c.tag, c.parent); got != c.want {
			t.Errorf("tag %d under %d: %v", c.tag, c.parent, got)
		}
	}
}

// TestDescendantsOfALongChain lists the tags of a chain in the order from its end
// to its root. The number of pairs of them is 200,000,000.
func TestDescendantsOfALongChain(t *testing.T) {
	t.Parallel()
	const length = 20_000
	chain := make([]*Tag, length)
	for i := range chain {
		chain[i] = &Tag{ID: int64(i + 1), ParentID: int64(i+2) % (length + 1)}
	}
	for _, i := range []int{0, 1, length - 1} {
		if found := DescendantsOf(chain[i], chain); !slices.Equal(found, chain[:i]) {
			t.Errorf("tag %d has %d descendants, want %d", i, len(found), i)
		}
	}
}

func TestObjectChangeTakesCommasAsOrdinaryCharacters(t *testing.T) {
	t.Parallel()
	current := DocumentObject{Name: "o", Properties: []DocumentProperty{{Name: "a,b"}, {Name: "b"}}}
	_, problems := ObjectChange{ObjectPatch: ObjectPatch{Required: list("a,b", "a", "a,b")}}.Apply(current, "input")
	wantPaths(t, "problems", problems, "input.required[1]", "input.required[2]")
	problems = nil
	CheckPrefix(&problems, "input.newPrefix", "hw")
	wantPaths(t, "problems", problems, "input.newPrefix")
}
