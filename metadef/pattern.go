package metadef

import (
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/cadastre-dev/cadastre/text"
)

// maxPatternSize bounds what a regular expression amounts to when its
// repetitions are written out: searching a value takes time in proportion to it.
const maxPatternSize = 2000

// checkPattern notes a regular expression that values cannot be checked with.
func checkPattern(pattern, path string, found *findings) {
	if length := text.Length(pattern); length > MaxPattern {
		found.odd(path, "not checked", "must have at most %d characters, has %d", MaxPattern, length)
		return
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		found.odd(path, "not checked", "is not a regular expression in RE2 syntax: %s", reason)
	} else if size := patternSize(parsed); size > maxPatternSize {
		found.odd(path, "not checked", "repeats too much: it amounts to %d steps, of at most %d", size, maxPatternSize)
	}
}

// matches tells whether the pattern is found in the text, or is none that can
// be checked with.
func matches(pattern, text string) bool {
	var found findings
	if checkPattern(pattern, "", &found); len(found.problems) > 0 {
		return true
	}
	expression, err := regexp.Compile(pattern)
	return err != nil || expression.MatchString(text)
}

// patternSize is how large an expression is with its repetitions written out.
func patternSize(expression *syntax.Regexp) int {
	size := 1
	if expression.Op == syntax.OpLiteral {
		size = len(expression.Rune)
	}
	for _, inner := range expression.Sub {
		size += patternSize(inner)
	}
	if expression.Op == syntax.OpRepeat {
		size *= max(1, expression.Min, expression.Max)
	}
	return min(size, 1<<30) // no overflow, however deep
}
