package jsonvalue

import (
	"reflect"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/problem"
)

func TestReadKeepsWhatTheTextSays(t *testing.T) {
	t.Parallel()
	var problems problem.Problems
	value, ok := Read(" { \"b\" : [ 1.50, -0e2, 18446744073709551616 ],\n\t\"a\": \"\\u00e4\\n\", \"c\":{}, \"d\":[] } ", "$", &problems)
	if want := `{"b":[1.50,-0e2,18446744073709551616],"a":"\u00e4\n","c":{},"d":[]}`; !ok ||
		string(value.Raw) != want || problems != nil {
		t.Fatalf("read %s, %v", value.Raw, problems)
	}
	if text, _ := value.Member("a"); text.Text != "ä\n" || text.Kind != KindText || value.Members[0].Key != "b" {
		t.Errorf("read %+v", value)
	}
	if numbers, _ := value.Member("b"); numbers.List[0].Same() != Of("15e-1").Same() ||
		!reflect.DeepEqual(numbers, Of(numbers.Raw)) {
		t.Errorf("numbers %+v", numbers)
	}
}

func TestReadRefusesWhatIsNotStrictJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                      "$: is not JSON: line 1, column 1: unexpected EOF",
		"{\n \"a\": 01}":        "$: is not JSON: line 2, column 8: ",
		`[1,]`:                  "$: is not JSON: line 1, column 3: ",
		`{"a":1} x`:             "$: is not JSON: line 1, column 9: unexpected data after the value",
		`{"a":["\ud800"]}`:      "$.a[0]: is not JSON: line 1, column 8: ",
		"{\"a\":\"\xff\"}":      "$.a: is not JSON: line 1, column 7: invalid UTF-8",
		`{"a":{"b":1,"b":2}}`:   "$.a.b: appears twice",
		`{"a":"\u0000"}`:        "$.a: contains U+0000",
		strings.Repeat("[", 33): "$: is nested deeper than 32 levels",
		`{"a":[` + strings.Repeat("1,", 500_000) + "1]}": "$: has more than 500000 values",
		`{"a":1,"a":2,"b":[1 2]`:                         "$.a: appears twice; $: is not JSON: line 1, column 21: ",
	} {
		var problems problem.Problems
		_, ok := Read(text, "$", &problems)
		if got := problems.Err(); got == nil || !strings.HasPrefix(got.Error(), want) {
			t.Errorf("%q: %v, %v; want %s", text, ok, got, want)
		}
	}
}
