package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cadastre-dev/cadastre/internal/fill"
	"github.com/cadastre-dev/cadastre/internal/lists"
)

// The bounds of an answer. A token of a language model is about 4 bytes.
const (
	maxBytes = 8000 // of a whole answer
	maxValue = 200  // characters of a value
	maxList  = 12   // members of a list on one line
)

// inWords fills the template of the tool, and removes blank lines.
func (t *Tool) inWords(given, answer map[string]any) (string, error) {
	out, err := t.words.Execute(map[string]any{"given": given, "data": answer})
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(blankLines.ReplaceAllString(out, "\n")) + "\n", nil
}

var blankLines = regexp.MustCompile(`\n\s*\n`)

// cut returns an answer, or its first lines and a notice if it is too long.
func cut(text string) string {
	if len(text) <= maxBytes {
		return text
	}
	end := strings.LastIndexByte(text[:maxBytes], '\n') + 1
	const notice = "The answer was cut here; ask for less, with a smaller limit or more conditions.\n"
	return strings.ToValidUTF8(text[:end], "") + notice
}

// clip returns a string, or its first characters and "..." if it has more than
// most.
func clip(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "..."
}

// decoded decodes a JSON object, with numbers as json.Number. It returns nil if
// data is no object.
func decoded(data []byte) (object map[string]any) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		return nil
	}
	return object
}

// functions are the functions that templates of tools can call.
var functions = fill.Functions{
	"say":        func(of ...any) any { return say(of[0]) },
	"list":       func(of ...any) any { return sayList(of[0], of[1:]...) },
	"amounts":    func(of ...any) any { return sayAmounts(of[0], of[1].(string)) },
	"some":       func(of ...any) any { return some(of[0]) },
	"property":   func(of ...any) any { return sayProperty(of[0]) },
	"properties": func(of ...any) any { return sayProperties(of[0], of[1], of[2]) },
	"fits":       func(of ...any) any { return fits(of[0].(map[string]any), of[1]) },
	"has":        func(of ...any) any { return has(of[0], of[1].(string), of[2]) },
}

// isPlain matches values that need no quotation marks.
var isPlain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/@+-]*$`)

// say returns a value for an answer, clipped to maxValue. Strings with spaces or
// other characters that isPlain does not match are in quotation marks. A list is as
// in sayList.
func say(value any) string {
	switch of := value.(type) {
	case nil:
		return "none"
	case string:
		if of = clip(of, maxValue); isPlain.MatchString(of) {
			return of
		}
		return strconv.Quote(of)
	case []any:
		return sayList(of)
	}
	return fmt.Sprint(value)
}

// some reports whether a value is present: a list with members, a number other
// than 0, a string that is not empty, an object, or true.
func some(value any) bool {
	switch of := value.(type) {
	case []any:
		return len(of) > 0
	case bool:
		return of
	}
	return value != nil && value != "" && value != json.Number("0")
}

// sayList returns the first maxList values of a list in one line, and the
// number of the others. With members, each value is an object, and sayList
// shows the value in it that the members lead to.
func sayList(value any, member ...any) string {
	return sayEach(value, "none", func(one any) string {
		for _, name := range member {
			object, _ := one.(map[string]any)
			one = object[name.(string)]
		}
		return say(one)
	})
}

// sayAmounts returns the first maxList resource classes with their amounts. Each
// amount is in the given member.
func sayAmounts(value any, member string) string {
	return sayEach(value, "nothing", func(one any) string {
		object, _ := one.(map[string]any)
		return say(object["resourceClass"]) + " " + say(object[member])
	})
}

// sayEach returns the words for the first maxList members of a list, and the number
// of the others. For an empty list it returns ifNone.
func sayEach(value any, ifNone string, word func(any) string) string {
	list, _ := value.([]any)
	if len(list) == 0 {
		return ifNone
	}
	words := lists.Map(list[:min(len(list), maxList)], word)
	if more := len(list) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, ", ")
}

// sayProperty returns the definition of a property in one line.
func sayProperty(value any) string {
	of, _ := value.(map[string]any)
	out := say(of["name"]) + " (" + strings.ToLower(say(of["type"])) + "): " + say(of["title"])
	for _, part := range []struct{ member, words string }{
		{"description", ""}, {"minimum", "at least "}, {"maximum", "at most "},
		{"minLength", "at least this many characters: "}, {"maxLength", "at most this many characters: "},
		{"pattern", "matching "}, {"default", "default "},
		{"enum", "one of "}, {"itemEnum", "each one of "}, {"operators", "operators "},
	} {
		value := of[part.member]
		if list, isList := value.([]any); value != nil && value != "" && (!isList || len(list) > 0) {
			out += "; " + part.words + say(value)
		}
	}
	return out
}

// sayProperties returns the property of a namespace that has the key, with or
// without the prefix of an association, in full. Without such a property it
// returns the names of the properties with the searched string in name or title,
// or else the names of all properties.
func sayProperties(namespace any, key, search any) string {
	of, _ := namespace.(map[string]any)
	all, _ := of["properties"].([]any)
	objects, _ := of["objects"].([]any)
	for _, object := range objects {
		inner, _ := object.(map[string]any)["properties"].([]any)
		all = append(all, inner...)
	}
	name, _ := key.(string)
	keys := []any{name}
	associations, _ := of["resourceTypeAssociations"].([]any)
	for _, association := range associations {
		prefix, _ := association.(map[string]any)["prefix"].(string)
		if base, ok := strings.CutPrefix(name, prefix); ok {
			keys = append(keys, base)
		}
	}
	var found []any
	folded := strings.ToLower(fmt.Sprint(search))
	for _, property := range all {
		one, _ := property.(map[string]any)
		if one["name"] == key || slices.Contains(keys, one["baseName"]) {
			return "defines " + sayProperty(one)
		}
		if search != nil && strings.Contains(strings.ToLower(fmt.Sprint(one["name"], "\x00", one["title"])), folded) {
			found = append(found, one)
		}
	}
	if len(found) > 0 {
		return fmt.Sprintf("%d properties; the search finds %s", len(all), sayList(found, "name"))
	}
	return fmt.Sprintf("%d properties: %s", len(all), sayList(all, "name"))
}

// fits reports whether a provider is in one of the lists a, b, c and so on of an
// answer.
func fits(data map[string]any, provider any) bool {
	for name, value := range data {
		page, _ := value.(map[string]any)
		if len(name) == 1 && has(page["nodes"], "uuid", provider) {
			return true
		}
	}
	return false
}

// has reports whether any object of a list has the given value in a member.
func has(value any, member string, of any) bool {
	list, _ := value.([]any)
	return slices.ContainsFunc(list, func(one any) bool { return one.(map[string]any)[member] == of })
}
