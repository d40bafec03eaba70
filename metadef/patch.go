package metadef

import (
	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// NamespacePatch is a change of a namespace's own fields.
type NamespacePatch struct {
	NewName     Change[*string]
	DisplayName Change[*string]
	Description Change[*string]
	Visibility  Change[*access.Visibility] // cleared: private
	Protected   Change[*bool]              // cleared: false
	Owner       Change[*string]            // cannot be cleared
}

// Apply changes a namespace: what the patch does not name stays as it is.
func (p NamespacePatch) Apply(namespace Namespace, path string) (Namespace, problem.Problems) {
	var problems problem.Problems
	input := func(change Change[*string], field string, least, most int) {
		if change.Set && change.Value != nil {
			text.Check(&problems, problem.Join(path, field), *change.Value, least, most)
		}
	}
	namespace.Name = RenamedAs(&problems, problem.Join(path, "newName"), namespace.Name, p.NewName)
	input(p.DisplayName, "displayName", 0, text.MaxName)
	if p.DisplayName.Set {
		namespace.Title = textOf(p.DisplayName.Value)
	}
	input(p.Description, "description", 0, MaxDescription)
	if p.Description.Set {
		namespace.Description = p.Description.Value
	}
	if p.Visibility.Set {
		namespace.Visibility = access.Private
		if p.Visibility.Value != nil {
			namespace.Visibility = *p.Visibility.Value
			access.CheckVisibility(namespace.Visibility, problem.Join(path, "visibility"), &problems)
		}
	}
	if p.Protected.Set {
		namespace.Protected = p.Protected.Value != nil && *p.Protected.Value
	}
	input(p.Owner, "owner", 1, MaxOwner)
	if p.Owner.Set && p.Owner.Value == nil {
		problems.Add(problem.Join(path, "owner"), "must not be null")
	} else if p.Owner.Set {
		namespace.Owner = *p.Owner.Value
	}
	return namespace, problems
}
