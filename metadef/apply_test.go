package metadef

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/text"
)

// applyDocuments applies documents to one resource type, in the form in which
// they come from the store, with consecutive ids for the definitions.
func applyDocuments(documents []*Document, resourceType string) []AppliedNamespace {
	var applied []AppliedNamespace
	next := int64(1)
	for i, document := range documents {
		namespace := &Namespace{ID: int64(i + 1), Name: document.Name,
			Title: text.OrEmpty(document.DisplayName), Description: document.Description}
		var properties []*PropertyDefinition
		var objects []*ObjectDefinition
		add := func(list []DocumentProperty, object int64) {
			for _, p := range list {
				properties = append(properties,
					&PropertyDefinition{ID: next, NamespaceID: namespace.ID, ObjectID: object,
						Name: p.Name, BaseName: p.Name, PropertySchema: p.PropertySchema})
				next++
			}
		}
		add(document.Properties, 0)
		for _, object := range document.Objects {
			id := next
			next++
			objects = append(objects,
				&ObjectDefinition{ID: id, NamespaceID: namespace.ID, Name: object.Name, Required: object.Required})
			add(object.Properties, id)
		}
		for j, a := range document.Associations {
			if a.ResourceType == resourceType {
				association := &ResourceTypeAssociation{UUID: fmt.Sprint(i, j), NamespaceID: namespace.ID,
					Prefix: a.Prefix, PropertiesTarget: a.PropertiesTarget}
				applied = append(applied, Apply(namespace, association, properties, objects))
			}
		}
	}
	return applied
}

// realApplied returns the reference system's definition files applied to one
// resource type.
func realApplied(t testing.TB, resourceType string) []AppliedNamespace {
	t.Helper()
	var documents []*Document
	texts := realDocuments(t)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		document, _, problems := ParseDocument(texts[name])
		if len(problems) > 0 {
			t.Fatalf("%s: %v", name, problems)
		}
		documents = append(documents, document)
	}
	slices.SortFunc(documents, func(a, b *Document) int { return cmp.Compare(a.Name, b.Name) })
	return applyDocuments(documents, resourceType)
}

func definitionsOf(applied []AppliedNamespace) []*PropertyDefinition {
	var all []*PropertyDefinition
	for _, a := range applied {
		all = append(all, a.Definitions()...)
	}
	return all
}

func TestPrefixedDoesNotDoubleAPrefix(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ prefix, name, effective string }{
		{"hw:", "cpu_sockets", "hw:cpu_sockets"},
		{"hw_", "hw_a", "hw_a"},
		{"hw_", "hw_hw_a", "hw_hw_a"},
		{"hw_", "HW_a", "hw_HW_a"},
		{"hw_", "hw_", "hw_"},
		{"", "a", "a"},
	} {
		if got := NameThrough(c.prefix, c.name); got != c.effective {
			t.Errorf("NameThrough(%q, %q) = %q", c.prefix, c.name, got)
		}
	}
}

func TestApplyPrefixesPropertiesObjectsAndRequired(t *testing.T) {
	t.Parallel()
	document, _, problems := ParseDocument(`{"namespace":"N","resource_type_associations":[{"name":"T","prefix":"hw:"},{"name":"T","properties_target":"x"}],
		"properties":{"p":{"title":"P","type":"string"},"hw:q":{"title":"Q","type":"string"}},
		"objects":[{"name":"o","required":["r"],"properties":{"r":{"title":"R","type":"string"},"s":{"title":"S","type":"string"}}}]}`)
	wantPaths(t, "problems", problems)
	applied := applyDocuments([]*Document{document}, "T")
	if len(applied) != 2 {
		t.Fatalf("applied %d times", len(applied))
	}
	names := func(a AppliedNamespace) string {
		var out []string
		for _, d := range a.Definitions() {
			mark := ""
			if d.Required {
				mark = "!"
			}
			out = append(out, d.Name+mark)
		}
		return strings.Join(append(out, a.Objects[0].Required...), " ")
	}
	if got := names(applied[0]); got != "hw:p hw:q hw:r! hw:s hw:r" {
		t.Errorf("with the prefix: %s", got)
	}
	if got := names(applied[1]); got != "p hw:q r! s r" {
		t.Errorf("without: %s", got)
	}
	first, second := applied[0].Properties[0], applied[1].Properties[0]
	if first.NodeID() == second.NodeID() || first.BaseName != "p" || second.BaseName != "p" {
		t.Errorf("two views of one property: %+v and %+v", first, second)
	}
}

