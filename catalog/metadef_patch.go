package catalog

// NamespacePatch is a change of a namespace's own fields.
type NamespacePatch struct {
	NewName     Change[*string]
	DisplayName Change[*string]
	Description Change[*string]
	Visibility  Change[*Visibility] // cleared: private
	Protected   Change[*bool]       // cleared: false
	Owner       Change[*string]     // cannot be cleared
}

// Apply changes a namespace: what the patch does not name stays as it is.
func (p NamespacePatch) Apply(namespace Namespace, path string) (Namespace, Problems) {
	var problems Problems
	text := func(change Change[*string], field string, least, most int) {
		if change.Set && change.Value != nil {
			CheckText(&problems, joined(path, field), *change.Value, least, most)
		}
	}
	namespace.Name = RenamedAs(&problems, joined(path, "newName"), namespace.Name, p.NewName)
	text(p.DisplayName, "displayName", 0, MaxName)
	if p.DisplayName.Set {
		namespace.Title = textOf(p.DisplayName.Value)
	}
	text(p.Description, "description", 0, MaxDescription)
	if p.Description.Set {
		namespace.Description = p.Description.Value
	}
	if p.Visibility.Set {
		namespace.Visibility = Private
		if p.Visibility.Value != nil {
			namespace.Visibility = *p.Visibility.Value
			checkVisibility(namespace.Visibility, joined(path, "visibility"), &problems)
		}
	}
	if p.Protected.Set {
		namespace.Protected = p.Protected.Value != nil && *p.Protected.Value
	}
	text(p.Owner, "owner", 1, MaxOwner)
	if p.Owner.Set && p.Owner.Value == nil {
		problems.Add(joined(path, "owner"), "must not be null")
	} else if p.Owner.Set {
		namespace.Owner = *p.Owner.Value
	}
	return namespace, problems
}
