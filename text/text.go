// Package text checks and compares incoming strings: case folding, length
// limits, near misses, decimals, and JSON without rounding.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cadastre-dev/cadastre/problem"
)

// MaxName is the maximum number of characters in the names of namespaces,
// properties, objects, tags and types, and in prefixes and targets.
const MaxName = 80

// Fold returns the key for case-insensitive comparison of tag names and
// searches. It does not use the database, so all databases get the same keys.
// It replaces each code point by the lower case of the lowest of its simple
// case variants (Unicode simple case folding), so it never changes the number
// of code points.
func Fold(text string) string {
	return strings.Map(foldRune, text)
}

// SearchKey returns the key in which a search looks for a folded substring: the
// strings of an object, folded and joined by line breaks.
func SearchKey(texts ...string) string { return Fold(strings.Join(texts, "\n")) }

// ContainsFolded reports whether text contains folded, ignoring case. The
// argument folded must be a result of Fold.
func ContainsFolded(text, folded string) bool {
	if !isASCII(text) {
		return strings.Contains(Fold(text), folded)
	}
	for begin := 0; begin+len(folded) <= len(text); begin++ {
		if hasFoldedPrefix(text[begin:], folded) {
			return true
		}
	}
	return false
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// hasFoldedPrefix reports whether an ASCII string begins with a folded one,
// which must not be longer.
func hasFoldedPrefix(text, folded string) bool {
	for i := range len(folded) {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != folded[i] {
			return false
		}
	}
	return true
}

func foldRune(r rune) rune {
	lowest := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		lowest = min(lowest, other)
	}
	return unicode.ToLower(lowest)
}

// Length returns the length of a string in code points, the unit of the limits
// of Check and of similar functions.
func Length(text string) int { return utf8.RuneCountInString(text) }

// Clip returns at most the first maxBytes bytes of a string, without a partial
// character, and three dots in place of the rest.
func Clip(text string, maxBytes int) string {
	if len(text) > maxBytes {
		return strings.ToValidUTF8(text[:maxBytes], "") + "..."
	}
	return text
}

// OrEmpty returns the string, or "" for nil.
func OrEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// CheckOptional is Check for a string that may be nil.
func CheckOptional(problems *problem.Problems, path string, text *string, minLength, maxLength int) {
	if text != nil {
		Check(problems, path, *text, minLength, maxLength)
	}
}

// Check adds a problem for a string that is not valid UTF-8, contains U+0000,
// or does not have minLength to maxLength code points. It adds only the first.
func Check(problems *problem.Problems, field, text string, minLength, maxLength int) {
	switch {
	case !utf8.ValidString(text):
		problems.Add(field, "is not valid UTF-8")
	case strings.ContainsRune(text, 0):
		problems.Add(field, "contains U+0000")
	case Length(text) < minLength && minLength == 1:
		problems.Add(field, "must not be empty")
	case Length(text) < minLength:
		problems.Add(field, "must have at least %d characters, has %d", minLength, Length(text))
	case Length(text) > maxLength:
		problems.Add(field, "must have at most %d characters, has %d", maxLength, Length(text))
	}
}

// CheckName is Check for the name of a definition: 1 to 80 code points, no
// control characters, and no slash, which separates namespace and name in
// references (metadata definitions catalog specification).
func CheckName(problems *problem.Problems, field, name string) {
	before := len(*problems)
	Check(problems, field, name, 1, MaxName)
	if len(*problems) > before {
		return
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		problems.Add(field, "must not contain control characters")
	} else if strings.Contains(name, "/") {
		problems.Add(field, "must not contain a slash")
	}
}

// PrefixEnd returns the smallest string, by code point, that is greater than
// every string with this prefix; false if there is none.
func PrefixEnd(prefix string) (string, bool) {
	runes := []rune(prefix)
	for i := len(runes) - 1; i >= 0; i-- {
		switch next := runes[i] + 1; {
		case next == 0xD800: // surrogates are not characters
			return string(runes[:i]) + "\uE000", true
		case next <= unicode.MaxRune:
			return string(runes[:i]) + string(next), true
		}
	}
	return "", false
}

// HasTrigram reports whether a string has three letters or digits in a row.
// Trigram indexes need that to find strings, on every database.
func HasTrigram(text string) bool {
	run := 0
	for _, r := range text {
		if run++; !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			run = 0
		}
		if run == 3 {
			return true
		}
	}
	return false
}
