package jsonvalue

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
	"github.com/go-json-experiment/json/jsontext"
)

// maxNesting is the maximum nesting of lists and maps in an input.
const maxNesting = 32

// maxValues is the maximum number of values in an input. A value takes two bytes
// or more of the input, and some hundred of memory.
const maxValues = 500_000

// Read parses one JSON value. It returns false and adds one problem if the input
// is not JSON, with line and column, or if it exceeds maxNesting or maxValues. A
// name that a map has twice and a string that no database can store are problems
// with a path, after which Read continues. Of a repeated name, it keeps the first
// member.
func Read(input, path string, problems *problem.Problems) (Value, bool) {
	r := reader{input: input, path: path, problems: problems,
		decoder: jsontext.NewDecoder(bytes.NewBufferString(input), jsontext.AllowDuplicateNames(true)),
		compact: make([]byte, 0, len(input))}
	value, ok := r.readValue(path)
	rest := strings.TrimLeft(input[r.decoder.InputOffset():], " \t\r\n")
	if ok && rest != "" {
		return value, r.refuse(path, len(input)-len(rest), "unexpected data after the value")
	}
	return value, ok
}

// Of returns the value of JSON that was read without a problem before. It
// returns the zero value for input that Read refuses.
func Of(value text.JSON) Value {
	read, ok := Read(string(value), "", new(problem.Problems))
	if !ok {
		return Value{}
	}
	return read
}

// reader reads JSON strictly: its decoder refuses invalid UTF-8 and unpaired
// surrogates.
type reader struct {
	input    string
	path     string // of the whole input
	problems *problem.Problems
	decoder  *jsontext.Decoder
	compact  []byte // the input so far, without white space
	unquoted []byte // the last string
	values   int    // read so far
}

// readValue reads the next value, which is at path. If the input is not JSON or
// exceeds a limit, it adds a problem and returns false.
func (r *reader) readValue(path string) (v Value, ok bool) {
	if r.values++; r.values > maxValues {
		r.problems.AddBounded(r.path, "has more than %d values", maxValues)
		return Value{}, false
	}
	start := len(r.compact)
	switch r.decoder.PeekKind() {
	case '{':
		v.Kind = KindMap
		v.Members, ok = r.readMembers(path)
	case '[':
		v.Kind = KindList
		v.List, ok = r.readItems(path)
	case '"':
		v.Kind = KindText
		v.Text, ok = r.quoted(path, "")
	default:
		var raw jsontext.Value
		if raw, ok = r.scalar(r.path); ok {
			v.Kind = kindOf(raw)
		}
	}
	v.Raw = text.JSON(r.compact[start:])
	return v, ok
}

func (r *reader) readMembers(path string) ([]Member, bool) {
	members := []Member{}
	seen := map[string]bool{}
	for first := true; ; first = false {
		if more, ok := r.next('{', '}', first); !ok || !more {
			return members, ok
		}
		key, ok := r.quoted(path, "its name ")
		if !ok {
			return nil, false
		}
		at := problem.Join(path, key)
		r.compact = append(r.compact, ':')
		value, ok := r.readValue(at)
		if !ok {
			return nil, false
		}
		if seen[key] {
			r.problems.AddBounded(at, "appears twice")
			continue
		}
		seen[key] = true
		members = append(members, Member{key, value})
	}
}

func (r *reader) readItems(path string) ([]Value, bool) {
	items := []Value{}
	for first := true; ; first = false {
		if more, ok := r.next('[', ']', first); !ok || !more {
			return items, ok
		}
		item, ok := r.readValue(problem.Index(path, len(items)))
		if !ok {
			return nil, false
		}
		items = append(items, item)
	}
}

// next goes to the next member of a list or map, or enters the list or map if
// first is set. more is false once it has left the list or map. Beyond
// maxNesting it adds a problem, and ok is false.
func (r *reader) next(opening, closing byte, first bool) (more, ok bool) {
	if first {
		_, _ = r.decoder.ReadToken() // was peeked before
		r.compact = append(r.compact, opening)
		if r.decoder.StackDepth() > maxNesting {
			r.problems.AddBounded(r.path, "is nested deeper than %d levels", maxNesting)
			return false, false
		}
	}
	if r.decoder.PeekKind() != jsontext.Kind(closing) {
		if !first {
			r.compact = append(r.compact, ',')
		}
		return true, true
	}
	_, _ = r.decoder.ReadToken()
	r.compact = append(r.compact, closing)
	return false, true
}

// quoted reads a string at path or, with a non-empty what, the name of a member
// of the map at path. A string with U+0000 is a problem, whose message begins
// with what.
func (r *reader) quoted(path, what string) (string, bool) {
	raw, ok := r.scalar(path)
	if !ok {
		return "", false
	}
	r.unquoted, _ = jsontext.AppendUnquote(r.unquoted[:0], raw) // the decoder has checked it
	decoded := string(r.unquoted)
	if strings.ContainsRune(decoded, 0) {
		if what != "" {
			path = problem.Join(path, decoded)
		}
		r.problems.AddBounded(path, "%scontains U+0000", what)
	}
	return decoded, true
}

func (r *reader) scalar(path string) (jsontext.Value, bool) {
	raw, err := r.decoder.ReadValue()
	if err == nil {
		r.compact = append(r.compact, raw...)
		return raw, true
	}
	if syntax := (*jsontext.SyntacticError)(nil); errors.As(err, &syntax) {
		return nil, r.refuse(path, int(syntax.ByteOffset), syntax.Err.Error())
	}
	return nil, r.refuse(path, len(r.input), "unexpected EOF")
}

// refuse adds the problem that the input is not JSON from an offset on, and
// returns false.
func (r *reader) refuse(path string, offset int, reason string) bool {
	before := r.input[:offset]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	r.problems.AddBounded(path, "is not JSON: line %d, column %d: %s", line, column, reason)
	return false
}

// kindOf returns the kind of a scalar that is not a string.
func kindOf(raw jsontext.Value) Kind {
	switch raw.Kind() {
	case 'n':
		return KindNull
	case '0':
		return KindNumber
	}
	return KindBoolean
}
