package metadef

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// maxNesting is how deep the lists and maps of a definition may be nested.
const maxNesting = 32

// jsonKind is the first letter of what a JSON value is.
type jsonKind byte

const (
	jsonNull    jsonKind = 'n'
	jsonBoolean jsonKind = 'b'
	jsonNumber  jsonKind = '0'
	jsonText    jsonKind = '"'
	jsonList    jsonKind = '['
	jsonMap     jsonKind = '{'
)

func (k jsonKind) String() string {
	switch k {
	case jsonNull:
		return "null"
	case jsonBoolean:
		return "a boolean"
	case jsonNumber:
		return "a number"
	case jsonText:
		return "text"
	case jsonList:
		return "a list"
	}
	return "a map"
}

// jsonValue is a JSON value with everything its text says: numbers as they are
// written, members in their order, repeated names included.
type jsonValue struct {
	kind    jsonKind
	raw     text.JSON    // without white space
	text    string       // of text, decoded
	list    []jsonValue  // of a list
	members []jsonMember // of a map
	fault   string       // what makes a text unusable, or empty
}

type jsonMember struct {
	key      string
	value    jsonValue
	fault    string // what makes the key unusable, or empty
	repeated bool   // an earlier member has the same key
}

// member gives the first member of that name.
func (v jsonValue) member(key string) (jsonValue, bool) {
	for _, m := range v.members {
		if m.key == key {
			return m.value, true
		}
	}
	return jsonValue{}, false
}

// isTrue tells whether the value is the boolean true.
func (v jsonValue) isTrue() bool { return v.raw == "true" }

// same is a text that two values share exactly when they are equal as JSON
// values: numbers by what they amount to, maps without their order.
func (v jsonValue) same() string {
	switch v.kind {
	case jsonNumber:
		number, _ := text.ParseDecimal(string(v.raw))
		return "0" + number.String()
	case jsonText:
		return strconv.Quote(v.text)
	case jsonList:
		parts := make([]string, len(v.list))
		for i, item := range v.list {
			parts[i] = item.same()
		}
		return "[" + strings.Join(parts, ",") + "]"
	case jsonMap:
		parts := make([]string, len(v.members))
		for i, m := range v.members {
			parts[i] = strconv.Quote(m.key) + ":" + m.value.same()
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	}
	return string(v.raw)
}

// readJSON reads the text of one JSON value. It answers false, with one
// problem at path that tells line and column, where the text is none.
// Unusable texts and repeated names are left in the value as faults; see
// reportFaults.
func readJSON(input, path string, found *findings) (value jsonValue, ok bool) {
	if i := invalidUTF8(input); i >= 0 {
		found.problem(path, "%s: is not valid UTF-8", position(input, i))
		return value, false
	}
	var compact text.JSON
	if err := json.Unmarshal([]byte(input), &compact); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			offset := int(syntax.Offset)
			if offset > 0 && !strings.HasPrefix(syntax.Error(), "unexpected end") {
				offset--
			}
			found.problem(path, "is not JSON: %s: %s", position(input, offset), syntax.Error())
		} else {
			found.problem(path, "is not JSON")
		}
		return value, false
	}
	if deepest(string(compact)) > maxNesting {
		found.problem(path, "is nested deeper than %d levels", maxNesting)
		return value, false
	}
	reader := jsonReader{rest: string(compact)}
	return reader.value(), true
}

// reportFaults notes the texts and names below value that no database can
// hold, and names that one map has twice.
func reportFaults(value jsonValue, path string, found *findings) {
	if value.fault != "" {
		found.problem(path, "%s", value.fault)
	}
	for i, item := range value.list {
		if !item.sound() {
			reportFaults(item, problem.Index(path, i), found)
		}
	}
	for _, m := range value.members {
		m.report(problem.Join(path, m.key), found)
	}
}

// report notes the faults of one member and of all below it.
func (m jsonMember) report(path string, found *findings) {
	if m.fault != "" {
		found.problem(path, "its name %s", m.fault)
	}
	if m.repeated {
		found.problem(path, "appears twice")
	}
	if !m.value.sound() {
		reportFaults(m.value, path, found)
	}
}

func (v jsonValue) sound() bool {
	return v.fault == "" &&
		!slices.ContainsFunc(v.list, func(item jsonValue) bool { return !item.sound() }) &&
		!slices.ContainsFunc(v.members, func(m jsonMember) bool {
			return m.repeated || m.fault != "" || !m.value.sound()
		})
}
