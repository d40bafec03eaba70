// Package access defines viewers and their rights: the table of permissions, an
// operator's policy, and visibility.
package access

import (
	"context"
	"slices"

	"github.com/cadastre-dev/cadastre/problem"
)

// Roles of viewers, with their default rights. An admin may do everything but
// exceed limits. A service acts for the cloud itself: it may write placement,
// capabilities, and the resources and service-owned metadata of all projects. A
// member may write the resources of its project. Every role may read what is
// visible to its project. See policy.go for the table.
const (
	RoleAdmin   = "admin"
	RoleMember  = "member"
	RoleReader  = "reader"
	RoleService = "service"
)

// Viewer is the author of a request. The zero Viewer has no role and sees no
// object, or public objects if a policy lets every viewer read.
type Viewer struct {
	UserID    string
	ProjectID string
	Roles     []string

	policy *Policy // nil for the defaults
	field  string  // of Query, Mutation or Subscription that the viewer uses; see At
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

// Operator returns the viewer with the rights of the cloud's operator. Cadastre
// evaluates an operator's input, such as the keys of a flavor, as that viewer.
// The original viewer receives only the result.
func (v Viewer) Operator() Viewer {
	v.Roles, v.policy = []string{RoleAdmin}, nil
	return v
}

// Equal reports whether two viewers have the same user, project and rights.
func (v Viewer) Equal(other Viewer) bool {
	return v.UserID == other.UserID && v.ProjectID == other.ProjectID &&
		slices.Equal(slices.Sorted(slices.Values(v.Roles)), slices.Sorted(slices.Values(other.Roles))) &&
		len(v.policy.Differences(other.policy)) == 0
}

type viewerKey struct{}

// WithViewer returns a context that carries the viewer.
func WithViewer(ctx context.Context, v Viewer) context.Context {
	return context.WithValue(ctx, viewerKey{}, v)
}

// ViewerFrom returns the viewer of a request's context, the zero Viewer if the
// context has none.
func ViewerFrom(ctx context.Context) Viewer {
	v, _ := ctx.Value(viewerKey{}).(Viewer)
	return v
}

// Visibility determines who sees a namespace or a resource.
type Visibility string

// The two visibilities.
const (
	Public  Visibility = "PUBLIC"  // everyone
	Private Visibility = "PRIVATE" // its project, projects that it is shared with, admins, and for resources services
)

// CheckVisibility adds a problem for an unknown visibility. It ignores nil.
func CheckVisibility(problems *problem.Problems, path string, visibility *Visibility) {
	if visibility != nil && *visibility != Public && *visibility != Private {
		problems.Add(path, "must be PUBLIC or PRIVATE")
	}
}
