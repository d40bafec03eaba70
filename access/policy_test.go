package access

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/problem"
)

func TestPolicyDefaults(t *testing.T) {
	t.Parallel()
	for field, allowed := range map[string][]string{
		"viewer":             {"", RoleReader, RoleMember, RoleService, RoleAdmin},
		"namespaces":         {RoleReader, RoleMember, RoleService, RoleAdmin},
		"createResourceType": {RoleAdmin},
		"setMetadata":        {RoleMember, RoleService, RoleAdmin},
		"setCapabilities":    {RoleService, RoleAdmin},
		"setAllocations":     {RoleService, RoleAdmin},
		"auditEvents":        {RoleAdmin},
		// the store checks the role after visibility
		"updateNamespace":  {"", RoleReader, RoleMember, RoleService, RoleAdmin},
		"noSuchField":      {},
		"createCapability": {RoleAdmin},
	} {
		for _, role := range []string{"", RoleReader, RoleMember, RoleService, RoleAdmin} {
			_, err := Viewer{Roles: []string{role}}.Authorize(field)
			want := strings.Contains(" "+strings.Join(allowed, " ")+" ", " "+role+" ") && len(allowed) > 0
			if got := err == nil; got != want {
				t.Errorf("%s as %q: allowed %v, want %v (%v)", field, role, got, want, err)
			}
			if err != nil && !errors.Is(err, problem.ErrForbidden) {
				t.Errorf("%s as %q: %v is not ErrForbidden", field, role, err)
			}
		}
	}
}

func TestPolicyOverridesRulesAndFields(t *testing.T) {
	t.Parallel()
	policy, err := NewPolicy(map[string][]string{
		"placement.write": {RoleMember},
		"createTrait":     {RoleAdmin},
		"namespaces":      {"*"},
	})
	if err != nil {
		t.Fatal(err)
	}
	member := Viewer{Roles: []string{RoleMember}}.WithPolicy(policy)
	for field, want := range map[string]bool{"setAllocations": true, "createTrait": false,
		"setMetadata": true, "createResourceType": false} {
		if _, err := member.Authorize(field); (err == nil) != want {
			t.Errorf("%s as a member: %v, want allowed %v", field, err, want)
		}
	}
	nobody := Viewer{}.WithPolicy(policy)
	asking, err := nobody.Authorize("namespaces")
	if err != nil || !asking.May(RuleDefinitionsRead) {
		t.Errorf("everyone may list namespaces: %v", err)
	}
	if asking.May(RuleResourcesRead) {
		t.Error("a field's override gives away another rule")
	}
}

func TestPolicyRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	_, err := NewPolicy(map[string][]string{"placement.wirte": {RoleAdmin}, "setTags": {"owner"}})
	var invalid *problem.InvalidInput
	if !errors.As(err, &invalid) || len(invalid.Problems) != 2 {
		t.Fatalf("got %v, want a problem for each", err)
	}
}

// TestThePageOfPermissionsIsTheTable compares docs/permissions.md with the
// table of the program.
func TestThePageOfPermissionsIsTheTable(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	want.WriteString("| rule | roles | fields |\n|---|---|---|\n")
	for _, rule := range slices.Sorted(maps.Keys(rules)) {
		var fields []string
		for _, field := range slices.Sorted(maps.Keys(permissions)) {
			if permissions[field].Rule == rule {
				fields = append(fields, field)
			}
		}
		roles := strings.Join(rules[rule], ", ")
		if roles == anyone {
			roles = "everyone with a known token"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", rule, roles, strings.Join(fields, ", "))
	}
	page, err := os.ReadFile("../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), want.String()) {
		t.Errorf("docs/permissions.md does not hold the table:\n%s", want.String())
	}
}
