package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cadastre-dev/cadastre/problem"
)

// Fold gives the key by which text is compared where case does not matter: tag
// names and searches. It is the same on every database, because it is made
// here. Each code point is replaced by the least of its simple case variants
// (Unicode simple case folding), so folding never changes the number of code
// points.
func Fold(text string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return unicode.ToLower(least)
	}, text)
}

// Length is the length of text in code points, the unit of every limit here.
func Length(text string) int { return utf8.RuneCountInString(text) }

// Check notes in problems what is wrong with a text of at least least and
// at most most code points: length, invalid UTF-8, U+0000.
func Check(problems *problem.Problems, field, text string, least, most int) {
	switch {
	case !utf8.ValidString(text):
		problems.Add(field, "is not valid UTF-8")
	case strings.ContainsRune(text, 0):
		problems.Add(field, "contains U+0000")
	case Length(text) < least && least == 1:
		problems.Add(field, "must not be empty")
	case Length(text) < least:
		problems.Add(field, "must have at least %d characters, has %d", least, Length(text))
	case Length(text) > most:
		problems.Add(field, "must have at most %d characters, has %d", most, Length(text))
	}
}

// CheckName is CheckText for the name of a definition: 1 to 80 code points, no
// control characters and no slash, because everything is referred to by
// namespace and name (metadata definitions catalog specification).
func CheckName(problems *problem.Problems, field, name string) {
	before := len(*problems)
	Check(problems, field, name, 1, MaxName)
	if len(*problems) > before {
		return
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			problems.Add(field, "must not contain control characters")
			return
		}
		if r == '/' {
			problems.Add(field, "must not contain a slash")
			return
		}
	}
}

// After is the least text, by code point, that is greater than every text
// that begins with the given one; false where there is none.
func After(prefix string) (string, bool) {
	runes := []rune(prefix)
	for i := len(runes) - 1; i >= 0; i-- {
		switch next := runes[i] + 1; {
		case next == 0xD800: // the surrogates are no characters
			return string(runes[:i]) + "\uE000", true
		case next <= unicode.MaxRune:
			return string(runes[:i]) + string(next), true
		}
	}
	return "", false
}

const MaxName = 80 // names of namespaces, properties, objects, tags, types; prefixes and targets
