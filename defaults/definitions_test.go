package defaults

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

type document struct {
	Namespace    string                `json:"namespace"`
	DisplayName  string                `json:"display_name"`
	Description  string                `json:"description"`
	Visibility   string                `json:"visibility"`
	Protected    bool                  `json:"protected"`
	Associations []association         `json:"resource_type_associations"`
	Properties   map[string]definition `json:"properties"`
	Objects      []object              `json:"objects"`
	Tags         []tag                 `json:"tags"`
}

type association struct {
	Name   string `json:"name"`
	Prefix string `json:"prefix"`
	Target string `json:"properties_target"`
}

type object struct {
	Name        string                `json:"name"`
	Description string                `json:"description"`
	Required    []string              `json:"required"`
	Properties  map[string]definition `json:"properties"`
}

type tag struct {
	Name   string `json:"name"`
	Parent string `json:"parent"`
}

type definition struct {
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Type        string   `json:"type"`
	Default     any      `json:"default"`
	Enum        []any    `json:"enum"`
	Minimum     *float64 `json:"minimum"`
	Maximum     *float64 `json:"maximum"`
	MinLength   *int     `json:"minLength"`
	MaxLength   *int     `json:"maxLength"`
	Pattern     *string  `json:"pattern"`
	MinItems    *int     `json:"minItems"`
	MaxItems    *int     `json:"maxItems"`
	UniqueItems bool     `json:"uniqueItems"`
	ReadOnly    bool     `json:"readonly"`
	Operators   []string `json:"operators"`
	Items       *struct {
		Type string `json:"type"`
		Enum []any  `json:"enum"`
	} `json:"items"`
}

func documents(t *testing.T) []document {
	t.Helper()
	var all []document
	for _, text := range Definitions() {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		decoder.UseNumber()
		var d document
		if err := decoder.Decode(&d); err != nil {
			t.Fatalf("a definition file does not decode: %v\n%.200s", err, text)
		}
		all = append(all, d)
	}
	return all
}

func TestDefinitionsAreWellFormedDocuments(t *testing.T) {
	t.Parallel()
	types := map[string]bool{}
	for _, resourceType := range ResourceTypes() {
		types[resourceType.Name] = true
	}
	seen := map[string]bool{}
	all := documents(t)
	if len(all) < 10 {
		t.Errorf("%d definition files, want at least 10", len(all))
	}
	for _, d := range all {
		if !strings.HasPrefix(d.Namespace, "Cadastre::") || seen[d.Namespace] {
			t.Errorf("namespace %q is foreign or appears twice", d.Namespace)
		}
		seen[d.Namespace] = true
		if d.Visibility != "public" || !d.Protected {
			t.Errorf("%s: visibility %q, protected %v; want public and true", d.Namespace, d.Visibility, d.Protected)
		}
		checkName(t, d.Namespace, d.Namespace)
		checkName(t, d.Namespace, d.DisplayName)
		if n := utf8.RuneCountInString(d.Description); n == 0 || n > 500 {
			t.Errorf("%s: a description of %d characters", d.Namespace, n)
		}
		if len(d.Associations) == 0 {
			t.Errorf("%s applies to nothing", d.Namespace)
		}
		for _, a := range d.Associations {
			if !types[a.Name] {
				t.Errorf("%s is associated with %s, which is not built in", d.Namespace, a.Name)
			}
			if a.Prefix != "" && !strings.ContainsAny(a.Prefix[len(a.Prefix)-1:], ":_.-/") {
				t.Errorf("%s: prefix %q ends in no separator", d.Namespace, a.Prefix)
			}
		}
		for name, property := range d.Properties {
			checkDefinition(t, d.Namespace, name, property)
		}
		for _, o := range d.Objects {
			checkName(t, d.Namespace, o.Name)
			for name, property := range o.Properties {
				checkDefinition(t, d.Namespace+" "+o.Name, name, property)
			}
			for _, required := range o.Required {
				if _, ok := o.Properties[required]; !ok {
					t.Errorf("%s %s requires %q and does not define it", d.Namespace, o.Name, required)
				}
			}
		}
	}
}

func TestTagsAreUniqueAndParentsComeFirst(t *testing.T) {
	t.Parallel()
	for _, d := range documents(t) {
		seen := map[string]bool{}
		for _, tag := range d.Tags {
			checkName(t, d.Namespace, tag.Name)
			if seen[strings.ToLower(tag.Name)] {
				t.Errorf("%s: tag %q twice", d.Namespace, tag.Name)
			}
			if tag.Parent != "" && !seen[strings.ToLower(tag.Parent)] {
				t.Errorf("%s: tag %q comes before its parent %q", d.Namespace, tag.Name, tag.Parent)
			}
			seen[strings.ToLower(tag.Name)] = true
		}
	}
}

