package sqldb

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"unicode/utf8"
)

// prefixLength is how many characters of a long text a column keeps for an
// index.
const prefixLength = 64

// HashOf returns 64 bits of a hash of a text: an index finds a text of any
// length by it. Two texts can have the same, so the text is compared after it.
func HashOf(text string) int64 {
	sum := sha256.Sum256([]byte(text))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// DigestOf returns a hash of a text that no two texts share, in hex.
func DigestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// PrefixOf returns the first characters of a text, at most prefixLength.
func PrefixOf(text string) string {
	count := 0
	for i := range text {
		if count == prefixLength {
			return text[:i]
		}
		count++
	}
	return text
}

// IsWholePrefix reports whether a text is its own prefix and that of no longer
// text: what is equal to it is found by the column that keeps prefixes.
func IsWholePrefix(text string) bool { return utf8.RuneCountInString(text) < prefixLength }

// TextOf returns a text that a driver read from a column which ent does not
// know.
func TextOf(v any) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case string:
		return v
	}
	return ""
}

// TextOrNil returns nil for the empty text.
func TextOrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// TextList reads a column that holds a JSON array of texts.
func TextList(column string) []string {
	list := []string{}
	if err := json.Unmarshal([]byte(column), &list); err != nil {
		return []string{}
	}
	return list
}
