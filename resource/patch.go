package resource

import (
	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Patch is a change of a resource's own fields.
type Patch struct {
	UUID        string
	NewName     metadef.Change[*string]
	Description metadef.Change[*string]
	Visibility  metadef.Change[*access.Visibility] // cleared: private
	Parent      metadef.Change[*string]            // a uuid; cleared: no parent
	Revision    *int
}

// Check notes everything that is wrong with the patch in itself.
func (p Patch) Check(problems *problem.Problems, path string) {
	if p.NewName.Set && p.NewName.Value == nil {
		problems.Add(problem.Join(path, "newName"), "must not be null")
	} else if p.NewName.Set {
		text.Check(problems, problem.Join(path, "newName"), *p.NewName.Value, 1, MaxResourceName)
	}
	if p.Description.Set && p.Description.Value != nil {
		text.Check(problems, problem.Join(path, "description"), *p.Description.Value, 0, MaxResourceDescription)
	}
	if p.Visibility.Set && p.Visibility.Value != nil {
		access.CheckVisibility(*p.Visibility.Value, problem.Join(path, "visibility"), problems)
	}
}
