package catalog

// ResourcePatch is a change of a resource's own fields.
type ResourcePatch struct {
	UUID        string
	NewName     Change[*string]
	Description Change[*string]
	Visibility  Change[*Visibility] // cleared: private
	Parent      Change[*string]     // a uuid; cleared: no parent
	Revision    *int
}

// Check notes everything that is wrong with the patch in itself.
func (p ResourcePatch) Check(problems *Problems, path string) {
	if p.NewName.Set && p.NewName.Value == nil {
		problems.Add(joined(path, "newName"), "must not be null")
	} else if p.NewName.Set {
		CheckText(problems, joined(path, "newName"), *p.NewName.Value, 1, MaxResourceName)
	}
	if p.Description.Set && p.Description.Value != nil {
		CheckText(problems, joined(path, "description"), *p.Description.Value, 0, MaxResourceDescription)
	}
	if p.Visibility.Set && p.Visibility.Value != nil {
		checkVisibility(*p.Visibility.Value, joined(path, "visibility"), problems)
	}
}
