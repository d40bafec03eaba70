package metadef

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cadastre-dev/cadastre/text"
)

// position says where in a text of several lines an offset is, counting lines
// and characters from 1.
func position(text string, offset int) string {
	before := text[:min(offset, len(text))]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return "line " + strconv.Itoa(line) + ", column " + strconv.Itoa(column)
}

// invalidUTF8 is the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(text string) int {
	if utf8.ValidString(text) {
		return -1
	}
	for i, r := range text {
		if _, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
			return i
		}
	}
	return -1
}

// deepest is how deep valid JSON text is nested.
func deepest(text string) int {
	depth, most, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
			most = max(most, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return most
}

// jsonReader reads valid JSON text without white space.
type jsonReader struct{ rest string }

func (r *jsonReader) value() jsonValue {
	start := r.rest
	var v jsonValue
	switch start[0] {
	case '{':
		v = jsonValue{kind: jsonMap, members: r.members()}
	case '[':
		v = jsonValue{kind: jsonList, list: r.items()}
	case '"':
		text, fault := r.quoted()
		v = jsonValue{kind: jsonText, text: text, fault: fault}
	case 'n':
		v.kind = jsonNull
		r.rest = r.rest[len("null"):]
	case 't':
		v.kind = jsonBoolean
		r.rest = r.rest[len("true"):]
	case 'f':
		v.kind = jsonBoolean
		r.rest = r.rest[len("false"):]
	default:
		v.kind = jsonNumber
		end := strings.IndexAny(r.rest, ",]}")
		if end < 0 {
			end = len(r.rest)
		}
		r.rest = r.rest[end:]
	}
	v.raw = text.JSON(start[:len(start)-len(r.rest)])
	return v
}

func (r *jsonReader) items() []jsonValue {
	items := []jsonValue{}
	for r.next(']') {
		items = append(items, r.value())
	}
	return items
}

func (r *jsonReader) members() []jsonMember {
	members := []jsonMember{}
	seen := map[string]bool{}
	for r.next('}') {
		key, fault := r.quoted()
		r.rest = r.rest[1:] // the colon
		members = append(members, jsonMember{key: key, value: r.value(), fault: fault, repeated: seen[key]})
		seen[key] = true
	}
	return members
}

// next steps over a bracket or comma; false means that the closing bracket
// came.
func (r *jsonReader) next(closing byte) bool {
	if r.rest[0] == closing {
		r.rest = r.rest[1:]
		return false
	}
	opened := r.rest[0] == '[' || r.rest[0] == '{'
	if r.rest[0] == ',' || opened {
		r.rest = r.rest[1:]
	}
	if opened && r.rest[0] == closing {
		r.rest = r.rest[1:]
		return false
	}
	return true
}

func (r *jsonReader) quoted() (text, fault string) {
	end := 1
	for r.rest[end] != '"' {
		if r.rest[end] == '\\' {
			end++
		}
		end++
	}
	raw := r.rest[:end+1]
	r.rest = r.rest[end+1:]
	if !strings.Contains(raw, `\`) {
		return raw[1 : len(raw)-1], ""
	}
	if err := json.Unmarshal([]byte(raw), &text); err != nil {
		return "", "is not a JSON text"
	}
	switch {
	case strings.ContainsRune(text, 0):
		return text, "contains U+0000"
	case strings.Count(text, "\uFFFD") > strings.Count(strings.ToLower(raw), `\ufffd`)+strings.Count(raw, "\uFFFD"):
		return text, "contains half of a surrogate pair"
	}
	return text, ""
}

// quote is the JSON text of a string, with nothing escaped that need not be.
func quote(input string) text.JSON {
	var value text.JSON
	if err := value.UnmarshalGQL(input); err != nil {
		return `""`
	}
	return value
}

// writeMembers is the text of a map.
func writeMembers(members []jsonMember) text.JSON {
	var input strings.Builder
	input.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			input.WriteByte(',')
		}
		input.WriteString(string(quote(m.key)))
		input.WriteByte(':')
		input.WriteString(string(m.value.raw))
	}
	input.WriteByte('}')
	return text.JSON(input.String())
}
