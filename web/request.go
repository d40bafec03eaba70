package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/graph/document"
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

// Errors of parseJSON.
var (
	errSyntax     = errors.New("not JSON")
	errEmpty      = errors.New("empty")
	errTrailing   = errors.New("more than one value")
	errDuplicate  = errors.New("duplicate member")
	errNotUnicode = errors.New("invalid UTF-8 or an unpaired surrogate")
)

// parseJSON returns the only value of a JSON text: objects as maps, numbers as
// json.Number with their original digits. Duplicate names in an object and
// strings that are not valid Unicode are errors, because parsers disagree about
// them.
func parseJSON(text []byte) (any, error) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	value, err := readValue(decoder)
	if err == io.EOF {
		return nil, errEmpty
	}
	if err == nil {
		if _, err := decoder.ReadToken(); err == io.EOF {
			return value, nil
		}
		return nil, errTrailing
	}
	switch lenient := jsontext.AllowInvalidUTF8(true); {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return nil, errDuplicate
	case jsontext.Value(text).IsValid(lenient, jsontext.AllowDuplicateNames(true)):
		return nil, errNotUnicode
	}
	return nil, errSyntax
}

// readValue returns the next value.
func readValue(decoder *jsontext.Decoder) (any, error) {
	token, err := decoder.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return token.Bool(), nil
	case '0':
		return json.Number(token.String()), nil
	case '"':
		return token.String(), nil
	case '[':
		return readArray(decoder)
	}
	return readObject(decoder)
}

// readArray returns the array after its opening bracket.
func readArray(decoder *jsontext.Decoder) (any, error) {
	array := []any{}
	for decoder.PeekKind() != ']' {
		member, err := readValue(decoder)
		if err != nil {
			return nil, err
		}
		array = append(array, member)
	}
	_, err := decoder.ReadToken()
	return array, err
}

// readObject returns the object after its opening brace.
func readObject(decoder *jsontext.Decoder) (any, error) {
	object := map[string]any{}
	for decoder.PeekKind() != '}' {
		name, err := decoder.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String() // copied before the next token overwrites it
		if object[key], err = readValue(decoder); err != nil {
			return nil, err
		}
	}
	_, err := decoder.ReadToken()
	return object, err
}

// maxKeyBytes bounds an idempotency key.
const maxKeyBytes = 255

// once returns the context for an operation. For a mutation with an idempotency
// key, the context has the key. Queries need no key, so once ignores even an
// invalid key of a query. A query sees all changes before the position in its
// headers. once refuses an invalid position, and an invalid key of a mutation.
func once(ctx context.Context, header http.Header, operation *document.Operation) (context.Context, *refusal) {
	if operation.Definition.Operation != ast.Mutation {
		ctx, err := graph.ReadAfter(ctx, header.Get(graph.PositionHeader))
		if err != nil {
			return nil, &refusal{code: graph.CodeBadUserInput, field: graph.PositionHeader, message: err.Error()}
		}
		return ctx, nil
	}
	key, refused := idempotencyKey(header)
	if refused != nil || key == "" {
		return ctx, refused
	}
	return graph.WithIdempotencyKey(ctx, key), nil
}

// refusedToRun returns the refusal of an operation that did not begin to run.
func refusedToRun(errs gqlerror.List) *refusal {
	why := &refusal{errors: errs}
	why.retryAfter, _ = errs[0].Extensions["retryAfter"].(int)
	switch code, _ := errs[0].Extensions["code"].(string); graph.Code(code) {
	case graph.CodeConcurrentUpdate:
		why.status = http.StatusConflict
	case graph.CodeUnavailable:
		why.status = http.StatusServiceUnavailable
	}
	return why
}

// idempotencyKey returns the idempotency key of the headers, or empty without
// one. A key has visible ASCII characters, either bare or as a structured field
// string (RFC 9651) in quotation marks.
func idempotencyKey(header http.Header) (string, *refusal) {
	sent := header.Values(graph.IdempotencyKeyHeader)
	if len(sent) == 0 {
		return "", nil
	}
	refused := func(why string) (string, *refusal) {
		return "", &refusal{code: graph.CodeBadUserInput, field: graph.IdempotencyKeyHeader,
			message: graph.IdempotencyKeyHeader + ": " + why}
	}
	if len(sent) > 1 {
		return refused("was sent twice; send one key for the whole document")
	}
	key := strings.Trim(sent[0], " \t")
	if quoted, ok := strings.CutPrefix(key, `"`); ok {
		if key, ok = unquoted(quoted); !ok {
			return refused("is a malformed string in quotation marks")
		}
	}
	isVisible := func(r rune) bool { return r > ' ' && r <= '~' }
	if key == "" || len(key) > maxKeyBytes || strings.ContainsFunc(key, func(r rune) bool { return !isVisible(r) }) {
		return refused("must have 1 to " + strconv.Itoa(maxKeyBytes) + " visible ASCII characters, such as a UUID")
	}
	return key, nil
}

// unquoted returns a structured field string. The text begins after the opening
// quotation mark and must end with the closing one.
func unquoted(text string) (string, bool) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return out.String(), i == len(text)-1
		case text[i] == '\\':
			if i++; i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", false
			}
		}
		out.WriteByte(text[i])
	}
	return "", false
}
