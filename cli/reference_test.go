package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/cli"
)

// generatedBelow is the line of docs/cli.md above the generated reference.
const generatedBelow = "<!-- What follows is made by: make generate -->\n"

// TestReference compares the reference of commands in docs/cli.md with the
// grammar.
func TestReference(t *testing.T) {
	const page = "../docs/cli.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, reference, ok := strings.Cut(string(text), generatedBelow)
	if !ok {
		t.Fatalf("%s has no line %s", page, generatedBelow)
	}
	want, err := cli.Reference()
	if err != nil || reference != want {
		t.Errorf("%s is not that of the commands: make generate; %v", page, err)
	}
}
