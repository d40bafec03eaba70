package metadef

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/cadastre-dev/cadastre/text"
)

func TestChangeReadsAbsentNullAndValue(t *testing.T) {
	t.Parallel()
	property := func(patch PropertyPatch) ObjectPatch {
		return ObjectPatch{Properties: list(PropertyInput{"p", patch})}
	}
	for name, c := range map[string]struct {
		properties any // in the form of the server's input
		want       ObjectPatch
	}{
		"null":          {nil, ObjectPatch{Properties: Change[[]PropertyInput]{Set: true}}},
		"empty literal": {[]any(nil), ObjectPatch{Properties: list[PropertyInput]()}},
		"absent fields": {[]any{map[string]any{"name": "p"}}, property(PropertyPatch{})},
		"one for a list": {map[string]any{"name": "p", "enum": json.Number("1.50"), "operators": "<or>"},
			property(PropertyPatch{Enum: list[text.JSON]("1.50"), Operators: list("<or>")})},
		"null fields and an empty list": {[]any{map[string]any{"name": "p", "title": nil, "default": nil, "operators": []any(nil)}},
			property(PropertyPatch{Title: Change[*string]{Set: true},
				Default: Change[*text.JSON]{Set: true}, Operators: list[string]()})},
		"values": {[]any{map[string]any{"name": "p", "title": "a<b", "type": "STRING",
			"minLength": int64(1), "maximum": json.Number("1e3"),
			"readOnly": true, "default": text.JSON("[1.50]"),
			"enum": []any{text.JSON("null"), json.Number("18446744073709551616")}}},
			property(PropertyPatch{Title: to("a<b"), Type: to(String), MinLength: to(1), Maximum: to(1000.0),
				ReadOnly: to(true), Default: to(text.JSON("[1.50]")),
				Enum: list[text.JSON]("null", "18446744073709551616")})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got ObjectPatch
			if err := got.Properties.UnmarshalGQL(c.properties); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("read %+v, want %+v", got, c.want)
			}
		})
	}
}
