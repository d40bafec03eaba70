package page_test

import (
	"encoding/base64"
	"math/rand/v2"
	"testing"

	"github.com/cadastre-dev/cadastre/page"
)

const someUUID = "0198f000-1111-7222-8333-444455556666"

// TestIDsAreReadAsTheyAreWritten parses ids of every form, and refuses other
// strings.
func TestIDsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, id := range []page.NodeID{
		{Kind: page.KindNamespace, UUID: someUUID}, {Kind: page.KindPropertyDefinition, UUID: someUUID, Part: someUUID},
		{Kind: page.KindMetadataItem, UUID: someUUID, Part: "hw:cpu:é"}, {Kind: "Another", UUID: someUUID},
	} {
		if read, ok := page.ParseNodeID(id.String()); !ok || read != id {
			t.Errorf("%v is read as %v, %v", id, read, ok)
		}
	}
	for _, text := range []string{
		"", "Namespace", "Namespace:", "Namespace:1", ":" + someUUID,
		"Namespace:" + someUUID + ":", "Namespace:" + someUUID + ":x",
		"Namespace:0198F000-1111-7222-8333-444455556666", "Namespace:0198f0001111722283334444" + "55556666",
		"MetadataItem:" + someUUID, "MetadataItem:" + someUUID + ":", "MetadataItem:" + someUUID + ":a\x00",
		"MetadataItem:" + someUUID + ":\xff",
		"PropertyDefinition:" + someUUID + ":1",
	} {
		if id, ok := page.ParseNodeID(base64.RawURLEncoding.EncodeToString([]byte(text))); ok {
			t.Errorf("%q is read as %v", text, id)
		}
	}
}

// TestRandomBytesAreNoIDs parses random strings. If one is an id, String must
// return the same spelling.
func TestRandomBytesAreNoIDs(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	whole := []byte("MetadataItem:" + someUUID + ":key")
	for range 20_000 {
		text := append([]byte{}, whole[:random.IntN(len(whole)+1)]...)
		for range random.IntN(4) {
			text = append(text, byte(random.IntN(256)))
		}
		encoded := base64.RawURLEncoding.EncodeToString(text)
		if id, ok := page.ParseNodeID(encoded); ok && id.String() != encoded {
			t.Fatalf("%q is read as %v", text, id)
		}
	}
}
