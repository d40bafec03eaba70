package metadef

import (
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Apply changes an object: what the change does not name stays as it is. A name
// that is required must be a property of the object as it is to be.
func (c ObjectChange) Apply(current DocumentObject, path string) (DocumentObject, problem.Problems) {
	found := findings{mode: Strict}
	object := current
	object.Name = RenamedAs(&found.problems, problem.Join(path, "newName"), current.Name, c.NewName)
	if c.Description.Set {
		object.Description = c.Description.Value
		if object.Description != nil {
			text.Check(&found.problems, problem.Join(path, "description"), *object.Description, 0, MaxDefinition)
		}
	}
	if c.Properties.Set {
		object.Properties = propertiesOf(c.Properties.Value, problem.Join(path, "properties"), &found)
	}
	required, at := current.Required, problem.Join(path, "properties")
	if c.Required.Set {
		required, at = c.Required.Value, problem.Join(path, "required")
	}
	if c.Required.Set || c.Properties.Set {
		var paths []string
		for i := range required {
			if c.Required.Set {
				paths = append(paths, problem.Index(at, i))
			} else {
				paths = append(paths, at)
			}
		}
		object.Required = checkRequired(required, paths, object.Properties, &found)
	}
	return object, found.problems
}
