package sqldb

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"unicode/utf8"
)

// prefixLength is the number of characters of a long string that an indexed
// column keeps.
const prefixLength = 64

// HashOf returns 64 bits of a hash of a string, for an index on strings of any
// length. Hashes can collide, so queries compare the string, too.
func HashOf(text string) int64 {
	sum := sha256.Sum256([]byte(text))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// DigestOf returns the SHA-256 hash of a string in hex.
func DigestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// PrefixOf returns the first characters of a string, at most prefixLength.
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

// IsWholePrefix reports whether the prefix column alone identifies a string: it
// is shorter than prefixLength, so no longer string has the same prefix.
func IsWholePrefix(text string) bool { return utf8.RuneCountInString(text) < prefixLength }

// TextOf converts a string or bytes from a driver to a string, for a column
// unknown to ent. It returns "" for any other value.
func TextOf(v any) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case string:
		return v
	}
	return ""
}

// TextOrNil returns nil for the empty string.
func TextOrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// TextList parses a JSON array of strings. It is empty for anything else.
func TextList(column string) []string {
	list := []string{}
	if err := json.Unmarshal([]byte(column), &list); err != nil {
		return []string{}
	}
	return list
}
