package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/demo/demotest"
	"github.com/cadastre-dev/cadastre/mcp"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// viewers are one viewer of each role, by their tokens. None is of the project
// research or web-shop.
var viewers = map[string]access.Viewer{
	"admin":   {UserID: "ada", ProjectID: "operations", Roles: []string{access.RoleAdmin}},
	"service": {UserID: "agent", ProjectID: "services", Roles: []string{access.RoleService}},
	"member":  {UserID: "mel", ProjectID: "demo", Roles: []string{access.RoleMember, access.RoleReader}},
	"reader":  {UserID: "rae", ProjectID: "demo", Roles: []string{access.RoleReader}},
	"foreign": {UserID: "fay", ProjectID: "elsewhere", Roles: []string{access.RoleMember, access.RoleReader}},
	"nobody":  {UserID: "ned", ProjectID: "demo"},
}

// hidden returns what members of other projects must not see of the demo: the
// names, uuids and descriptions of private resources of the projects research
// and web-shop, and private capabilities.
func hidden() (words []string) {
	world := demo.Build()
	private := map[string]bool{}
	for _, of := range world.Capabilities {
		private[of.Name] = of.Private
	}
	var providers []string
	visible := map[string]bool{"": true}
	for _, of := range world.Providers {
		providers = append(providers, of.Name)
	}
	for _, of := range world.Resources {
		for _, capability := range of.Capabilities {
			if private[capability.Key] {
				words = append(words, capability.Value)
			}
		}
		if of.Visibility == access.Public || of.ProjectID == "demo" {
			visible[of.Name], visible[of.Description] = true, true
			continue
		}
		words = append(words, of.UUID, of.Description)
		isWord := slices.Contains([]string{"cache", "search"}, of.Name) // also words of answers
		if !isWord && !slices.Contains(providers, of.Name) {
			words = append(words, of.Name)
		}
	}
	return slices.DeleteFunc(words, func(word string) bool { return visible[word] })
}

// more are calls that reach as much as a caller can.
var more = []question{
	{Tool: "find_resources", Arguments: json.RawMessage(`{"limit": 50}`)},
	{Tool: "find_resources", Arguments: json.RawMessage(`{"search": "orders", "limit": 50}`)},
	{Tool: "find_resources", Arguments: json.RawMessage(`{"project": "web-shop", "limit": 50}`)},
	{Tool: "explain_resources", Arguments: json.RawMessage(`{"project": "web-shop", "name_contains": "orders"}`)},
	{Tool: "show", Arguments: json.RawMessage(`{"name": "compute-08"}`)},
	{Tool: "show", Arguments: json.RawMessage(`{"name": "compute-10:numa0"}`)},
	{Tool: "metadata_drift", Arguments: json.RawMessage(`{"limit": 50}`)},
	{Tool: "recent_changes", Arguments: json.RawMessage(`{"limit": 50}`)},
	{Tool: "capacity", Arguments: json.RawMessage(`{"group_by": "ROOT", "limit": 50}`)},
	{Tool: "claim",
		Arguments: json.RawMessage(`{"consumer": "00000000-0000-4000-8000-000000000001", "project": "demo", "user": "mel", "allocations": {"00000000-0000-4000-8000-000000000002": {"VCPU": 1}}}`)},
}

// TestNoToolShowsWhatIsHidden calls every tool as every viewer. Nothing that
// members of other projects own may be in an answer, unless it is in the
// arguments, and no answer may have an internal error.
func TestNoToolShowsWhatIsHidden(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := demotest.Open(t, url)
		t.Cleanup(func() { _ = s.Close() })
		if err := demo.Fill(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		address := serve(t, s, viewers, web.ReadWriteTools)
		words := hidden()
		for token, viewer := range viewers {
			session, shown, called := overHTTP(t, address, token), map[string]bool{}, map[string]bool{}
			for _, q := range slices.Concat(questions(t), more) {
				called[q.Tool] = true
				answer, _ := call(t, session, q.Tool, q.Arguments)
				if strings.Contains(answer, "INTERNAL") {
					t.Errorf("%s as %s %s: %s", q.Tool, token, q.Arguments, answer)
				}
				for _, word := range words {
					if strings.Contains(answer, word) && !strings.Contains(string(q.Arguments), word) {
						shown[word] = true
						if !viewer.IsAdmin() && !viewer.IsService() {
							t.Errorf("%s as %s %s shows %q:\n%s", q.Tool, token, q.Arguments, word, answer)
						}
					}
				}
			}
			if len(called) != len(mcp.Tools(true)) {
				t.Errorf("%d tools were called", len(called))
			}
			if viewer.IsAdmin() && len(shown) < 20 {
				t.Errorf("the administrator sees only %d of %d hidden things", len(shown), len(words))
			}
		}
	})
}

