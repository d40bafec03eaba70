package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// thing is an object for the tests of output.
type thing struct {
	Name  string            `json:"name"`
	Tags  []string          `json:"tags"`
	Of    map[string]string `json:"of"`
	Big   int64             `json:"big"`
	Is    bool              `json:"is"`
	At    string            `json:"createdAt"`
	Items []map[string]any  `json:"items"`
	None  *string           `json:"none"`
}

// TestForms shows objects in every form. Their values have terminal control
// characters, numbers that no float can hold, and characters that some forms
// escape.
func TestForms(t *testing.T) {
	t.Parallel()
	things := []thing{
		{Name: "a\x1b[2J<b>", Tags: []string{"x", "y"}, Of: map[string]string{"name": "n"}, Big: 1<<62 + 1,
			Is: true, At: "2026-01-31T12:00:00.123456Z",
			Items: []map[string]any{{"key": "k", "value": "v, w"}}},
		{Name: `say "hi", you`, At: "soon"},
	}
	var rows []any
	for _, thing := range things {
		text, err := json.Marshal(thing)
		if err != nil {
			t.Fatal(err)
		}
		row, err := decoded(text)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	const spec = "name tags of=of.name big is createdAt +items +none"
	for _, of := range []struct {
		form   output
		single bool
		want   string
	}{
		{output{form: "table"}, false, "NAME           TAGS  OF  BIG                  IS   CREATED AT\n" +
			"a\uFFFD[2J<b>       x, y  n   4611686018427387905  yes  2026-01-31 12:00:00\nsay \"hi\", you            0                    no   soon\n"},
		{output{form: "table", columns: []string{"is", "CREATED AT", "items"}}, false,
			"IS   CREATED AT           ITEMS\nyes  2026-01-31 12:00:00  k=v, w\nno   soon\n"},
		{output{form: "table"}, true,
			"FIELD       VALUE\nNAME        a\uFFFD[2J<b>\nTAGS        x, y\nOF          n\nBIG         4611686018427387905\nIS          yes\nCREATED AT  2026-01-31 12:00:00\nITEMS       k=v, w\nNONE\n"},
		{output{form: "json", columns: []string{"name", "big", "none"}}, false,
			"[\n  {\n    \"name\": \"a\\u001b[2J<b>\",\n    \"big\": 4611686018427387905,\n    \"none\": null\n  },\n  {\n    \"name\": \"say \\\"hi\\\", you\",\n    \"big\": 0,\n    \"none\": null\n  }\n]\n"},
		{output{form: "json", columns: []string{"items", "of"}}, true,
			"{\n  \"items\": [\n    {\n      \"key\": \"k\",\n      \"value\": \"v, w\"\n    }\n  ],\n  \"of\": \"n\"\n}\n"},
		{output{form: "yaml", columns: []string{"of", "big", "tags", "is"}}, false,
			"- of: \"n\"\n  big: 4611686018427387905\n  tags:\n  - x\n  - \"y\"\n  is: true\n- of: null\n  big: 0\n  tags: null\n  is: false\n"},
		{output{form: "csv", columns: []string{"name", "is", "createdAt"}}, false,
			"name,is,createdAt\na\x1b[2J<b>,true,2026-01-31T12:00:00.123456Z\n\"say \"\"hi\"\", you\",false,soon\n"},
		{output{form: "value", columns: []string{"big", "of"}}, false, "4611686018427387905 n\n0 \n"},
		{output{form: "value", columns: []string{"big", "of"}}, true, "4611686018427387905\nn\n"},
		{output{form: "json", quiet: true}, false, "a\uFFFD[2J<b>\nsay \"hi\", you\n"},
		{output{form: "table", quiet: true, columns: []string{"of"}}, false, "n\n\n"},
	} {
		var out strings.Builder
		run := &call{stdout: &out, out: of.form}
		show := func() error { return run.list(spec, rows) }
		if of.single {
			show = func() error { return run.one(spec, rows[0]) }
		}
		if err := show(); err != nil || out.String() != of.want {
			t.Errorf("%+v: %v\ngot\n%s\nwant\n%s", of.form, err, out.String(), of.want)
		}
	}
	run := &call{out: output{form: "table", columns: []string{"name", "size"}}}
	if err := run.list(spec, rows); err == nil ||
		err.Error() != `--columns: unknown column "size"; the columns are name, tags, of, big, is, createdAt, items, none` {
		t.Errorf("an unknown column: %v", err)
	}
}
