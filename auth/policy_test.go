package auth_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/auth"
)

func TestReadPolicy(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct{ text, problem string }{
		"empty":        {"", ""},
		"comments":     {"# none yet\n---\n# none\n", ""},
		"override":     {"rules:\n  placement.write: [member]\n  createTrait: [admin]\n", ""},
		"two of them":  {"rules: {}\n---\nrules: {placement.read: [admin]}\n", "more than one YAML document"},
		"unknown rule": {"rules:\n  placement.wirte: [member]\n", "placement.wirte"},
		"unknown role": {"rules:\n  createTrait: [boss]\n", "boss"},
		"unknown key":  {"roles: {}\n", "roles"},
		"no YAML":      {"rules: [", "policy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(path, []byte(of.text), 0o600); err != nil {
				t.Fatal(err)
			}
			policy, err := auth.ReadPolicy(path)
			switch {
			case of.problem == "" && err != nil:
				t.Fatal(err)
			case of.problem != "":
				if err == nil || !strings.Contains(err.Error(), of.problem) || !strings.Contains(err.Error(), path) {
					t.Fatalf("got %v, want the file and %q named", err, of.problem)
				}
				return
			}
			member := access.Viewer{Roles: []string{access.RoleMember}}.WithPolicy(policy)
			if got, want := member.May(access.RulePlacementWrite), name == "override"; got != want {
				t.Errorf("a member may write placement: %v, want %v", got, want)
			}
		})
	}
}
