package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// column is a column of a table.
type column struct {
	name string // in JSON and for --columns
	path string // path of the value in the object, member after member
	// detail columns are in JSON and in tables of one object, not in tables of
	// several.
	detail bool
}

// uppers matches a capital letter.
var uppers = regexp.MustCompile(`\p{Lu}`)

// title returns the heading of a column: names in camel case as words.
func (c column) title() string {
	return strings.ToUpper(strings.TrimPrefix(uppers.ReplaceAllString(c.name, " $0"), " "))
}

// columnsOf parses columns: `name`, `name=path.to.it`, and `+name` for a column
// that tables of several objects omit. --quiet shows the first column.
func columnsOf(written string) (columns []column) {
	for _, word := range strings.Fields(written) {
		word, detail := strings.CutPrefix(word, "+")
		name, path, ok := strings.Cut(word, "=")
		if !ok {
			path = name
		}
		columns = append(columns, column{name: name, path: path, detail: detail})
	}
	return columns
}

// chosen returns the columns with these names, in the given order. A name is
// the name in JSON or the heading, ignoring case.
func chosen(columns []column, names []string) (out []column, err error) {
	for _, name := range names {
		i := slices.IndexFunc(columns, func(c column) bool {
			return strings.EqualFold(c.name, name) || strings.EqualFold(c.title(), name)
		})
		if i < 0 {
			known := lists.Map(columns, func(c column) string { return c.name })
			return nil, usagef("--columns: unknown column %q; the columns are %s", name, strings.Join(known, ", "))
		}
		out = append(out, columns[i])
	}
	return out, nil
}

// valueAt returns the part of a JSON value at a path, or nil. For a list it
// returns the list of its members' parts.
func valueAt(value any, path string) any {
	if path == "" {
		return value
	}
	switch of := value.(type) {
	case map[string]any:
		first, rest, _ := strings.Cut(path, ".")
		return valueAt(of[first], rest)
	case []any:
		return lists.Map(of, func(member any) any { return valueAt(member, path) })
	}
	return nil
}

// decoded parses JSON and keeps the digits of numbers.
func decoded(text []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return value, decoder.Decode(&value)
}

// record is an object of JSON whose members keep their order.
type record struct {
	columns []column
	values  []any
}

// cells returns the values as strings of cell, each changed by clean.
func (r record) cells(people bool, clean func(string) string) []string {
	return lists.Map(r.values, func(value any) string { return clean(cell(value, people)) })
}

// MarshalJSON returns the object.
func (r record) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	text.WriteByte('{')
	for i, of := range r.columns {
		if i > 0 {
			text.WriteByte(',')
		}
		if err := errors.Join(encoder.Encode(of.name), text.WriteByte(':'), encoder.Encode(r.values[i])); err != nil {
			return nil, err
		}
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// cell returns a value as a string. For people, it shows times in UTC, and yes
// or no for booleans. Commas separate the members of a list. A member with two
// parts, such as a key and a value, becomes KEY=VALUE.
func cell(value any, people bool) string {
	switch of := value.(type) {
	case nil:
		return ""
	case string:
		if at, err := time.Parse(time.RFC3339Nano, of); err == nil && people {
			return at.UTC().Format(time.DateTime)
		}
		return of
	case bool:
		if people {
			return map[bool]string{true: "yes", false: "no"}[of]
		}
	case json.Number:
		if number, err := of.Float64(); err == nil && strings.ContainsAny(of.String(), "eE") {
			return strconv.FormatFloat(number, 'f', -1, 64)
		}
	case []any:
		return strings.Join(lists.Map(of, func(member any) string { return cell(pair(member), people) }), ", ")
	case map[string]any:
		text, _ := json.Marshal(of) // decoded JSON never fails
		return string(text)
	}
	return fmt.Sprint(value)
}

// pair formats an object with a pair of members as FIRST=SECOND: key and value,
// class and amount, total or use, project and role. An object with a name and at
// most one other member becomes the name. Anything else is returned unchanged.
func pair(value any) any {
	object, ok := value.(map[string]any)
	if !ok {
		return value
	}
	for _, names := range [][2]string{{"key", "value"}, {"name", "value"}, {"resourceClass", "amount"},
		{"resourceClass", "total"}, {"resourceClass", "used"}, {"projectId", "role"}} {
		first, ok := object[names[0]]
		second, both := object[names[1]]
		if ok && both {
			return fmt.Sprintf("%v=%v", first, second)
		}
	}
	if name, ok := object["name"]; ok && len(object) <= 2 {
		return name
	}
	return value
}
