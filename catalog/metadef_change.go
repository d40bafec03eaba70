package catalog

// Apply changes an object: what the change does not name stays as it is. A name
// that is required must be a property of the object as it is to be.
func (c ObjectChange) Apply(current DocumentObject, path string) (DocumentObject, Problems) {
	found := findings{mode: Strict}
	object := current
	object.Name = RenamedAs(&found.problems, joined(path, "newName"), current.Name, c.NewName)
	if c.Description.Set {
		object.Description = c.Description.Value
		if object.Description != nil {
			CheckText(&found.problems, joined(path, "description"), *object.Description, 0, MaxDefinition)
		}
	}
	if c.Properties.Set {
		object.Properties = propertiesOf(c.Properties.Value, joined(path, "properties"), &found)
	}
	required, at := current.Required, joined(path, "properties")
	if c.Required.Set {
		required, at = c.Required.Value, joined(path, "required")
	}
	if c.Required.Set || c.Properties.Set {
		var paths []string
		for i := range required {
			if c.Required.Set {
				paths = append(paths, indexed(at, i))
			} else {
				paths = append(paths, at)
			}
		}
		object.Required = checkRequired(required, paths, object.Properties, &found)
	}
	return object, found.problems
}
