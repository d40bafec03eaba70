package main

import (
	"os"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/cli"
)

// TestReference compares the reference of commands in docs/cli.md with the
// grammar.
func TestReference(t *testing.T) {
	text, err := os.ReadFile("../../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, found, ok := strings.Cut(string(text), mark)
	if !ok {
		t.Fatalf("%s has no line %s", page, mark)
	}
	if found != referenceOf(cli.Commands()) {
		t.Errorf("%s is not that of the commands: make generate", page)
	}
}
