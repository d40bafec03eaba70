package access

import (
	"context"
	"slices"

	"github.com/cadastre-dev/cadastre/problem"
)

// Roles a viewer can have. Admin may do everything; a service acts for the
// cloud itself (it may write placement and service-owned metadata); a member
// writes and a reader reads what belongs to the project.
const (
	RoleAdmin   = "admin"
	RoleMember  = "member"
	RoleReader  = "reader"
	RoleService = "service"
)

// Viewer is who is asking. The zero Viewer is nobody: it has no role and sees
// only what is public.
type Viewer struct {
	UserID    string
	ProjectID string
	Roles     []string

	policy *Policy // nil is the defaults
	field  string  // of Query or Mutation, that the viewer is at
}

// Has reports whether the viewer has the role.
func (v Viewer) Has(role string) bool { return slices.Contains(v.Roles, role) }

// IsAdmin reports whether the viewer is an administrator of the whole cloud.
func (v Viewer) IsAdmin() bool { return v.Has(RoleAdmin) }

// IsService reports whether the viewer acts for the cloud itself.
func (v Viewer) IsService() bool { return v.Has(RoleService) }

// CanRead reports whether the viewer has any of the four roles.
func (v Viewer) CanRead() bool {
	return v.IsAdmin() || v.IsService() || v.Has(RoleMember) || v.Has(RoleReader)
}

// Operator returns the viewer with the rights of who runs the cloud. It judges what
// an operator wrote, such as the keys of a flavor, for a viewer who receives only
// the result.
func (v Viewer) Operator() Viewer {
	v.Roles, v.policy = []string{RoleAdmin}, nil
	return v
}

// Equal reports whether two viewers are the same user of the same project with the
// same rights.
func (v Viewer) Equal(other Viewer) bool {
	return v.UserID == other.UserID && v.ProjectID == other.ProjectID &&
		slices.Equal(slices.Sorted(slices.Values(v.Roles)), slices.Sorted(slices.Values(other.Roles))) &&
		len(v.policy.Differences(other.policy)) == 0
}

type viewerKey struct{}

// WithViewer returns the context of a request of the viewer.
func WithViewer(ctx context.Context, v Viewer) context.Context {
	return context.WithValue(ctx, viewerKey{}, v)
}

// ViewerFrom returns the viewer of a request's context, and the zero Viewer
// where it has none.
func ViewerFrom(ctx context.Context) Viewer {
	v, _ := ctx.Value(viewerKey{}).(Viewer)
	return v
}

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
