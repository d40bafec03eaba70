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

// validatePattern checks that values can be checked with a regular expression.
func (c *checker) validatePattern(pattern, path string) {
	if length := text.Length(pattern); length > MaxPattern {
		c.strictly(path, "not checked", "must have at most %d characters, has %d", MaxPattern, length)
		return
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		c.strictly(path, "not checked", "is not a regular expression in RE2 syntax: %s", reason)
	} else if size := patternSize(parsed); size > maxPatternSize {
		c.strictly(path, "not checked", "repeats too much: it amounts to %d steps, of at most %d", size, maxPatternSize)
	}
}

// matches reports whether the pattern is found in the text, or is none that can
// be checked with.
func matches(pattern, text string) bool {
	var c checker
	if c.validatePattern(pattern, ""); len(c.found) > 0 {
		return true
	}
	expression, err := regexp.Compile(pattern)
	return err != nil || expression.MatchString(text)
}

// patternSize returns how large an expression is with its repetitions written
// out.
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