func TestNoteConflictsFindsSharedNamesForOneTarget(t *testing.T) {
	t.Parallel()
	parse := func(text string) *Document {
		document, _, problems := ParseDocument(text)
		wantPaths(t, "problems", problems)
		return document
	}
	documents := []*Document{
		parse(`{"namespace":"A","resource_type_associations":[{"name":"T","prefix":"hw_"}],"properties":{"a":{"title":"A","type":"string"},"hw_a":{"title":"A","type":"string"},"b":{"title":"B","type":"string"}}}`),
		parse(`{"namespace":"B","resource_type_associations":[{"name":"T"},{"name":"T","prefix":"hw_"}],"properties":{"hw_b":{"title":"B","type":"string"}}}`),
		parse(`{"namespace":"C","resource_type_associations":[{"name":"T","properties_target":"x"}],"properties":{"hw_b":{"title":"B","type":"string"}}}`),
	}
	applied := applyDocuments(documents, "T")
	NoteConflicts(applied)
	var got []string
	for _, a := range applied {
		for _, c := range a.Conflicts {
			text := a.Namespace.Name + " " + c.Name + ":"
			for _, d := range c.Definitions {
				text += " " + d.BaseName
			}
			got = append(got, text)
		}
	}
	want := []string{"A hw_a: a hw_a", "A hw_b: b hw_b", "B hw_b: b hw_b", "B hw_b: b hw_b"}
	if !slices.Equal(got, want) {
		t.Errorf("conflicts %q, want %q", got, want)
	}
}

func TestRealFilesApplyToImagesAsCounted(t *testing.T) {
	t.Parallel()
	applied := realApplied(t, "OS::Glance::Image")
	NoteConflicts(applied)
	keys := map[string]bool{}
	for _, d := range definitionsOf(applied) {
		keys[d.Name] = true
	}
	if len(applied) != 21 || len(keys) != 106 || !keys["hw_cpu_sockets"] {
		t.Errorf("%d associations, %d keys", len(applied), len(keys))
	}
	reporting := map[string][]string{}
	for _, a := range applied {
		for _, c := range a.Conflicts {
			reporting[c.Name] = append(reporting[c.Name], a.Namespace.Name)
		}
	}
	if got := reporting["hw_vif_model"]; !slices.Equal(got,
		[]string{"OS::Compute::LibvirtImage", "OS::Compute::VMware"}) {
		t.Errorf("hw_vif_model is reported by %q (of %v)", got, reporting)
	}
}

func TestMatchingKeepsWhatTheSearchFinds(t *testing.T) {
	t.Parallel()
	document, _, _ := ParseDocument(`{"namespace":"N","display_name":"Storage","resource_type_associations":[{"name":"T"}],
		"properties":{"p":{"title":"Größe","type":"string"},"q":{"title":"Q","type":"string"}},
		"objects":[{"name":"Speed","properties":{"r":{"title":"R","type":"string"}}},{"name":"o","properties":{"speed":{"title":"S","type":"string"},"t":{"title":"T","type":"string"}}}]}`)
	applied := applyDocuments([]*Document{document}, "T")[0]
	for search, want := range map[string]string{"": "p q r speed t", "STORAGE": "p q r speed t", "GRÖSSE": "",
		"größE": "p", "speed": "r speed t", "nothing": ""} {
		found, ok := applied.Matching(search)
		var names []string
		for _, d := range found.Definitions() {
			names = append(names, d.Name)
		}
		if got := strings.Join(names, " "); got != want || ok != (want != "") {
			t.Errorf("%q finds %q (%v), want %q", search, got, ok, want)
		}
	}
	if len(applied.Objects) != 2 || len(applied.Objects[1].Properties) != 2 {
		t.Error("the search changed what it searched")
	}
}
