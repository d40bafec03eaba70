package demo

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/text"
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

// document has the parts of a definition file that these tests use.
type document struct {
	Associations []struct{ Name, Prefix string } `json:"resource_type_associations"`
	Properties   map[string]definition           `json:"properties"`
	Objects      []struct {
		Properties map[string]definition `json:"properties"`
	} `json:"objects"`
	Tags []struct{ Name string } `json:"tags"`
}

// loadDefinitions returns the built-in definitions by resource type and key,
// prefixes included, and the names of all tags.
func loadDefinitions(t *testing.T) (keys map[string]map[string]definition, tags map[string]bool) {
	t.Helper()
	keys, tags = map[string]map[string]definition{}, map[string]bool{}
	for _, file := range defaults.Definitions() {
		var d document
		if err := json.Unmarshal([]byte(file), &d); err != nil {
			t.Fatalf("%v in %.200s", err, file)
		}
		for _, tag := range d.Tags {
			tags[tag.Name] = true
		}
		groups := []map[string]definition{d.Properties}
		for _, object := range d.Objects {
			groups = append(groups, object.Properties)
		}
		for _, association := range d.Associations {
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

// satisfies reports whether each value in the string, without operators,
// satisfies the definition.
func (d definition) satisfies(written string) bool {
	values := []string{written}
	if rest, ok := strings.CutPrefix(written, "<all-in> "); ok {
		values = strings.Fields(rest)
	}
	for _, operator := range []string{"<or>", "<in>"} {
		if rest, ok := strings.CutPrefix(written, operator+" "); ok {
			values = strings.Split(rest, " "+operator+" ")
		}
	}
	return !slices.ContainsFunc(values, func(value string) bool { return !d.takes(value) })
}

// takes reports whether one value satisfies the definition.
func (d definition) takes(value string) bool {
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
	enum := slices.Concat(d.Enum, d.Items.Enum)
	return (d.Minimum == nil || number >= *d.Minimum) && (d.Maximum == nil || number <= *d.Maximum) &&
		(enum == nil || slices.Contains(enum, typed)) &&
		(d.Pattern == "" || regexp.MustCompile(d.Pattern).MatchString(value))
}

func TestMetadataBreaksItsDefinitionsOnlyOnPurpose(t *testing.T) {
	t.Parallel()
	keys, _ := loadDefinitions(t)
	defined, custom := 0, map[string]bool{}
	var violations []string
	for _, r := range Build().Resources {
		for _, item := range r.Metadata {
			d, ok := keys[r.Type][item.Key]
			if known, wrong := placement.CheckSpec(placement.ExtraSpec{Key: item.Key, Value: item.Value}); !ok &&
				r.Type == typeFlavor && known && wrong == "" {
				continue
			}
			if !ok {
				custom[item.Key] = true
				if near := text.NewSpeller(slices.Collect(maps.Keys(keys[r.Type]))).Nearest(item.Key); near != "" {
					t.Errorf("%s of %s reads like %s", item.Key, r.Name, near)
				}
				continue
			}
			defined++
			if !d.satisfies(item.Value) {
				violations = append(violations, r.Name+" "+item.Key+"="+item.Value)
			}
		}
	}
	free := []string{"__managed_at", "backup_job", "build", "cooling_zone", "grafana-dashboard",
		"kubernetes.io/pvc", "last_inspection",
		"needs_index", "runner", "team", "virus_scanner"}
	if got := slices.Sorted(maps.Keys(custom)); defined < 300 || !slices.Equal(got, free) {
		t.Errorf("%d items are defined, and keys without a definition are %q; want %q", defined, got, free)
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
