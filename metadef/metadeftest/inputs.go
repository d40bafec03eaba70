// Package metadeftest makes inputs of definitions for the tests of any package.
package metadeftest

import "github.com/cadastre-dev/cadastre/metadef"

// To returns a change to a value.
func To[T any](value T) metadef.Change[*T] { return metadef.Change[*T]{Set: true, Value: &value} }

// Property returns a new property of a type.
func Property(name string, of metadef.PropertyType) metadef.PropertyInput {
	return metadef.PropertyInput{Name: name, PropertyPatch: metadef.PropertyPatch{Title: To("Title"), Type: To(of)}}
}

// Object returns a new object with properties.
func Object(name string, properties ...metadef.PropertyInput) metadef.ObjectInput {
	return metadef.ObjectInput{Name: name, ObjectPatch: metadef.ObjectPatch{
		Properties: metadef.Change[[]metadef.PropertyInput]{Set: true, Value: properties}}}
}
