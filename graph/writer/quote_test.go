package writer_test

import (
	"bytes"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/text"
)

// FuzzStringsAreQuotedAsByGqlgen compares the strings of answers with the
// output of gqlgen's own executor.
func FuzzStringsAreQuotedAsByGqlgen(f *testing.F) {
	for _, seed := range []string{"", `a"b\c`, "\x00\t\r\n\x1f", "\xff\u2028<>&é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		var want bytes.Buffer
		graphql.MarshalString(value).MarshalGQL(&want)
		if got := text.AppendQuoted(nil, value); string(got) != want.String() {
			t.Errorf("%q: got %s, want %s", value, got, want.String())
		}
	})
}
