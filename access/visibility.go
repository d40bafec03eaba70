package access

import "github.com/cadastre-dev/cadastre/problem"

// Visibility is who sees a namespace or a resource.
type Visibility string

// The two visibilities.
const (
	Public  Visibility = "PUBLIC"  // everyone
	Private Visibility = "PRIVATE" // the owning project, those it is shared with, admins
)

// CheckVisibility adds a problem for a visibility that is neither of the two;
// nil is no visibility.
func CheckVisibility(problems *problem.Problems, path string, visibility *Visibility) {
	if visibility != nil && *visibility != Public && *visibility != Private {
		problems.Add(path, "must be PUBLIC or PRIVATE")
	}
}
