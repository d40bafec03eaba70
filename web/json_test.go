package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestJSONIsTakenStrictly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		`{"a": [1, -0, 1.50, 1e400, "x", true, false, null, {}, []], "b": {"a": {"a": "\ud83d\ude00"}}}`: nil,
		` 1 `:                             nil,
		``:                                errEmpty,
		"\n\t ":                           errEmpty,
		`{`:                               errSyntax,
		`{"a"}`:                           errSyntax,
		`{"a": 1,}`:                       errSyntax,
		`[1 2]`:                           errSyntax,
		`[01]`:                            errSyntax,
		`[NaN]`:                           errSyntax,
		"\xef\xbb\xbf{}":                  errSyntax,
		strings.Repeat("[", 20000):        errSyntax,
		`{} {}`:                           errTrailing,
		`{}]`:                             errTrailing,
		`{"a": 1, "a": 1}`:                errDuplicate,
		`{"b": [{"c": 1, "\u0063": 2}]}`:  errDuplicate,
		"\"\xff\"":                        errNotUnicode,
		"{\"\xff\": 1}":                   errNotUnicode,
		`["\ud83d"]`:                      errNotUnicode,
		`["\ude00\ud83d"]`:                errNotUnicode,
		`["\ud83d", "\ud83d", 1, "\\ud8"`: errSyntax,
	} {
		got, err := parseJSON([]byte(text))
		if !errors.Is(err, want) || err != nil && want == nil {
			t.Errorf("%.60q: error %v, want %v", text, err, want)
		}
		if want != nil {
			continue
		}
		var other any
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&other); err != nil || !reflect.DeepEqual(got, other) {
			t.Errorf("%.60q: got %#v, encoding/json has %#v, %v", text, got, other, err)
		}
	}
}

// FuzzParseJSON checks that parseJSON accepts nothing that encoding/json
// refuses, and returns the same values.
func FuzzParseJSON(f *testing.F) {
	for _, text := range []string{`{"a": [1, -0, 1.50, 1e400, "x\u00e9", true, null]}`,
		`{"a": 1, "a": 2}`, `["\ud83d"]`, `[`, ``, `1 1`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := parseJSON(text)
		if err != nil {
			return
		}
		var want any
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %#v, encoding/json has %#v, %v", got, want, err)
		}
	})
}
