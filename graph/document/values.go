package document

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/text"
)

const (
	// maxNameBytes bounds a name in a document: names come back in answers,
	// once for every row, and in errors.
	maxNameBytes = 255
	// maxNesting bounds how deep lists and objects are nested in variables.
	maxNesting = 100
)

// errNotUnicode is the cause of a refusal for a literal with half of a
// surrogate pair.
var errNotUnicode = errors.New("an unpaired surrogate")

// checkVariables refuses variables with U+0000, which no database stores, with
// a list that is too long, or with values nested too deeply.
func checkVariables(variables map[string]any, maxMembers int) error {
	if len(variables) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if err := checkValue(&path{name: text.Clip(name, maxNameBytes)}, variables[name],
			maxMembers, maxNesting); err != nil {
			return err
		}
	}
	return nil
}

func checkValue(at *path, value any, maxMembers, maxDepth int) error {
	if maxDepth == 0 {
		return at.invalid("lists and objects are nested too deeply: at most %d levels are allowed", maxNesting)
	}
	switch value := value.(type) {
	case string:
		if strings.Contains(value, "\x00") {
			return at.invalid("the character U+0000 is not allowed")
		}
	case []any:
		if maxMembers > 0 && len(value) > maxMembers {
			return at.invalid("the list has %d members, the maximum is %d", len(value), maxMembers)
		}
		for i, member := range value {
			if err := checkValue(&path{parent: at, index: i}, member, maxMembers, maxDepth-1); err != nil {
				return err
			}
		}
	case map[string]any:
		return checkObject(at, value, maxMembers, maxDepth)
	}
	return nil
}

func checkObject(at *path, object map[string]any, maxMembers, maxDepth int) error {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if strings.Contains(name, "\x00") {
			return at.invalid("the character U+0000 is not allowed")
		}
		if err := checkValue(&path{parent: at, name: name}, object[name], maxMembers, maxDepth-1); err != nil {
			return err
		}
	}
	return nil
}

// checkNames refuses a document with a name or an integer that is too long,
// before it is parsed.
func checkNames(text string) error {
	run := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case isNameByte(c):
			if run++; run > maxNameBytes {
				return tooComplex("a name or number of the document has more than %d characters", maxNameBytes)
			}
			continue
		case c == '#':
			for i+1 < len(text) && text[i+1] != '\n' && text[i+1] != '\r' {
				i++
			}
		case strings.HasPrefix(text[i:], `"""`):
			i = endOfBlockString(text, i)
		case c == '"':
			i = endOfString(text, i)
		}
		run = 0
	}
	return nil
}

// endOfBlockString returns the index of the last byte of the block string that
// starts at an index, or an index beyond the document if the string has no end.
func endOfBlockString(text string, start int) int {
	i := start + 3
	for ; i < len(text) && !strings.HasPrefix(text[i:], `"""`); i++ {
		if strings.HasPrefix(text[i:], `\"""`) {
			i += 3
		}
	}
	return i + 2
}

// endOfString returns the index of the quote or the line break that ends the
// string that starts at an index, or an index beyond the document without one.
func endOfString(text string, start int) int {
	i := start + 1
	for ; i < len(text) && text[i] != '"' && text[i] != '\n'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

func isNameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
