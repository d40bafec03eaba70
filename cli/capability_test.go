package cli_test

import (
	"testing"

	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestCapability runs every command of capability, for people and for programs.
func TestCapability(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		c := serve(t, database)
		c.addResources()
		c.prints("admin", "NAME PRIVATE VALUES", "capability", "list", "physical:host")
		c.prints("admin", "NAME PRIVATE VALUES\narch yes 1\ncpu_info:features yes 2", "capability", "list", "physical:host", "--all")
		c.prints("admin", "NAME PRIVATE\narch no", "capability", "set", "physical:host", "arch", "--public")
		c.prints("member", "NAME PRIVATE VALUES\narch no 1", "capability", "list", "physical:host", "--all")
		const arch = "[\n{\n\"name\": \"arch\",\n\"private\": false,\n\"valueCount\": 1,\n\"values\": [\n{\n\"value\": \"x86_64\",\n\"resourceCount\": 1\n}\n]\n}\n]"
		c.prints("member", arch, "capability", "list", "physical:host", "--detail", "-o", "json")
		c.prints("admin", "NAME PRIVATE VALUE RESOURCES\narch no x86_64 1\ncpu_info:features yes aes 1\ncpu_info:features yes vmx 1",
			"capability", "list", "physical:host", "--all", "--detail")
		c.prints("admin", "VALUE RESOURCES\naes 1\nvmx 1", "capability", "get", "physical:host", "cpu_info:features")
		c.prints("member", arch, "capability", "get", "physical:host", "arch", "-o", "json")
		c.prints("admin", "[\n{\n\"name\": \"arch\",\n\"private\": true\n}\n]", "capability", "set", "physical:host", "arch", "--private", "-o", "json")
		c.prints("admin", "NAME PRIVATE\ngpu yes", "capability", "create", "physical:host", "gpu")
		c.prints("admin", "NAME PRIVATE\nnic no", "capability", "create", "physical:host", "nic", "--public")
	})
}

func TestCapabilityRefused(t *testing.T) {
	t.Parallel()
	c := serve(t, storetest.SQLite(t))
	c.addResources()
	c.fails("member", "FORBIDDEN: ", command("capability get physical:host arch"))
	c.fails("member", `capability "none" of the resource type physical:host does not exist`, command("capability get physical:host none"))
	c.fails("member", `resource type "none" does not exist`, command("capability list none"))
	c.fails("member", `resource type "none" does not exist`, command("capability get none arch"))
	c.fails("member", "FORBIDDEN: ", command("capability set physical:host arch --public"))
	c.fails("admin", "NOT_FOUND: ", command("capability set physical:host none --public"))
	c.fails("admin", "ALREADY_EXISTS: ", command("capability create physical:host arch"))
	c.fails("wrong", "unknown token", command("capability list physical:host"))
	refuse(t, map[string]string{
		"capability":                        "expected one of",
		"capability list":                   "<type>",
		"capability get physical:host":      "<name>",
		"capability set physical:host arch": "--private",
		"capability set physical:host arch --private --public":    "--private",
		"capability create physical:host arch --private --public": "--private",
		"capability list physical:host --detail=much":             "--detail",
	})
}
