package metadef

import (
	"reflect"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// Patch returns the change that gives a property every keyword of the schema
// and clears all others. The result is checked as files are.
func (s PropertySchema) Patch() PropertyPatch {
	patch := PropertyPatch{Level: Lenient}
	from, to := reflect.ValueOf(s), reflect.ValueOf(&patch).Elem()
	for i := range to.NumField() {
		change, value := to.Field(i), from.FieldByName(to.Type().Field(i).Name)
		if !value.IsValid() { // the level
			continue
		}
		change.FieldByName("Set").SetBool(true)
		if into := change.FieldByName("Value"); into.Type() == value.Type() {
			into.Set(value)
		} else { // the title and the type are never absent
			into.Set(reflect.New(value.Type()))
			into.Elem().Set(value)
		}
	}
	return patch
}

// Input returns the property as a new one.
func (p DocumentProperty) Input() PropertyInput {
	return PropertyInput{Name: p.Name, PropertyPatch: p.Patch()}
}

// Patch returns the change that makes an object equal to o, except for its
// name.
func (o DocumentObject) Patch() ObjectPatch {
	return ObjectPatch{
		Description: Change[*string]{true, o.Description},
		Required:    Change[[]string]{true, o.Required},
		Properties:  Change[[]PropertyInput]{true, lists.Map(o.Properties, DocumentProperty.Input)},
		Level:       Lenient,
	}
}