// TestClaim claims over both transports. Only administrators and services may.
func TestClaim(t *testing.T) {
	t.Parallel()
	s := demotest.Open(t, storetest.SQLite(t))
	t.Cleanup(func() { _ = s.Close() })
	if err := demo.Fill(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	address := serve(t, s, viewers, web.ReadWriteTools)
	provider := ""
	for _, of := range demo.Build().Providers {
		if of.Name == "compute-23" {
			provider = of.UUID
		}
	}
	arguments := func(n, amount int) map[string]any {
		return map[string]any{"consumer": storetest.UUID(n), "project": "demo", "user": "mel", "type": "INSTANCE",
			"allocations": map[string]any{strings.ToUpper(provider): map[string]any{"VCPU": amount}}}
	}
	check := func(got string, failed, fails bool, want string) {
		t.Helper()
		if failed != fails || !strings.Contains(got, want) {
			t.Errorf("failed %v:\n%s\nwant %q", failed, got, want)
		}
	}
	admin := overHTTP(t, address, "admin")
	before, _ := call(t, admin, "recent_changes", map[string]any{"limit": 1})
	_, cursor, _ := strings.Cut(before, "Follow with after ")
	cursor, _, _ = strings.Cut(cursor, "\n")
	answer, failed := call(t, admin, "claim", arguments(1, 2))
	check(answer, failed, false, "VCPU 2 on compute-23")
	twice := arguments(9, 1)
	twice["allocations"].(map[string]any)[provider] = map[string]any{"MEMORY_MB": 1}
	answer, failed = call(t, admin, "claim", twice)
	check(answer, failed, true, "allocations: must have each provider once")
	answer, failed = call(t, admin, "check_claim",
		json.RawMessage(`{"allocations":{"`+provider+`":{"VCPU":1},"`+provider+`":{"VCPU":2}}}`))
	check(answer, failed, true, "distinct members")
	answer, failed = call(t, overStdio(t, address, "service", "--mcp-write"), "claim", arguments(2, 3))
	check(answer, failed, false, "VCPU 3 on compute-23")
	answer, failed = call(t, admin, "claim", arguments(3, 1_000_000))
	check(answer, failed, true, "CAPACITY_EXCEEDED")
	answer, failed = call(t, overHTTP(t, address, "member"), "claim", arguments(4, 1))
	check(answer, failed, true, "FORBIDDEN")
	answer, failed = call(t, overStdio(t, address, "admin"), "claim", arguments(5, 1))
	check(answer, failed, true, "claim")
	answer, failed = call(t, admin, "show", map[string]any{"uuid": storetest.UUID(2)})
	check(answer, failed, false, "uses VCPU 3 of compute-23")
	answer, failed = call(t, admin, "recent_changes",
		map[string]any{"after": strings.Trim(cursor, `"`), "kinds": []string{"CONSUMER"}})
	check(answer, failed, false, "CONSUMER "+storetest.UUID(1)+" CREATED")
}

// TestLimitsOfRequests sends requests that /mcp refuses before a tool runs.
func TestLimitsOfRequests(t *testing.T) {
	t.Parallel()
	s := demotest.Open(t, storetest.SQLite(t))
	t.Cleanup(func() { _ = s.Close() })
	limits := web.DefaultLimits()
	limits.PrincipalPoints, limits.BodyBytes = 5, 1<<15
	address := serve(t, s, viewers, web.ReadingTools, limits)
	send := func(method, token, body string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, address+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(response.Body)
		if _ = response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode == http.StatusBadRequest && !strings.Contains(string(answer), `"BAD_REQUEST"`) {
			t.Errorf("%s is answered with %s", body, answer)
		}
		return response.StatusCode
	}
	const list = `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`
	for _, of := range []struct {
		method, token, body string
		want                int
	}{
		{http.MethodPost, "admin", list, http.StatusOK},
		{http.MethodPost, "unknown", list, http.StatusUnauthorized},
		{http.MethodGet, "admin", "", http.StatusMethodNotAllowed},
		{http.MethodPost, "admin", " [" + list + "," + list + "]", http.StatusBadRequest},
		{http.MethodPost, "admin", "null", http.StatusBadRequest},
		{http.MethodPost, "admin", `{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}`, http.StatusBadRequest},
		{http.MethodPost, "admin", `{"jsonrpc": "2.0", "id": 1e400, "method": "tools/list"}`, http.StatusBadRequest},
		{http.MethodPost, "admin", strings.Repeat(" ", 1<<16) + list, http.StatusRequestEntityTooLarge},
	} {
		if got := send(of.method, of.token, of.body); got != of.want {
			t.Errorf("%s as %s of %d bytes: %d, want %d", of.method, of.token, len(of.body), got, of.want)
		}
	}
	// A call takes a full bucket, which four seconds fill. Without the one point of
	// a request, the request is refused before the call.
	session, answer := overHTTP(t, address, "member"), ""
	isRefused := func() bool {
		return strings.Contains(answer, "RATE_LIMITED") ||
			strings.Contains(answer, http.StatusText(http.StatusTooManyRequests))
	}
	for try := 0; try < 20 && !isRefused(); try++ {
		answer, _ = call(t, session, "metadata_drift", nil)
	}
	if !isRefused() {
		t.Errorf("a viewer without points gets\n%s", answer)
	}
	without := serve(t, s, viewers, web.NoTools)
	if response, err := http.Get(without + "/mcp"); err != nil || response.StatusCode != http.StatusNotFound {
		t.Errorf("a server without tools: %v %v", response, err)
	}
}

// TestArguments checks that errors of arguments name them.
func TestArguments(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	for _, of := range []struct{ tool, arguments, want string }{
		{"capacity", `[]`, "not a JSON object"},
		{"capacity", `{"resource_clases": ["VCPU"]}`,
			"resource_clases: unknown argument; the arguments are resource_classes, group_by"},
		{"capacity", `{"limit": 51}`, "limit: must be an integer, 1 to 50"},
		{"capacity", `{"limit": 1.5}`, "limit: must be an integer"},
		{"capacity", `{"resource_classes": "VCPU"}`, "resource_classes: must be a list of at most 32 strings"},
		{"capacity", `{"resource_classes": ["` + long + `"]}`, "resource_classes: must be"},
		{"find_resources", `{"name": "` + long + `"}`, "name: must be a string of at most 255 characters"},
		{"find_resources", `{"metadata": {"a": 1}}`, "metadata: a must be a string"},
		{"find_resources", `{"tags": [1]}`, "tags: must be a list of at most 16 strings"},
		{"find_candidates", `{"resources": {"VCPU": "4"}}`, "resources: VCPU must be an integer, 1 to 2147483647"},
		{"check_metadata", `{"resource_type": "x"}`, "metadata: is required"},
		{"check_claim", `{"allocations": {}}`, "allocations: must be an object from 1 to 8 uuids"},
		{"check_claim", `{"allocations": {"p": {"VCPU": -1}}}`, "allocations: p: VCPU must be an integer"},
	} {
		tools := mcp.Tools(false)
		tool := tools[slices.IndexFunc(tools, func(tool *mcp.Tool) bool { return tool.Name == of.tool })]
		text, ok := tool.Call(t.Context(), nil, json.RawMessage(of.arguments))
		if ok || !strings.Contains(text, of.want) {
			t.Errorf("%s %.100s: %q, want %q", of.tool, of.arguments, text, of.want)
		}
	}
}

// TestPageListsTheTools compares the table of docs/agents.md with the tools.
func TestPageListsTheTools(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, tool := range mcp.Tools(true) {
		fmt.Fprintf(&table, "| `%s` | %s |\n", tool.Name, tool.Description)
	}
	if !strings.Contains(string(page), "| tool | answers |\n|---|---|\n"+table.String()+"\n") {
		t.Errorf("docs/agents.md has another table than\n%s", table.String())
	}
	if all := mcp.Tools(true); len(all) > 12 || len(mcp.Tools(false)) != len(all)-1 {
		t.Errorf("there are %d tools", len(all))
	}
}
