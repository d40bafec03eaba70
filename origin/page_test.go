package origin_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/origin"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
)

// TestValuesOfSyncsHaveTheirOwnLimit checks pages with metadata at and beyond the
// limits.
func TestValuesOfSyncsHaveTheirOwnLimit(t *testing.T) {
	t.Parallel()
	check := func(key, value string) string {
		page := origin.Page{Origin: "o", Region: "r", Kind: "k", Pass: uuid.NewString(),
			ResourceType: "T", Resources: []origin.Thing{
				{ForeignID: "a", Name: "a", ProjectID: "p", Visibility: access.Public,
					Metadata: []metadef.KeyValue{{Key: "k", Value: "v"}, {Key: key, Value: value}}}}}
		var problems problem.Problems
		page.Check(&problems)
		var found []string
		for _, one := range problems {
			found = append(found, strings.TrimPrefix(one.Field, "input.resources[0].metadata[1].")+" "+one.Message)
		}
		return strings.Join(found, ", ")
	}
	for name, of := range map[string]struct{ key, value, want string }{
		"empty":       {"a", "", ""},
		"at most":     {"a", strings.Repeat("ä", 65535), ""},
		"more":        {"a", strings.Repeat("ä", 65536), "value must have at most 65535 characters, has 65536"},
		"no key":      {"", "v", "key must not be empty"},
		"a long key":  {strings.Repeat("k", 256), "v", "key must have at most 255 characters, has 256"},
		"a key twice": {"k", "v", "key is a duplicate"},
		"not UTF-8":   {"a", "\xff", "value is not valid UTF-8"},
	} {
		if got := check(of.key, of.value); got != of.want {
			t.Errorf("%s: %q, want %q", name, got, of.want)
		}
	}
}

// TestASyncTakesBackWhatNoOperatorWrote plans pages over items that equal the other
// system's and that an earlier sync wrote as an operator.
func TestASyncTakesBackWhatNoOperatorWrote(t *testing.T) {
	t.Parallel()
	var thing origin.Thing
	var current []*resource.MetadataItem
	for _, key := range []string{"capabilities:gpu", "vcpus"} {
		thing.Metadata = append(thing.Metadata, metadef.KeyValue{Key: key, Value: "1"})
		current = append(current, &resource.MetadataItem{Key: key, Value: "1", ByOperator: true})
	}
	for resourceType, want := range map[string]bool{
		"OS::Glance::Image": true, "OS::Nova::Flavor": false, "OS::Cinder::VolumeType": false,
	} {
		plan := thing.Plan(current, nil, origin.Page{ResourceType: resourceType}.IsByMembers())
		isTaken := len(plan.Set) == 1 && plan.Set[0].Key == "capabilities:gpu" && plan.Set[0].ByMembers
		if isTaken != want || !want && !plan.Empty() {
			t.Errorf("%s: a sync writes %v", resourceType, plan)
		}
	}
}
