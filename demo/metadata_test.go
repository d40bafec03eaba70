package demo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

type definition struct {
	Type    string   `json:"type"`
	Enum    []any    `json:"enum"`
	Pattern string   `json:"pattern"`
	Minimum *float64 `json:"minimum"`
	Maximum *float64 `json:"maximum"`
	Items   struct {
		Enum []any `json:"enum"`
	} `json:"items"`
}

// loadDefinitions reads the product's definition files: for each type its keys,
// prefixes included, and all tags.
func loadDefinitions(t *testing.T) (keys map[string]map[string]definition, tags map[string]bool) {
	t.Helper()
	files, err := filepath.Glob("../defaults/definitions/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no definition files: %v", err)
	}
	keys, tags = map[string]map[string]definition{}, map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		type properties map[string]definition
		var document struct {
			Associations []struct{ Name, Prefix string } `json:"resource_type_associations"`
			Properties   properties                      `json:"properties"`
			Objects      []struct {
				Properties properties `json:"properties"`
			} `json:"objects"`
			Tags []struct{ Name string } `json:"tags"`
		}
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, tag := range document.Tags {
			tags[tag.Name] = true
		}
		groups := []properties{document.Properties}
		for _, object := range document.Objects {
			groups = append(groups, object.Properties)
		}
		for _, association := range document.Associations {
			if keys[association.Name] == nil {
				keys[association.Name] = map[string]definition{}
			}
			for _, group := range groups {
				for name, property := range group {
					keys[association.Name][association.Prefix+name] = property
				}
			}
		}
	}
	return keys, tags
}

// satisfies tells whether each value named in the text, operators aside, fits
// the definition.
func (d definition) satisfies(text string) bool {
	values := []string{text}
	for _, operator := range []string{"<or>", "<in>", "<all-in>"} {
		rest, found := strings.CutPrefix(text, operator+" ")
		switch {
		case found && operator == "<all-in>":
			values = strings.Fields(rest)
		case found:
			values = strings.Split(rest, " "+operator+" ")
		}
	}
	enum := slices.Concat(d.Enum, d.Items.Enum)
	for _, value := range values {
		var typed any = value
		number, err := strconv.ParseFloat(value, 64)
		switch d.Type {
		case "integer", "number":
			if err != nil || d.Type == "integer" && strings.ContainsAny(value, ".eE") {
				return false
			}
			typed = number
		case "boolean":
			if value != "true" && value != "false" {
				return false
			}
		}
		if d.Minimum != nil && number < *d.Minimum || d.Maximum != nil && number > *d.Maximum {
			return false
		}
		if enum != nil && !slices.Contains(enum, typed) || d.Pattern != "" && !regexp.MustCompile(d.Pattern).MatchString(value) {
			return false
		}
	}
	return true
}

func TestMetadataBreaksItsDefinitionsOnlyOnPurpose(t *testing.T) {
	t.Parallel()
	keys, _ := loadDefinitions(t)
	defined, custom := 0, 0
	var violations []string
	for _, r := range Build().Resources {
		for _, item := range r.Metadata {
			d, ok := keys[r.Type][item.Key]
			if !ok {
				custom++
				continue
			}
			defined++
			if !d.satisfies(item.Value) {
				violations = append(violations, r.Name+" "+item.Key+"="+item.Value)
			}
		}
	}
	if defined < 300 || custom < 30 {
		t.Errorf("%d items are defined and %d are custom; want most defined and some custom", defined, custom)
	}
	want := []string{
		"cart-cache monthly_budget=plenty", "compute-05 lifecycle=broken", "compute-08 rack_unit=six",
		"desktop-1 needed_until=next week", "front-3 web_nginx_https_port=443443",
		"invoices cost_center=finance", "m1.xlarge hw:cpu_sockets=two",
		"notebook-home volume_filesystem=zfs", "product-images share_performance_tier=platinum",
		"research-directory directory_port=kpasswd",
		"shop-front-end hw_disk_bus=nvme", "variants protection:keep_days=45",
	}
	slices.Sort(violations)
	if !slices.Equal(violations, want) {
		t.Errorf("violations are\n%s\nwant\n%s", strings.Join(violations, "\n"), strings.Join(want, "\n"))
	}
}

func TestTagsAreOfTheCatalogAndFree(t *testing.T) {
	t.Parallel()
	_, known := loadDefinitions(t)
	catalogued, free := 0, []string{}
	for _, r := range Build().Resources {
		for _, tag := range r.Tags {
			if known[tag] {
				catalogued++
			} else {
				free = append(free, tag)
			}
		}
	}
	slices.Sort(free)
	if want := []string{"golden", "needs-attention", "to-be-migrated"}; catalogued < 50 || !slices.Equal(free, want) {
		t.Errorf("%d tags of the catalog; free ones are %v, want %v", catalogued, free, want)
	}
}
