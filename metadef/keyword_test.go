package metadef

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestEveryFieldOfADefinitionHasARow finds keywords that only the structs have,
// and keywords that only the table has.
func TestEveryFieldOfADefinitionHasARow(t *testing.T) {
	t.Parallel()
	rows := map[string]bool{}
	var schema PropertySchema
	var patch PropertyPatch
	for path, k := range propertyKeywords.walk("") {
		if k.fills == nil {
			continue
		}
		name := strings.ToUpper(k.inAPI()[:1]) + k.inAPI()[1:]
		rows[name] = true
		field := reflect.ValueOf(&schema).Elem().FieldByName(name)
		if !field.IsValid() || field.Addr().Interface() != k.fills(&schema) {
			t.Errorf("%s does not fill the field %s of a schema", path, name)
		}
		change := reflect.ValueOf(&patch).Elem().FieldByName(name)
		if !change.IsValid() {
			t.Errorf("a patch has no field %s", name)
			continue
		}
		change.FieldByName("Set").SetBool(true)
		if _, set, _ := k.setBy(&patch).json(); !set {
			t.Errorf("%s is not set by the field %s of a patch", path, name)
		}
		change.SetZero()
	}
	for _, of := range []reflect.Type{reflect.TypeFor[PropertySchema](), reflect.TypeFor[PropertyPatch]()} {
		for i := range of.NumField() {
			if name := of.Field(i).Name; !rows[name] && !slices.Contains([]string{"Keywords", "All", "Level"}, name) {
				t.Errorf("no keyword is the field %s of %s", name, of.Name())
			}
		}
	}
}
