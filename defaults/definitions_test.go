package defaults_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/metadef"
)

func documents(t *testing.T) []*metadef.Document {
	t.Helper()
	var all []*metadef.Document
	for _, text := range defaults.Definitions() {
		document, warnings, problems := metadef.ParseDocument(text)
		if len(warnings) > 0 || len(problems) > 0 {
			t.Fatalf("a definition file has warnings %v and problems %v\n%.200s", warnings, problems, text)
		}
		all = append(all, document)
	}
	return all
}

// properties returns all properties of a document, including the properties of
// its objects.
func properties(d *metadef.Document) []metadef.DocumentProperty {
	all := slices.Clone(d.Properties)
	for _, object := range d.Objects {
		all = append(all, object.Properties...)
	}
	return all
}

func TestDefinitionsAreValidWithoutAWarning(t *testing.T) {
	t.Parallel()
	all := documents(t)
	if len(all) < 10 {
		t.Errorf("%d definition files, want at least 10", len(all))
	}
	seen := map[string]bool{}
	for _, d := range all {
		if !strings.HasPrefix(d.Name, "Cadastre::") || seen[d.Name] {
			t.Errorf("namespace %q is foreign or appears twice", d.Name)
		}
		seen[d.Name] = true
		if d.DisplayName == nil || d.Description == nil || d.Owner != nil {
			t.Errorf("%s: want a display name, a description and no owner", d.Name)
		}
		if d.Visibility == nil || *d.Visibility != access.Public || d.Protected == nil || !*d.Protected {
			t.Errorf("%s is not public or not protected", d.Name)
		}
		for _, p := range properties(d) {
			if p.Title == "" || p.Description == nil {
				t.Errorf("%s: %s has no title or no description", d.Name, p.Name)
			}
		}
	}
}

func TestDefinitionsApplyToBuiltInTypes(t *testing.T) {
	t.Parallel()
	types := map[string]bool{}
	for _, resourceType := range defaults.ResourceTypes() {
		types[resourceType.Name] = true
	}
	for _, d := range documents(t) {
		if len(d.Associations) == 0 {
			t.Errorf("%s applies to nothing", d.Name)
		}
		for _, a := range d.Associations {
			if !types[a.ResourceType] {
				t.Errorf("%s is associated with %s, which is not built in", d.Name, a.ResourceType)
			}
		}
	}
}

// Where two definitions share a key on one type, a dialog cannot tell which one
// is meant.
func TestNoKeyIsDefinedTwiceForOneType(t *testing.T) {
	t.Parallel()
	type key struct{ resourceType, name string }
	definedBy := map[key]string{}
	for _, d := range documents(t) {
		for _, a := range d.Associations {
			for _, p := range properties(d) {
				k := key{a.ResourceType, p.Name}
				if a.Prefix != nil {
					k.name = *a.Prefix + p.Name
				}
				if other, ok := definedBy[k]; ok {
					t.Errorf("%s of %s is defined by %s and by %s", k.name, k.resourceType, other, d.Name)
				}
				definedBy[k] = d.Name
			}
		}
	}
}

func TestDefinitionsShowEveryFeature(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	show := func(feature string, present bool) { shown[feature] = shown[feature] || present }
	for _, d := range documents(t) {
		for _, p := range properties(d) {
			kind := string(p.Type)
			show("type "+kind, true)
			show("default of "+kind, p.Default != nil)
			show("enum of "+kind, p.Enum != nil || p.ItemEnum != nil)
			show("pattern", p.Pattern != nil)
			show("operators", p.Operators != nil)
			show("readonly", p.ReadOnly != nil && *p.ReadOnly)
		}
		for _, o := range d.Objects {
			show("required", len(o.Required) > 0)
		}
		for _, a := range d.Associations {
			show("target", a.PropertiesTarget != nil)
			show("association with "+a.ResourceType, true)
		}
		for _, tag := range d.Tags {
			show("parent of a tag", tag.Parent != "")
		}
	}
	want := []string{"pattern", "operators", "readonly", "required", "target", "parent of a tag",
		"enum of STRING", "enum of INTEGER", "enum of NUMBER", "enum of ARRAY"}
	for _, kind := range []metadef.PropertyType{metadef.String, metadef.Integer,
		metadef.Number, metadef.Boolean, metadef.Array} {
		want = append(want, "type "+string(kind), "default of "+string(kind))
	}
	for _, resourceType := range defaults.ResourceTypes() {
		want = append(want, "association with "+resourceType.Name)
	}
	for _, feature := range want {
		if !shown[feature] {
			t.Errorf("no definition shows %s", feature)
		}
	}
}
