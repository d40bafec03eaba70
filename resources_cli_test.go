package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestMetadataAndCapabilitiesFromTheCommandLine runs every command of both groups
// against a server, as people and as programs.
func TestMetadataAndCapabilitiesFromTheCommandLine(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, testMetadataAndCapabilities)
}

func testMetadataAndCapabilities(t *testing.T, url string) {
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(tokens, []byte("tokens:\n  - {token: admin, user: ada, project: operations, roles: [admin]}\n"+
		"  - {token: member, user: mel, project: demo, roles: [member]}\n  - {token: reader, user: rae, project: demo, roles: [reader]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address, _, _ := boot(t, "--database", url, "--tokens", tokens, "--capability-discovery", "everyone")
	const share, host = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
	_, answer := ask(t, address, "admin", fmt.Sprintf(`mutation {
		share: createResource(input: { type: "OS::Manila::Share", name: "share", uuid: %q, projectId: "demo", serviceMetadata: [{ key: "managed", value: "yes" }] }) { resource { uuid } }
		host: createResource(input: { type: "physical:host", name: "host", uuid: %q, capabilities: [{ key: "arch", value: "x86_64" }, { key: "cpu_info:features", value: "[\"aes\", \"vmx\"]" }] }) { resource { uuid } }
	}`, share, host))
	if strings.Contains(answer, "errors") {
		t.Fatal(answer)
	}
	// as runs a command with a token: it ends without error and says what is
	// wanted, column by column, or it fails with the text wanted.
	as := func(token, want string, arguments ...string) {
		t.Helper()
		var out bytes.Buffer
		err := run(t.Context(), append(arguments, "--server", address, "--token", token), &out, &out)
		said := regexp.MustCompile(`[ \t]+`).ReplaceAllString(strings.TrimSpace(out.String()), " ")
		wantErr, fails := strings.CutPrefix(want, "error: ")
		switch {
		case fails && (err == nil || !strings.Contains(err.Error(), wantErr)):
			t.Errorf("%q: got the error %v, want %q", arguments, err, wantErr)
		case !fails && (err != nil || regexp.MustCompile(` \n|\n `).ReplaceAllString(said, "\n") != want):
			t.Errorf("%q: error %v, says\n%s\nwant\n%s", arguments, err, said, want)
		}
	}

	as("member", "KEY VALUE USERS MAY CHANGE\nmanaged yes no\npurpose a=b, c yes", "metadata", "set", share, "purpose=a=b, c")
	as("reader", "KEY VALUE USERS MAY CHANGE\npurpose a=b, c yes", "metadata", "get", share, "purpose", "none")
	as("reader", "[\n{\n\"key\": \"purpose\",\n\"value\": \"a=b, c\",\n\"userModifiable\": true\n}\n]", "metadata", "get", share, "purpose", "-o", "json")
	as("reader", "[]", "metadata", "get", share, "none", "-o", "json")
	as("member", "{\n\"metadata\": [\n{\n\"key\": \"managed\",\n\"value\": \"yes\",\n\"userModifiable\": false\n}\n],\n\"retained\": [\n{\n\"key\": \"managed\",\n\"value\": \"yes\",\n\"userModifiable\": false\n}\n]\n}",
		"metadata", "replace", share, "-o", "json")
	as("member", "kept, because only administrators and services change them: managed\nKEY VALUE USERS MAY CHANGE\na 1 yes\nb 2 yes\nmanaged yes no", "metadata", "replace", share, "a=1", "b=2")
	as("member", "KEY VALUE USERS MAY CHANGE\nmanaged yes no", "metadata", "unset", share, "a", "b")
	as("admin", "{\n\"metadata\": [],\n\"retained\": []\n}", "metadata", "replace", share, "--include-service-owned", "--output", "json")
	as("admin", "KEY VALUE USERS MAY CHANGE", "metadata", "get", share)
	as("reader", "error: FORBIDDEN: ", "metadata", "set", share, "a=1")
	as("member", "error: FORBIDDEN: ", "metadata", "replace", share, "--include-service-owned")
	as("member", "error: NOT_FOUND: ", "metadata", "unset", share, "none")
	as("member", "error: input.items[0].value: must not be empty", "metadata", "set", share, "a=")
	as("member", "error: there is no resource "+host, "metadata", "get", host)
	as("member", "error: not a UUID", "metadata", "get", "no-uuid")
	as("member", `error: "a" is not of the form KEY=VALUE`, "metadata", "replace", share, "a")
	as("member", `error: --output must be one of "table","json"`, "metadata", "get", share, "-o", "yaml")
	as("member", "error: unknown flag --keys", "metadata", "get", share, "--keys", "a")
	as("wrong", "error: does not know the token", "metadata", "get", share)

	as("admin", "NAME PRIVATE VALUES", "capability", "list", "physical:host")
	as("admin", "NAME PRIVATE VALUES\narch yes 1\ncpu_info:features yes 2", "capability", "list", "physical:host", "--all")
	as("admin", "NAME PRIVATE\narch no", "capability", "set", "physical:host", "arch", "--public")
	as("member", "NAME PRIVATE VALUES\narch no 1", "capability", "list", "physical:host", "--all")
	as("member", "[\n{\n\"name\": \"arch\",\n\"private\": false,\n\"valueCount\": 1,\n\"values\": [\n{\n\"value\": \"x86_64\",\n\"resourceCount\": 1\n}\n]\n}\n]",
		"capability", "list", "physical:host", "--detail", "-o", "json")
	as("admin", "NAME PRIVATE VALUE RESOURCES\narch no x86_64 1\ncpu_info:features yes aes 1\ncpu_info:features yes vmx 1", "capability", "list", "physical:host", "--all", "--detail")
	as("admin", "VALUE RESOURCES\naes 1\nvmx 1", "capability", "get", "physical:host", "cpu_info:features")
	as("member", "[\n{\n\"name\": \"arch\",\n\"private\": false,\n\"valueCount\": 1,\n\"values\": [\n{\n\"value\": \"x86_64\",\n\"resourceCount\": 1\n}\n]\n}\n]",
		"capability", "get", "physical:host", "arch", "-o", "json")
	as("admin", "[\n{\n\"name\": \"arch\",\n\"private\": true\n}\n]", "capability", "set", "physical:host", "arch", "--private", "-o", "json")
	as("admin", "NAME PRIVATE\ngpu yes", "capability", "create", "physical:host", "gpu")
	as("admin", "NAME PRIVATE\nnic no", "capability", "create", "physical:host", "nic", "--public")
	as("member", "error: FORBIDDEN: ", "capability", "get", "physical:host", "arch")
	as("member", `error: the type physical:host has no capability "none"`, "capability", "get", "physical:host", "none")
	as("member", `error: there is no resource type "none"`, "capability", "list", "none")
	as("member", "error: FORBIDDEN: ", "capability", "set", "physical:host", "arch", "--public")
	as("admin", "error: NOT_FOUND: ", "capability", "set", "physical:host", "none", "--public")
	as("admin", "error: ALREADY_EXISTS: ", "capability", "create", "physical:host", "gpu")
	as("admin", "error: --private", "capability", "set", "physical:host", "arch")
	as("admin", "error: --private", "capability", "set", "physical:host", "arch", "--private", "--public")
	as("admin", "error: expected", "capability", "get", "physical:host")
}
