package problem

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"testing"
)

// TestEveryKindIsRead stores a problem of each kind that the source declares,
// and reads it again, as an answer is kept for retries.
func TestEveryKindIsRead(t *testing.T) {
	source, err := os.ReadFile("problem.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^\tErr\w+ += errors\.New`).FindAll(source, -1)
	if len(kinds) != len(declared) {
		t.Errorf("%d kinds are listed, %d declared", len(kinds), len(declared))
	}
	for _, kind := range kinds {
		text, err := json.Marshal(Problem{Field: "f", Message: "m", Kind: kind})
		var read Problem
		if err := errors.Join(err, json.Unmarshal(text, &read)); err != nil || !errors.Is(read.Kind, kind) {
			t.Errorf("%v is read as %+v, %v", kind, read, err)
		}
	}
}
