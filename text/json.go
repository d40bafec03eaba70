package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// JSON is the text of one JSON value as it arrived: numbers are not rounded and
// members are not reordered. Only the white space between tokens is dropped.
// The empty JSON stands for an absent value.
type JSON string

// MarshalGQL writes the value unchanged.
func (j JSON) MarshalGQL(w io.Writer) {
	if j == "" {
		_, _ = io.WriteString(w, "null")
		return
	}
	_, _ = io.WriteString(w, string(j))
}

// UnmarshalGQL encodes a decoded variable, or keeps a JSON unchanged. Numbers
// should be json.Number, which keeps their digits.
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

// MarshalJSON returns the value unchanged.
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
