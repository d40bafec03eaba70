package graph

import (
	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/catalog"
)

// changed is what a patch says about a field: nothing where it is absent.
func changed[T any](field graphql.Omittable[T]) catalog.Change[T] {
	return catalog.Change[T]{Set: field.IsSet(), Value: field.Value()}
}

// listOf is the values of a list of pointers, as inputs come in.
func listOf[T any](pointers []*T) []T {
	if pointers == nil {
		return nil
	}
	values := make([]T, len(pointers))
	for i, pointer := range pointers {
		values[i] = *pointer
	}
	return values
}

// associationRow is the row of an association by its id; 0, which there is none
// of, for the id of another thing.
func associationRow(id string) (int64, error) {
	node, ok := catalog.ParseNodeID(id)
	if !ok {
		return 0, catalog.Invalid("input.id", "is not an id")
	}
	if node.Kind != catalog.KindResourceTypeAssociation || node.Association != 0 {
		return 0, nil
	}
	return node.Row(), nil
}

func (i UpdateNamespaceInput) patch() catalog.NamespacePatch {
	return catalog.NamespacePatch{
		NewName: changed(i.NewName), DisplayName: changed(i.DisplayName), Description: changed(i.Description),
		Visibility: changed(i.Visibility), Protected: changed(i.Protected), Owner: changed(i.Owner),
	}
}

func (i UpdatePropertyInput) change() catalog.PropertyChange {
	return catalog.PropertyChange{
		Namespace: i.Namespace, Object: i.Object.Value(), Name: i.Name, NewName: changed(i.NewName), Revision: i.Revision.Value(),
		PropertyPatch: catalog.PropertyPatch{
			Title: changed(i.Title), Description: changed(i.Description), Type: changed(i.Type), ItemType: changed(i.ItemType),
			Enum: changed(i.Enum), ItemEnum: changed(i.ItemEnum), Default: changed(i.Default),
			Minimum: changed(i.Minimum), Maximum: changed(i.Maximum), MinLength: changed(i.MinLength), MaxLength: changed(i.MaxLength),
			Pattern: changed(i.Pattern), MinItems: changed(i.MinItems), MaxItems: changed(i.MaxItems),
			UniqueItems: changed(i.UniqueItems), AdditionalItems: changed(i.AdditionalItems), ReadOnly: changed(i.ReadOnly),
			Operators: changed(i.Operators),
		},
	}
}

func (i UpdateObjectInput) change() catalog.ObjectChange {
	return catalog.ObjectChange{
		Namespace: i.Namespace, Name: i.Name, NewName: changed(i.NewName), Description: changed(i.Description), Required: changed(i.Required),
		Properties: catalog.Change[[]catalog.PropertyInput]{Set: i.Properties.IsSet(), Value: listOf(i.Properties.Value())},
		Revision:   i.Revision.Value(),
	}
}
