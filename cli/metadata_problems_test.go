package cli_test

import (
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/store/storetest"
)

// TestMetadataProblems dry-runs a definition that existing metadata break,
// loads it, and lists the problems.
func TestMetadataProblems(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		c := serve(t, database)
		c.addResources()
		const heading = "RESOURCE NAME TYPE KEY VALUE RULE MESSAGE"
		const problem = `"b" is not one of the values of the enum`
		c.prints("member", "KEY VALUE USER MODIFIABLE\nmanaged yes no\npurpose b yes",
			"metadata", "set", share, "purpose=b")
		c.prints("reader", heading, "metadata", "problems")
		file := c.file("narrow.json", `{"namespace": "Narrow", "visibility": "public", "properties": {"purpose": {"title": "Purpose", "type": "string", "enum": ["a"]}},
			"resource_type_associations": [{"name": "OS::Manila::Share"}]}`)
		c.notes("admin", "would break: OS::Manila::Share share ("+share+"): purpose=b: "+problem+"\n",
			command("metadefs load --dry-run", file)...)
		c.prints("admin",
			"1 namespace: 1 created, 0 updated, 0 unchanged, 0 skipped, 0 failed; metadata of 1 resource would break definitions (dry run, nothing was changed)",
			command("metadefs load --dry-run", file)...)
		c.prints("reader", heading, "metadata", "problems")
		c.prints("admin", "1 namespace: 1 created, 0 updated, 0 unchanged, 0 skipped, 0 failed",
			command("metadefs load", file)...)
		row := strings.Join([]string{share, "share", "OS::Manila::Share", "purpose", "b", "ENUM", problem}, " ")
		c.prints("member", heading+"\n"+row, "metadata", "problems")
		c.prints("member", heading+"\n"+row,
			command("metadata problems --namespace Narrow --key purpose --rule enum --type OS::Manila::Share --project demo")...)
		c.prints("admin", heading, command("metadata problems --type physical:host")...)
		c.notes("admin", "1 resource breaks its definitions, of 2 scanned\n", "metadata", "problems")
		c.prints("member", "[\n{\n\"resource\": \""+share+
			"\",\n\"name\": \"share\",\n\"type\": \"OS::Manila::Share\",\n\"key\": \"purpose\",\n\"value\": \"b\",\n\"rule\": \"ENUM\",\n"+
			`"message": "\"b\" is not one of the values of the enum",`+
			"\n\"namespace\": \"Narrow\"\n}\n]", "metadata", "problems", "-o", "json")
		c.fails("member", "Narow", command("metadata problems --namespace Narow"))
		c.fails("member", "--rule must be one of", command("metadata problems --rule none"))
	})
}
