package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
)

// completed returns the candidates for the last word of a command line.
func completed(t *testing.T, words ...string) []string {
	t.Helper()
	var out strings.Builder
	if err := cli.Run(t.Context(), cli.Program{}, append([]string{"__complete"}, words...), &out, &out); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// TestCompletion completes commands, flags, members of enums and names from a
// server.
func TestCompletion(t *testing.T) {
	address := demotest.Serve(t)
	t.Setenv("CADASTRE_SERVER", address)
	t.Setenv("CADASTRE_TOKEN", demo.AdminToken)
	for _, of := range []struct{ line, want string }{
		{"resource-t", "resource-type"},
		{"resource sh", "show"},
		{"metadata li", "list"},
		{"nothing here ", ""},
		{"completion b", "bash"},
		{`completion ""`, "bash\nzsh\nfish\npowershell"}, // as PowerShell passes an empty word
		{"resource list --any", "--any-tag"},
		{"namespace set X --no-p", "--no-protected"},
		{"resource list -o js", "json"},
		{"resource list --output=ya", "--output=yaml"},
		{"resource list --type OS::Nova::F", "OS::Nova::Flavor"},
		{"resource list --type=OS::Nova::F", "--type=OS::Nova::Flavor"},
		{"resource list --type OS::Nova::Flavor --type physical:h", "physical:host"},
		{"namespace show Cadastre::Virtual", "Cadastre::VirtualCPUTopology"},
		{"property list --limit 3 Cadastre::Wa", "Cadastre::Watchdog"},
		{"capability show physical:host cpu_info:m", "cpu_info:model"},
		{"resource show ci-cache-p", "ci-cache-path-1\nci-cache-path-2"},
		{"resource show ebf728f5-3", "ebf728f5-376a-5438-8ef0-c3a299ba60eb"},
		{"resource delete home ci-cache-to-10.40.0.16", "ci-cache-to-10.40.0.16"},
		{"provider show compute-07:n", "compute-07:numa0\ncompute-07:numa1"},
		{"candidates --required HW_CPU_X86_SG", "HW_CPU_X86_SGX"},
		{"inventory show compute-01 MEMORY", "MEMORY_MB"},
		{"resource list --limit ", ""},
		{"resource show ci-c --server 127.0.0.1:1", ""},
		{"resource show --server 127.0.0.1:1 ci-c", ""},
		{"resource show --token wrong ci-c", ""},
		{"context use x", ""},
	} {
		got := completed(t, strings.Split(of.line, " ")...)
		if strings.Join(got, "\n") != of.want {
			t.Errorf("%s goes on with %q, want %q", of.line, got, of.want)
		}
	}
	if nouns := completed(t, ""); !slices.Contains(nouns, "candidates") ||
		slices.Contains(nouns, "__complete") || len(nouns) < 25 {
		t.Errorf("the nouns are %q", nouns)
	}
}

// TestShells completes lines in the shells on this machine.
func TestShells(t *testing.T) {
	address := demotest.Serve(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	text := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asProgram, program)
	if err := os.WriteFile(filepath.Join(folder, "cadastre"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	t.Setenv("HOME", folder)
	t.Setenv("CADASTRE_SERVER", address)
	t.Setenv("CADASTRE_TOKEN", demo.AdminToken)
	for name, of := range map[string]struct {
		script string
		wants  map[string]string
	}{
		"bash": {`source <(cadastre completion bash); COMP_LINE='%s'; COMP_POINT=${#COMP_LINE}; _cadastre; printf '%%s\n' "${COMPREPLY[@]}"`, map[string]string{
			"cadastre resource list --type OS::Nova::F": "Flavor", // after the colon, because bash breaks words there
			"cadastre resource list --type=OS::Nova::F": "Flavor",
			"cadastre provider show compute-07:n":       "numa0\nnuma1",
		}},
		"zsh": {`autoload -U compinit; compinit -u -D; compadd() { shift; print -rl -- "${(P@)1}" }; source <(cadastre completion zsh); line='%s'; words=("${(@s: :)line}"); CURRENT=${#words}; _cadastre`, map[string]string{
			"cadastre resource list --type OS::Nova::F": "OS::Nova::Flavor",
		}},
		"fish": {`source (cadastre completion fish | psub); complete -C '%s' | string replace -r '\t.*' ''; true`,
			map[string]string{
				"cadastre resource list --type OS::Nova::F": "OS::Nova::Flavor",
			}},
	} {
		shell, err := exec.LookPath(name)
		if err != nil {
			t.Logf("there is no %s here", name)
			continue
		}
		for line, want := range of.wants {
			out, err := exec.CommandContext(t.Context(), shell, "-c", fmt.Sprintf(of.script, line)).CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != want {
				t.Errorf("%s: %s goes on with %q, want %q; %v", name, line, got, want, err)
			}
		}
	}
}
