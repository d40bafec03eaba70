package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// JSON is one JSON value as a string. Numbers are not rounded. UnmarshalJSON
// drops only the white space between tokens; UnmarshalGQL also sorts the
// members of objects. The empty JSON stands for an absent value.
type JSON string

// MarshalGQL writes the value unchanged, or null for the empty JSON.
func (j JSON) MarshalGQL(w io.Writer) {
	if j == "" {
		_, _ = io.WriteString(w, "null")
		return
	}
	_, _ = io.WriteString(w, string(j))
}

// UnmarshalGQL encodes a decoded variable, with the members of objects sorted
// by name, or keeps a JSON unchanged. Numbers should be json.Number, which
// keeps their digits.
func (j *JSON) UnmarshalGQL(v any) error {
	if text, isText := v.(JSON); isText {
		*j = text
		return nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("not a JSON value: %w", err)
	}
	*j = JSON(bytes.TrimRight(buf.Bytes(), "\n"))
	return nil
}

// MarshalJSON returns the value unchanged, or null for the empty JSON.
func (j JSON) MarshalJSON() ([]byte, error) {
	if j == "" {
		return []byte("null"), nil
	}
	return []byte(j), nil
}

// UnmarshalJSON keeps the text without the white space between tokens.
func (j *JSON) UnmarshalJSON(text []byte) error {
	var buf bytes.Buffer
	if err := json.Compact(&buf, text); err != nil {
		return err
	}
	*j = JSON(buf.String())
	return nil
}
