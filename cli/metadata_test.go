package cli_test

import (
	"testing"

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

const (
	share = "00000000-0000-4000-8000-000000000001"
	host  = "00000000-0000-4000-8000-000000000002"
)

// addResources creates a share of the project demo, with a service-owned item,
// and a host with capabilities.
func (c console) addResources() {
	c.t.Helper()
	request := &graphql.Request{OpName: "AddResources", Query: `mutation AddResources {
		share: createResource(input: { type: "OS::Manila::Share", name: "share", uuid: "` + share + `", projectId: "demo", serviceMetadata: [{ key: "managed", value: "yes" }] }) { resource { uuid } }
		host: createResource(input: { type: "physical:host", name: "host", uuid: "` + host + `", capabilities: [{ key: "arch", value: "x86_64" }, { key: "cpu_info:features", value: "[\"aes\", \"vmx\"]" }] }) { resource { uuid } }
	}`}
	if err := client.New(c.address, client.WithToken("admin")).
		MakeRequest(c.t.Context(), request, &graphql.Response{}); err != nil {
		c.t.Fatal(err)
	}
}

// TestMetadata runs every command of metadata, in forms for people and for
// programs.
func TestMetadata(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		c := serve(t, database)
		c.addResources()
		const heading = "KEY VALUE USER MODIFIABLE"
		c.prints("member", heading+"\nmanaged yes no\npurpose a=b, c yes", "metadata", "set", share, "purpose=a=b, c")
		c.prints("reader", heading+"\npurpose a=b, c yes", "metadata", "get", share, "purpose")
		c.fails("reader", `metadata item "none" does not exist`,
			command("metadata get", share, "purpose", "none"), "purpose")
		c.prints("reader", "[\n{\n\"key\": \"purpose\",\n\"value\": \"a=b, c\",\n\"userModifiable\": true\n}\n]",
			"metadata", "get", share, "purpose", "-o", "json")
		c.fails("reader", `metadata item "none" does not exist`,
			command("metadata get", share, "none", "-o", "json"), "[]")
		const managed = "[\n{\n\"key\": \"managed\",\n\"userModifiable\": false,\n\"value\": \"yes\"\n}\n]"
		c.prints("member", "{\n\"metadata\": "+managed+",\n\"retained\": "+managed+"\n}", "metadata",
			"replace", share, "--yes", "-o", "json")
		c.notes("member", "kept, because only administrators and services change them: managed\n",
			"metadata", "replace", share, "c=3")
		c.prints("member", heading+"\na 1 yes\nb 2 yes\nmanaged yes no", "metadata", "replace", share, "a=1", "b=2")
		c.prints("member", heading+"\nmanaged yes no", "metadata", "unset", share, "a", "b", "--yes")
		c.prints("admin", "{\n\"metadata\": [],\n\"retained\": []\n}", "metadata", "replace", share,
			"--include-service-owned", "--yes", "--output", "json")
		c.prints("admin", heading, "metadata", "get", share)
	})
}

func TestMetadataRefused(t *testing.T) {
	t.Parallel()
	c := serve(t, storetest.SQLite(t))
	c.addResources()
	c.fails("reader", "FORBIDDEN: ", command("metadata set", share, "a=1"))
	c.fails("member", "FORBIDDEN: ", command("metadata replace --yes", share, "--include-service-owned"))
	c.fails("member", "NOT_FOUND: ", command("metadata unset --yes", share, "none"))
	c.fails("member", "BAD_USER_INPUT: <items> \"a=\" value: must not be empty", command("metadata set", share, "a="))
	c.fails("member", `resource "`+host+`" does not exist`, command("metadata get", host))
	c.fails("member", `resource "no-uuid" does not exist: it is neither a uuid nor a name`,
		command("metadata get no-uuid"))
	c.fails("wrong", c.address+": missing, expired or unknown token; set --token", command("metadata get", share))
	refuse(t, map[string]string{
		"metadata get":                        "<resource>",
		"metadata get " + share + " -o xml":   `--output must be one of table, json, yaml, csv, value, is "xml"`,
		"metadata get " + share + " --keys a": "unknown flag --keys",
		"metadata set " + share:               "<items>",
		"metadata set " + share + " no-value": `"no-value" is not of the form KEY=VALUE`,
		"metadata replace " + share + " a":    `"a" is not of the form KEY=VALUE`,
		"metadata unset " + share:             "<keys>",
		"metadata set " + share + " =value":   `"=value" has no key`,
		"metadata forget " + share:            "unexpected argument forget",
	})
}
