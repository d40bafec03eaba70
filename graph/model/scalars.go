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

// refuseValue is the refusal of a value by its scalar: an error of the type
// system.
func refuseValue(message string) error {
	err := &gqlerror.Error{Message: message}
	errcode.Set(err, errcode.ValidationFailed)
	return err
}

// ScalarProblem is what the package's own scalars have against a value, before
// any field runs; nothing against one of another type.
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

// MarshalUUID writes a UUID, which is kept in its canonical spelling.
func MarshalUUID(uuid string) graphql.Marshaler { return graphql.MarshalString(uuid) }

// UnmarshalUUID takes a UUID in any usual spelling and gives the canonical one:
// lower case with dashes.
func UnmarshalUUID(v any) (string, error) {
	text, ok := v.(string)
	if !ok {
		return "", refuseValue("a UUID is a text")
	}
	uuid, ok := placement.CanonicalUUID(text)
	if !ok {
		return "", refuseValue("not a UUID")
	}
	return uuid, nil
}

// MarshalInt writes an Int.
func MarshalInt(n int) graphql.Marshaler { return wholeNumber(int64(n)) }

// UnmarshalInt takes an Int: a whole number of 32 bits.
func UnmarshalInt(v any) (int, error) {
	n, err := readWhole(v, math.MinInt32, math.MaxInt32)
	return int(n), err
}

// MarshalInt32 writes an Int.
func MarshalInt32(n int32) graphql.Marshaler { return wholeNumber(int64(n)) }

// UnmarshalInt32 takes an Int: a whole number of 32 bits.
func UnmarshalInt32(v any) (int32, error) {
	n, err := readWhole(v, math.MinInt32, math.MaxInt32)
	return int32(n), err
}

// MarshalInt64 writes an Int64, as a JSON number.
func MarshalInt64(n int64) graphql.Marshaler { return wholeNumber(n) }

// UnmarshalInt64 takes an Int64: a whole number of 64 bits, as a number or as
// text.
func UnmarshalInt64(v any) (int64, error) {
	if text, ok := v.(string); ok {
		v = json.Number(text)
	}
	return readWhole(v, math.MinInt64, math.MaxInt64)
}

func wholeNumber(n int64) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.FormatInt(n, 10)) })
}

func readWhole(v any, least, most int64) (int64, error) {
	var n int64
	switch v := v.(type) {
	case int64:
		n = v
	case int:
		n = int64(v)
	case json.Number:
		parsed, err := strconv.ParseInt(v.String(), 10, 64)
		if err != nil {
			return 0, refuseValue("not a whole number of at most 64 bits")
		}
		n = parsed
	default:
		return 0, refuseValue("not a whole number")
	}
	if n < least || n > most {
		return 0, refuseValue("a whole number out of range: " + strconv.FormatInt(n, 10))
	}
	return n, nil
}

// MarshalLongInt writes an Int that is kept in 64 bits.
func MarshalLongInt(n int64) graphql.Marshaler { return wholeNumber(n) }

// UnmarshalLongInt takes an Int, a whole number of 32 bits, into 64.
func UnmarshalLongInt(v any) (int64, error) { return readWhole(v, math.MinInt32, math.MaxInt32) }

// MarshalDateTime writes a time, in UTC.
func MarshalDateTime(t time.Time) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		_, _ = io.WriteString(w, strconv.Quote(t.UTC().Format(time.RFC3339Nano)))
	})
}

// UnmarshalDateTime takes a time as RFC 3339 writes it, in any zone, of a year
// that both databases hold.
func UnmarshalDateTime(v any) (time.Time, error) {
	text, ok := v.(string)
	if !ok {
		return time.Time{}, refuseValue("a time is a text")
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.UTC().Year() < 1 || t.UTC().Year() > 9999 {
		return time.Time{}, refuseValue("not a time as 2026-03-01T09:30:00Z")
	}
	return t.UTC(), nil
}
