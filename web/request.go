package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/cadastre-dev/cadastre/graph"
)

// request is a GraphQL request as it came in.
type request struct {
	query         string
	documentID    string // names a persisted document
	operationName string
	variables     map[string]any
	extensions    map[string]any
}

func bad(message string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: graph.CodeBadRequest, message: message}
}

func notText(field string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: graph.CodeBadUserInput, field: field,
		message: "the request is not valid Unicode: invalid UTF-8 or half of a surrogate pair"}
}

// readBody reads the request of a POST.
func readBody(r *http.Request, maxBytes int64) (*request, *refusal) {
	if !isJSON(r.Header) {
		return nil, &refusal{status: http.StatusUnsupportedMediaType, code: graph.CodeBadRequest,
			message: "the Content-Type of a request is application/json, in UTF-8"}
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, &refusal{status: http.StatusUnsupportedMediaType, code: graph.CodeBadRequest,
			message: "the body of a request is not compressed"}
	}
	body := io.Reader(r.Body)
	if maxBytes > 0 {
		if r.ContentLength > maxBytes {
			return nil, tooLarge(r.Body)
		}
		body = http.MaxBytesReader(nil, r.Body, maxBytes)
	}
	text, err := io.ReadAll(body)
	if tooMuch := new(http.MaxBytesError); errors.As(err, &tooMuch) {
		return nil, tooLarge(r.Body)
	}
	if err != nil {
		return nil, bad("the body could not be read to its end")
	}
	if !utf8.Valid(text) || hasLoneSurrogate(text) {
		return nil, notText("")
	}
	members, problem := object(text)
	if problem != "" {
		return nil, bad(problem)
	}
	return readMembers(members)
}

// unreadBytes is how much of a body that is too large is still read, and thrown
// away: a client that is cut off while it sends never sees why.
const unreadBytes = 8 << 20

func tooLarge(body io.Reader) *refusal {
	_, _ = io.CopyN(io.Discard, body, unreadBytes) // the answer is the same
	return &refusal{status: http.StatusRequestEntityTooLarge, code: graph.CodeBadRequest, message: "the body of the request is too large"}
}

// readURL reads the request of a GET.
func readURL(raw string) (*request, *refusal) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, bad("the query string cannot be read")
	}
	members := map[string]json.RawMessage{}
	for _, name := range []string{"query", "documentId", "operationName", "variables", "extensions"} {
		given := values[name]
		if len(given) > 1 {
			return nil, bad("the parameter " + name + " is given twice")
		}
		if len(given) == 0 || given[0] == "" {
			continue
		}
		if !utf8.ValidString(given[0]) || hasLoneSurrogate([]byte(given[0])) {
			return nil, notText(name)
		}
		text := []byte(given[0])
		if name != "variables" && name != "extensions" {
			if text, err = json.Marshal(given[0]); err != nil {
				return nil, bad("the parameter " + name + " cannot be read")
			}
		} else if !json.Valid(text) {
			return nil, bad("the parameter " + name + " is no JSON")
		}
		members[name] = text
	}
	return readMembers(members)
}

// object reads the members of a JSON object, each of which may be there once,
// and says what is wrong.
func object(text []byte) (map[string]json.RawMessage, string) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	opening, err := decoder.Token()
	switch {
	case err == io.EOF:
		return nil, "the body is empty"
	case err != nil:
		return nil, "the body is no JSON"
	case opening == json.Delim('['):
		return nil, "a request is one object: lists of requests are not taken"
	case opening != json.Delim('{'):
		return nil, "the body is not a JSON object"
	}
	members := map[string]json.RawMessage{}
	for decoder.More() {
		key, err := decoder.Token()
		name, isText := key.(string)
		if err != nil || !isText {
			return nil, "the body is no JSON"
		}
		if _, twice := members[name]; twice {
			return nil, "a member of the request is given twice"
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, "the body is no JSON"
		}
		members[name] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, "the body is no JSON"
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, "the body goes on after its JSON object"
	}
	return members, ""
}

// readMembers reads what a request consists of. Members that are not known are
// ignored; null is the same as absent.
func readMembers(members map[string]json.RawMessage) (*request, *refusal) {
	var out request
	for _, member := range []struct {
		name string
		into *string
	}{{"query", &out.query}, {"documentId", &out.documentID}, {"operationName", &out.operationName}} {
		if text, there := members[member.name]; there && json.Unmarshal(text, member.into) != nil {
			return nil, bad(member.name + " is not a text")
		}
	}
	for _, member := range []struct {
		name string
		into *map[string]any
	}{{"variables", &out.variables}, {"extensions", &out.extensions}} {
		text, there := members[member.name]
		if !there {
			continue
		}
		value, err := unique(text)
		if err != nil {
			return nil, bad("in " + member.name + " an object has a member twice")
		}
		object, isObject := value.(map[string]any)
		if !isObject && value != nil {
			return nil, bad(member.name + " is not an object")
		}
		*member.into = object
	}
	return &out, nil
}

var errTwice = errors.New("a member is given twice")

// unique reads a value of JSON, with numbers as they are written. A member that is
// given twice is an error: one reader takes the first, another the last. Read into
// maps it is one less than the text has.
func unique(text json.RawMessage) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if membersWritten(text) != membersRead(value) {
		return nil, errTwice
	}
	return value, nil
}

// membersWritten counts the members of all objects in JSON by their colons.
func membersWritten(text []byte) int {
	count, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\':
			i++ // only within quotes
		case c == ':' && !quoted:
			count++
		}
	}
	return count
}

func membersRead(value any) int {
	count := 0
	switch value := value.(type) {
	case map[string]any:
		count = len(value)
		for _, member := range value {
			count += membersRead(member)
		}
	case []any:
		for _, member := range value {
			count += membersRead(member)
		}
	}
	return count
}

// hasLoneSurrogate tells whether JSON holds the escape of half a surrogate pair,
// which is no character and which decoding would replace without a word.
func hasLoneSurrogate(text []byte) bool {
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if text[i] != 'u' {
			continue
		}
		unit, ok := hexUnit(text, i+1)
		if !ok || unit < 0xd800 || unit > 0xdfff {
			continue
		}
		if unit > 0xdbff || i+6 >= len(text) || text[i+5] != '\\' || text[i+6] != 'u' {
			return true
		}
		if low, ok := hexUnit(text, i+7); !ok || low < 0xdc00 || low > 0xdfff {
			return true
		}
		i += 10
	}
	return false
}

// hexUnit reads the four hexadecimal digits at a place.
func hexUnit(text []byte, at int) (uint32, bool) {
	if at+4 > len(text) {
		return 0, false
	}
	var unit uint32
	for _, c := range text[at : at+4] {
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if digit < 0 {
			return 0, false
		}
		unit = unit<<4 | uint32(digit)
	}
	return unit, true
}
