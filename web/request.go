package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/cadastre-dev/cadastre/graph"
)

// request is a GraphQL request as the client sent it.
type request struct {
	query         string
	documentID    string // identifies a persisted document
	operationName string
	variables     map[string]any
	extensions    map[string]any
	own           bool // whether the query is the server's own
}

// bad returns the refusal of a malformed GraphQL request.
func bad(message string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: graph.CodeBadRequest, message: message}
}

// notUnicode returns the refusal of a request that is not valid Unicode.
func notUnicode(field string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: graph.CodeBadUserInput, field: field,
		message: "the request is not valid Unicode: invalid UTF-8 or an unpaired surrogate"}
}

// readRequest returns the request in a body, in the query string, or in both.
func readRequest(r *http.Request, text []byte) (*request, *refusal) {
	switch {
	case isExport(r):
		return readExport(r)
	case isImport(r):
		return readImport(r, text)
	case r.Method == http.MethodPost:
		return readBody(text)
	}
	return readURL(r.URL.RawQuery)
}

// receiveBody is readAll for a POST, whose Content-Type must be JSON in UTF-8.
func receiveBody(r *http.Request, maxBytes int64) ([]byte, *refusal) {
	if !isJSON(r.Header) {
		return nil, &refusal{status: http.StatusUnsupportedMediaType, code: graph.CodeBadRequest,
			message: "the Content-Type of the request is not application/json in UTF-8"}
	}
	return readAll(r, maxBytes)
}

// readAll returns a body of at most maxBytes, 0 for no limit. It refuses a
// compressed body.
func readAll(r *http.Request, maxBytes int64) ([]byte, *refusal) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, &refusal{status: http.StatusUnsupportedMediaType, code: graph.CodeBadRequest,
			message: "the body of the request is compressed, which is not supported"}
	}
	body := io.Reader(r.Body)
	if maxBytes > 0 {
		if r.ContentLength > maxBytes {
			return nil, tooLarge(r.Body, maxBytes)
		}
		body = http.MaxBytesReader(nil, r.Body, maxBytes)
	}
	text := bytes.NewBuffer(make([]byte, 0, max(0, r.ContentLength)+bytes.MinRead))
	_, err := text.ReadFrom(body)
	if err != nil {
		if tooMuch := new(http.MaxBytesError); errors.As(err, &tooMuch) {
			return nil, tooLarge(r.Body, maxBytes)
		}
		return nil, bad("the body is incomplete")
	}
	return text.Bytes(), nil
}

// readBody returns the request of a body.
func readBody(text []byte) (*request, *refusal) {
	value, err := parseJSON(text)
	if err != nil {
		return nil, badJSON("the body", "", err)
	}
	switch members := value.(type) {
	case map[string]any:
		return readMembers(members)
	case []any:
		return nil, bad("the body is a list: lists of requests are not supported")
	}
	return nil, bad("the body is not a JSON object")
}

// badJSON returns the refusal for an error of parseJSON. Field is the name of
// the parameter, empty for the body.
func badJSON(what, field string, err error) *refusal {
	switch err {
	case errNotUnicode:
		return notUnicode(field)
	case errEmpty:
		return bad(what + " is empty")
	case errTrailing:
		return bad(what + " has more than one JSON value")
	case errDuplicate:
		return bad(what + " has an object with a duplicate member")
	}
	return bad(what + " is not JSON")
}

// unreadBytes bounds how much of a body that is too large the server still
// reads and discards. A client does not read the answer if its connection
// closes while it sends.
const unreadBytes = 8 << 20

func tooLarge(body io.Reader, most int64) *refusal {
	_, _ = io.CopyN(io.Discard, body, unreadBytes) // the answer is the same with an error
	return &refusal{status: http.StatusRequestEntityTooLarge, code: graph.CodeBadRequest,
		message: fmt.Sprintf("the body of the request is too large: at most %d bytes are allowed", most)}
}

// readURL returns the request in a query string.
func readURL(raw string) (*request, *refusal) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, bad("the query string is malformed")
	}
	members := map[string]any{}
	for _, name := range []string{"query", "documentId", "operationName", "variables", "extensions"} {
		given := values[name]
		if len(given) > 1 {
			return nil, bad("duplicate parameter " + name)
		}
		if len(given) == 0 || given[0] == "" {
			continue
		}
		if !utf8.ValidString(given[0]) {
			return nil, notUnicode(name)
		}
		members[name] = given[0]
		if name == "variables" || name == "extensions" {
			if members[name], err = parseJSON([]byte(given[0])); err != nil {
				return nil, badJSON("the parameter "+name, name, err)
			}
		}
	}
	return readMembers(members)
}

// readMembers returns the request with these members. It ignores unknown
// members; null means absent.
func readMembers(members map[string]any) (*request, *refusal) {
	var out request
	for _, member := range []struct {
		name string
		into *string
	}{{"query", &out.query}, {"documentId", &out.documentID}, {"operationName", &out.operationName}} {
		text, ok := members[member.name].(string)
		if !ok && members[member.name] != nil {
			return nil, bad(member.name + " is not a string")
		}
		*member.into = text
	}
	for _, member := range []struct {
		name string
		into *map[string]any
	}{{"variables", &out.variables}, {"extensions", &out.extensions}} {
		object, ok := members[member.name].(map[string]any)
		if !ok && members[member.name] != nil {
			return nil, bad(member.name + " is not an object")
		}
		*member.into = object
	}
	return &out, nil
}
