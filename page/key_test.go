package page_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/page"
)

// TestKeysAreUnique makes keys of random parts with the special characters of
// keys. Two keys are equal only for equal parts, and no key is a valid node id.
func TestKeysAreUnique(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"", "a", "/", ":", "%2F", "=", "é", " ", "+",
		strings.Repeat("x", 300), strings.Repeat("x", 301)}
	part := func() string {
		return alphabet[random.IntN(len(alphabet))] + alphabet[random.IntN(len(alphabet))]
	}
	made := map[string]string{}
	for range 20_000 {
		parts := make([]string, 1+random.IntN(3))
		for i := range parts {
			parts[i] = part()
		}
		key, of := page.Key("Kind", parts...), fmt.Sprintf("%q", parts)
		if before, ok := made[key]; ok && before != of {
			t.Fatalf("%s is the key of %s and of %s", key, before, of)
		}
		made[key] = of
		if node, ok := page.ParseNodeID(key); ok || len(key) > 1500 {
			t.Fatalf("%s of %s is read as %v, %v", key, of, node, ok)
		}
	}
}
