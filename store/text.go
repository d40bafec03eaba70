package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// prefixLength is how many characters of a long text a column keeps for an
// index.
const prefixLength = 64

// hashOf is 64 bits of a hash of a text: an index finds a text of any length by
// it. Two texts can have the same, so the text is compared after it.
func hashOf(text string) int64 {
	sum := sha256.Sum256([]byte(text))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// digestOf is a hash of a text that no two texts share, in hex.
func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// prefixOf is the first characters of a text, at most prefixLength.
func prefixOf(text string) string {
	count := 0
	for i := range text {
		if count == prefixLength {
			return text[:i]
		}
		count++
	}
	return text
}
