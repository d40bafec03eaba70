package metadef

import (
	"slices"

	"github.com/cadastre-dev/cadastre/text"
)

// AssociationChoice chooses among the associations of a namespace: those of a
// resource type, and of them, where given, those with a properties target or a
// prefix ("" is one without).
type AssociationChoice struct {
	ResourceType string
	Target       *string
	Prefix       *string
}

// Of returns the chosen associations, in their order.
func (c AssociationChoice) Of(associations []*ResourceTypeAssociation) []*ResourceTypeAssociation {
	var chosen []*ResourceTypeAssociation
	for _, association := range associations {
		if association.ResourceTypeName == c.ResourceType &&
			(c.Target == nil || *c.Target == text.OrEmpty(association.PropertiesTarget)) &&
			(c.Prefix == nil || *c.Prefix == text.OrEmpty(association.Prefix)) {
			chosen = append(chosen, association)
		}
	}
	return chosen
}

// PropertiesThrough returns the properties as they apply through associations:
// once for each, under the association's prefix.
func PropertiesThrough(associations []*ResourceTypeAssociation, properties []*PropertyDefinition) []*PropertyDefinition {
	var seen []*PropertyDefinition
	for _, association := range associations {
		for _, property := range properties {
			through := *property
			through.AssociationID = association.ID
			through.Name = prefixed(text.OrEmpty(association.Prefix), property.BaseName)
			seen = append(seen, &through)
		}
	}
	return seen
}

// ObjectsThrough returns the objects as they apply through associations: once
// for each, the names that they require under the association's prefix.
func ObjectsThrough(associations []*ResourceTypeAssociation, objects []*ObjectDefinition) []*ObjectDefinition {
	var seen []*ObjectDefinition
	for _, association := range associations {
		for _, object := range objects {
			through := *object
			through.AssociationID, through.Prefix = association.ID, text.OrEmpty(association.Prefix)
			through.Required = make([]string, len(object.Required))
			for i, name := range object.Required {
				through.Required[i] = prefixed(text.OrEmpty(association.Prefix), name)
			}
			seen = append(seen, &through)
		}
	}
	return seen
}

// PropertiesOfObject returns the properties of an object as the object is seen:
// under the prefix that it is seen with, each knowing whether it is required.
func PropertiesOfObject(object *ObjectDefinition, properties []*PropertyDefinition) []*PropertyDefinition {
	seen := make([]*PropertyDefinition, len(properties))
	for i, property := range properties {
		through := *property
		through.AssociationID = object.AssociationID
		through.Name = prefixed(object.Prefix, property.BaseName)
		through.Required = slices.Contains(object.Required, through.Name)
		seen[i] = &through
	}
	return seen
}