// Where two definitions share a key on one type, a dialog cannot tell which one is meant.
func TestNoKeyIsDefinedTwiceForOneType(t *testing.T) {
	t.Parallel()
	owner := map[string]string{}
	for _, d := range documents(t) {
		var names []string
		for name := range d.Properties {
			names = append(names, name)
		}
		for _, o := range d.Objects {
			for name := range o.Properties {
				names = append(names, name)
			}
		}
		for _, a := range d.Associations {
			for _, name := range names {
				key := fmt.Sprintf("%s %s %s%s", a.Name, a.Target, a.Prefix, name)
				if other, ok := owner[key]; ok {
					t.Errorf("%s is defined by %s and by %s", key, other, d.Namespace)
				}
				owner[key] = d.Namespace
			}
		}
	}
}

func TestDefinitionsUseEveryFeature(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	note := func(p definition) {
		used["type "+p.Type] = true
		used["default of "+p.Type] = used["default of "+p.Type] || p.Default != nil
		used["enum of "+p.Type] = used["enum of "+p.Type] || p.Enum != nil
		used["pattern"] = used["pattern"] || p.Pattern != nil
		used["operators"] = used["operators"] || p.Operators != nil
		used["readonly"] = used["readonly"] || p.ReadOnly
	}
	for _, d := range documents(t) {
		for _, p := range d.Properties {
			note(p)
		}
		for _, o := range d.Objects {
			used["required"] = used["required"] || len(o.Required) > 0
			for _, p := range o.Properties {
				note(p)
			}
		}
		for _, a := range d.Associations {
			used["target"] = used["target"] || a.Target != ""
			used["type "+a.Name] = true
		}
		for _, tag := range d.Tags {
			used["parent"] = used["parent"] || tag.Parent != ""
		}
	}
	want := []string{"pattern", "operators", "readonly", "required", "target", "parent", "enum of integer", "enum of number"}
	for _, kind := range []string{"string", "integer", "number", "boolean", "array"} {
		want = append(want, "type "+kind, "default of "+kind)
	}
	for _, resourceType := range ResourceTypes() {
		want = append(want, "type "+resourceType.Name)
	}
	for _, feature := range want {
		if !used[feature] {
			t.Errorf("no definition uses %s", feature)
		}
	}
}

func checkName(t *testing.T, where, name string) {
	t.Helper()
	if n := utf8.RuneCountInString(name); n == 0 || n > 80 || strings.Contains(name, "/") {
		t.Errorf("%s: %q is no name", where, name)
	}
}

func checkDefinition(t *testing.T, where, name string, p definition) {
	t.Helper()
	where += " " + name
	checkName(t, where, name)
	if p.Title == "" || p.Description == "" {
		t.Errorf("%s has no title or no description", where)
	}
	if p.Minimum != nil && p.Maximum != nil && *p.Minimum > *p.Maximum {
		t.Errorf("%s: minimum over maximum", where)
	}
	if p.MinLength != nil && p.MaxLength != nil && *p.MinLength > *p.MaxLength {
		t.Errorf("%s: minLength over maxLength", where)
	}
	if p.Pattern != nil {
		if _, err := regexp.Compile(*p.Pattern); err != nil {
			t.Errorf("%s: %v", where, err)
			return
		}
	}
	if (p.Type == "array") != (p.Items != nil) {
		t.Errorf("%s: items belong to arrays, and every array has them", where)
		return
	}
	if p.Items == nil {
		checkMembers(t, where, p.Type, p.Enum)
		if p.Default != nil {
			checkValue(t, where, p, p.Default)
		}
		return
	}
	checkMembers(t, where, p.Items.Type, p.Items.Enum)
	if p.Default == nil {
		return
	}
	list, ok := p.Default.([]any)
	if !ok {
		t.Errorf("%s: the default of an array is %T", where, p.Default)
	}
	for _, member := range list {
		if !slices.Contains(p.Items.Enum, member) {
			t.Errorf("%s: default member %v is not in the enum", where, member)
		}
	}
}

func checkMembers(t *testing.T, where, kind string, members []any) {
	t.Helper()
	for i, member := range members {
		if !isOfType(kind, member) || slices.Contains(members[:i], member) {
			t.Errorf("%s: enum member %v is not of type %s, or comes twice", where, member, kind)
		}
	}
}

func checkValue(t *testing.T, where string, p definition, value any) {
	t.Helper()
	if !isOfType(p.Type, value) || (p.Enum != nil && !slices.Contains(p.Enum, value)) {
		t.Errorf("%s: default %v is not of type %s, or not in the enum", where, value, p.Type)
		return
	}
	switch v := value.(type) {
	case json.Number:
		number, _ := v.Float64()
		if (p.Minimum != nil && number < *p.Minimum) || (p.Maximum != nil && number > *p.Maximum) {
			t.Errorf("%s: default %v is out of range", where, v)
		}
	case string:
		n := utf8.RuneCountInString(v)
		if (p.MinLength != nil && n < *p.MinLength) || (p.MaxLength != nil && n > *p.MaxLength) {
			t.Errorf("%s: default %q is too short or too long", where, v)
		}
		if p.Pattern != nil && !regexp.MustCompile(*p.Pattern).MatchString(v) {
			t.Errorf("%s: default %q does not match %s", where, v, *p.Pattern)
		}
	}
}

func isOfType(kind string, value any) bool {
	switch v := value.(type) {
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case json.Number:
		return kind == "number" || kind == "integer" && !strings.ContainsAny(v.String(), ".eE")
	}
	return false
}
