package model

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/placement"
)

// refuseValue returns a validation error for a value that its scalar does not
// allow.
func refuseValue(message string) error {
	err := &gqlerror.Error{Message: message}
	errcode.Set(err, errcode.ValidationFailed)
	return err
}

// ScalarProblem returns the problem of a value of a custom scalar, or the empty
// string. Values of other types have no problem.
func ScalarProblem(name string, value any) string {
	var err error
	switch name {
	case "UUID":
		_, err = UnmarshalUUID(value)
	case "DateTime":
		_, err = UnmarshalDateTime(value)
	case "Int64":
		_, err = UnmarshalInt64(value)
	}
	if refused := (*gqlerror.Error)(nil); errors.As(err, &refused) {
		return refused.Message
	}
	return ""
}

// MarshalUUID marshals a UUID, which must be in its canonical spelling.
func MarshalUUID(uuid string) graphql.Marshaler { return graphql.MarshalString(uuid) }

// UnmarshalUUID returns the canonical spelling of a UUID, lower case with
// dashes, from any usual spelling. Null becomes the empty string; validation
// allows null only if the UUID is optional.
func UnmarshalUUID(v any) (string, error) {
	if v == nil {
		return "", nil
	}
	text, ok := v.(string)
	if !ok {
		return "", refuseValue("not a string")
	}
	uuid, ok := placement.CanonicalUUID(text)
	if !ok {
		return "", refuseValue("not a UUID")
	}
	return uuid, nil
}

// MarshalInt marshals an Int.
func MarshalInt(n int) graphql.Marshaler { return marshalInteger(int64(n)) }

// UnmarshalInt unmarshals an Int, an integer of 32 bits.
func UnmarshalInt(v any) (int, error) {
	n, err := unmarshalInteger(v, math.MinInt32, math.MaxInt32)
	return int(n), err
}

// MarshalInt32 marshals an Int.
func MarshalInt32(n int32) graphql.Marshaler { return marshalInteger(int64(n)) }

// UnmarshalInt32 unmarshals an Int, an integer of 32 bits.
func UnmarshalInt32(v any) (int32, error) {
	n, err := unmarshalInteger(v, math.MinInt32, math.MaxInt32)
	return int32(n), err
}

// MarshalInt64 marshals an Int64 as a JSON number.
func MarshalInt64(n int64) graphql.Marshaler { return marshalInteger(n) }

// UnmarshalInt64 unmarshals an Int64, an integer of 64 bits, from a number or a
// string.
func UnmarshalInt64(v any) (int64, error) {
	if text, ok := v.(string); ok {
		v = json.Number(text)
	}
	return unmarshalInteger(v, math.MinInt64, math.MaxInt64)
}

func marshalInteger(n int64) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.FormatInt(n, 10)) })
}

func unmarshalInteger(v any, minimum, maximum int64) (int64, error) {
	var n int64
	switch v := v.(type) {
	case int64:
		n = v
	case int:
		n = int64(v)
	case json.Number:
		parsed, err := strconv.ParseInt(v.String(), 10, 64)
		if err != nil {
			return 0, refuseValue("not a 64-bit integer")
		}
		n = parsed
	default:
		return 0, refuseValue("not an integer")
	}
	if n < minimum || n > maximum {
		return 0, refuseValue("integer out of range: " + strconv.FormatInt(n, 10))
	}
	return n, nil
}

// MarshalLongInt marshals an Int that Go code keeps in 64 bits.
func MarshalLongInt(n int64) graphql.Marshaler { return marshalInteger(n) }

// UnmarshalLongInt unmarshals an Int, an integer of 32 bits, into 64 bits.
func UnmarshalLongInt(v any) (int64, error) { return unmarshalInteger(v, math.MinInt32, math.MaxInt32) }

// MarshalDateTime marshals a time in UTC, in the form of RFC 3339.
func MarshalDateTime(t time.Time) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		_, _ = io.WriteString(w, strconv.Quote(t.UTC().Format(time.RFC3339Nano)))
	})
}

// UnmarshalDateTime unmarshals a time in the form of RFC 3339, in any zone. The
// year must be one that both databases can store.
func UnmarshalDateTime(v any) (time.Time, error) {
	text, ok := v.(string)
	if !ok {
		return time.Time{}, refuseValue("not a string")
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.UTC().Year() < 1 || t.UTC().Year() > 9999 {
		return time.Time{}, refuseValue("not a time of the form 2026-03-01T09:30:00Z")
	}
	return t.UTC(), nil
}
