package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestCapability runs every command of capability, in forms for people and for
// programs.
func TestCapability(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		c := serve(t, database)
		c.addResources()
		c.prints("admin", "NAME PRIVATE VALUE COUNT", "capability", "list", "physical:host")
		c.prints("admin", "NAME PRIVATE VALUE COUNT\narch yes 1\ncpu_info:features yes 2",
			"capability", "list", "physical:host", "--all")
		c.prints("admin", "NAME PRIVATE\narch no", "capability", "set", "physical:host", "arch", "--public")
		c.prints("member", "NAME PRIVATE VALUE COUNT\narch no 1", "capability", "list", "physical:host", "--all")
		c.prints("member",
			"[\n{\n\"name\": \"arch\",\n\"private\": false,\n\"value\": \"x86_64\",\n\"resourceCount\": 1\n}\n]",
			"capability", "list", "physical:host", "--detail", "-o", "json")
		c.prints("admin",
			"NAME PRIVATE VALUE RESOURCE COUNT\narch no x86_64 1\ncpu_info:features yes aes 1\ncpu_info:features yes vmx 1",
			"capability", "list", "physical:host", "--all", "--detail")
		c.prints("admin", "VALUE RESOURCE COUNT\naes 1\nvmx 1", "capability", "get",
			"physical:host", "cpu_info:features")
		c.prints("member",
			"{\n\"name\": \"arch\",\n\"private\": false,\n\"values\": [\n{\n\"resourceCount\": 1,\n\"value\": \"x86_64\"\n}\n]\n}", "capability", "get", "physical:host", "arch", "-o", "json")
		c.prints("admin", "[\n{\n\"name\": \"arch\",\n\"private\": true\n}\n]", "capability", "set",
			"physical:host", "arch", "--private", "-o", "json")
		c.prints("admin", "NAME PRIVATE\ngpu yes", "capability", "create", "physical:host", "gpu")
		c.prints("admin", "NAME PRIVATE\nnic no", "capability", "create", "physical:host", "nic", "--public")
	})
}

func TestCapabilityRefused(t *testing.T) {
	t.Parallel()
	c := serve(t, storetest.SQLite(t))
	c.addResources()
	c.fails("member", "FORBIDDEN: ", command("capability get physical:host arch"))
	c.fails("member", `capability of physical:host "none" does not exist`, command("capability get physical:host none"))
	c.fails("member", `resource type "none" does not exist`, command("capability list none"))
	c.fails("member", `resource type "none" does not exist`, command("capability get none arch"))
	c.fails("member", "FORBIDDEN: ", command("capability set physical:host arch --public"))
	c.fails("admin", "NOT_FOUND: ", command("capability set physical:host none --public"))
	c.fails("admin", "ALREADY_EXISTS: ", command("capability create physical:host arch"))
	c.fails("wrong", "unknown token", command("capability list physical:host"))
	refuse(t, map[string]string{
		"capability list":                                         "<type>",
		"capability get physical:host":                            "<name>",
		"capability set physical:host arch":                       "--private",
		"capability set physical:host arch --private --public":    "--private",
		"capability create physical:host arch --private --public": "--private",
		"capability list physical:host --detail=much":             "--detail",
	})
}

// TestCapabilityWithManyValues prints all values of a capability that has more
// values than one request returns.
func TestCapabilityWithManyValues(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		c := serve(t, database)
		const count, each = 1200, 400
		var creates, values []string
		for i := range count {
			values = append(values, fmt.Sprintf("v%04d", i))
		}
		for i, part := range slices.Collect(slices.Chunk(values, each)) {
			list, err := json.Marshal(part)
			if err != nil {
				t.Fatal(err)
			}
			creates = append(creates,
				fmt.Sprintf(`c%d: createResource(input: {type: "physical:host", name: "h%d", capabilities: [{key: "many", value: %q}]}) { resource { uuid } }`, i, i, list))
		}
		request := &graphql.Request{OpName: "Add", Query: "mutation Add { " + strings.Join(creates, "\n") + " }"}
		if err := client.New(c.address, client.WithToken("admin")).
			MakeRequest(t.Context(), request, &graphql.Response{}); err != nil {
			t.Fatal(err)
		}
		c.prints("admin", "VALUE RESOURCE COUNT\n"+strings.Join(values, " 1\n")+" 1",
			"capability", "get", "physical:host", "many")
		for of, read := range map[string]func(text []byte) (int, error){
			"capability get physical:host many": func(text []byte) (int, error) {
				var shown struct{ Values []any }
				err := json.Unmarshal(text, &shown)
				return len(shown.Values), err
			},
			"capability list physical:host --all --detail": func(text []byte) (int, error) {
				var shown []any
				err := json.Unmarshal(text, &shown)
				return len(shown), err
			},
		} {
			stdout, _, err := c.run("admin", "", append(command(of), "-o", "json")...)
			if n, wrong := read([]byte(stdout)); err != nil || wrong != nil || n != count {
				t.Errorf("%s: error %v, %v, shows %d values\n%.300s", of, err, wrong, n, stdout)
			}
		}
	})
}
