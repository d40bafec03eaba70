package model

import (
	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/metadef"
)

// ChangeOf returns what a patch says about a field: nothing where it is absent.
func ChangeOf[T any](field graphql.Omittable[T]) metadef.Change[T] {
	return metadef.Change[T]{Set: field.IsSet(), Value: field.Value()}
}

// Values returns what the pointers of a list point to, and nil for nil.
func Values[T any](pointers []*T) []T {
	if pointers == nil {
		return nil
	}
	values := make([]T, len(pointers))
	for i, pointer := range pointers {
		values[i] = *pointer
	}
	return values
}

// Patch returns the change that the input describes.
func (i UpdateNamespaceInput) Patch() metadef.NamespacePatch {
	return metadef.NamespacePatch{
		NewName: ChangeOf(i.NewName), DisplayName: ChangeOf(i.DisplayName), Description: ChangeOf(i.Description),
		Visibility: ChangeOf(i.Visibility), Protected: ChangeOf(i.Protected), Owner: ChangeOf(i.Owner),
	}
}

// Change returns the change that the input describes.
func (i UpdatePropertyInput) Change() metadef.PropertyChange {
	return metadef.PropertyChange{
		Namespace: i.Namespace, Object: i.Object.Value(), Name: i.Name, NewName: ChangeOf(i.NewName), Revision: i.Revision.Value(),
		PropertyPatch: metadef.PropertyPatch{
			Title: ChangeOf(i.Title), Description: ChangeOf(i.Description), Type: ChangeOf(i.Type), ItemType: ChangeOf(i.ItemType),
			Enum: ChangeOf(i.Enum), ItemEnum: ChangeOf(i.ItemEnum), Default: ChangeOf(i.Default),
			Minimum: ChangeOf(i.Minimum), Maximum: ChangeOf(i.Maximum), MinLength: ChangeOf(i.MinLength), MaxLength: ChangeOf(i.MaxLength),
			Pattern: ChangeOf(i.Pattern), MinItems: ChangeOf(i.MinItems), MaxItems: ChangeOf(i.MaxItems),
			UniqueItems: ChangeOf(i.UniqueItems), AdditionalItems: ChangeOf(i.AdditionalItems), ReadOnly: ChangeOf(i.ReadOnly),
			Operators: ChangeOf(i.Operators),
		},
	}
}

// Change returns the change that the input describes.
func (i UpdateObjectInput) Change() metadef.ObjectChange {
	return metadef.ObjectChange{
		Namespace: i.Namespace, Name: i.Name, NewName: ChangeOf(i.NewName), Description: ChangeOf(i.Description), Required: ChangeOf(i.Required),
		Properties: metadef.Change[[]metadef.PropertyInput]{Set: i.Properties.IsSet(), Value: Values(i.Properties.Value())},
		Revision:   i.Revision.Value(),
	}
}
