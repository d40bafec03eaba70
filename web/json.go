package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

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
