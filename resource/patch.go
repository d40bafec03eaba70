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

// Check adds everything that is wrong with the patch in itself.
func (p Patch) Check(problems *problem.Problems, path string) {
	if p.NewName.Set && p.NewName.Value == nil {
		problems.Add(problem.Join(path, "newName"), "must not be null")
	}
	text.CheckOptional(problems, problem.Join(path, "newName"), p.NewName.Value, 1, MaxName)
	text.CheckOptional(problems, problem.Join(path, "description"), p.Description.Value, 0, MaxDescription)
	access.CheckVisibility(problems, problem.Join(path, "visibility"), p.Visibility.Value)
}
