package access

import "github.com/cadastre-dev/cadastre/problem"

// Visibility says who sees a namespace or a resource.
type Visibility string

const Public Visibility = "PUBLIC" // everyone

const Private Visibility = "PRIVATE" // the owning project, those it is shared with, admins

func CheckVisibility(visibility Visibility, path string, problems *problem.Problems) {
	if visibility != Public && visibility != Private {
		problems.Add(path, "must be PUBLIC or PRIVATE")
	}
}
