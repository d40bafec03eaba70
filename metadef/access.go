package metadef

import (
	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
)

// NamespaceStanding is what a viewer is to a namespace that the viewer sees.
type NamespaceStanding struct {
	Viewer access.Viewer
	Owner  string     // the project that owns the namespace
	Role   MemberRole // of the viewer's project among its members; empty for none
	// OwnerWrites: members of the owning project write it, which the operator
	// allows.
	OwnerWrites bool
}

// MayManage tells whether the viewer may do everything with the namespace: share
// it, protect it, delete it.
func (s NamespaceStanding) MayManage() bool {
	return s.Viewer.May(access.RuleDefinitionsWrite) || s.OwnerWrites && s.Viewer.Has(access.RoleMember) && s.Viewer.ProjectID != "" && s.Viewer.ProjectID == s.Owner
}

// MayDefine tells whether the viewer may define in the namespace: properties,
// objects and tags, and what the namespace is called and described as.
func (s NamespaceStanding) MayDefine() bool {
	return s.MayManage() || s.Role == Editor && s.Viewer.Has(access.RoleMember)
}

// CheckManage refuses whoever may not manage the namespace. What says what was
// attempted.
func (s NamespaceStanding) CheckManage(what string) error {
	if s.MayManage() {
		return nil
	}
	return refuseDefining(s.OwnerWrites, what)
}

// CheckDefine refuses whoever may not define in the namespace. What says what
// was attempted.
func (s NamespaceStanding) CheckDefine(what string) error {
	if s.MayDefine() {
		return nil
	}
	return refuseDefining(s.OwnerWrites, what)
}

func refuseDefining(ownerWrites bool, what string) error {
	if ownerWrites {
		return problem.Refuse(problem.ErrForbidden, "only an administrator or a member of the owning project may %s", what)
	}
	return problem.Refuse(problem.ErrForbidden, "only an administrator may %s", what)
}

// MayWriteResourceTypes refuses whoever may not write resource types. What says
// what was attempted.
func MayWriteResourceTypes(v access.Viewer, what string) error {
	if v.May(access.RuleResourceTypesWrite) {
		return nil
	}
	return problem.Refuse(problem.ErrForbidden, "only an administrator may %s", what)
}

// MayCreateNamespaces refuses whoever creates no namespace at all: all but
// administrators and, where owners write, members of a project.
func MayCreateNamespaces(v access.Viewer, ownerWrites bool, what string) error {
	if v.May(access.RuleDefinitionsWrite) || ownerWrites && v.Has(access.RoleMember) && v.ProjectID != "" {
		return nil
	}
	return refuseDefining(ownerWrites, what)
}

// MayGiveNamespace refuses to make a project the owner of a namespace: members
// give to no other project than their own.
func MayGiveNamespace(v access.Viewer, project string) error {
	if v.May(access.RuleDefinitionsWrite) || v.ProjectID == project {
		return nil
	}
	return problem.Refuse(problem.ErrForbidden, "only an administrator may make another project the owner of a namespace")
}

// MayImportFrom refuses to import under the product's own origin: what it brings
// is upgraded with the product, which is for administrators to begin.
func MayImportFrom(v access.Viewer, origin *string) error {
	if v.May(access.RuleDefinitionsWrite) || origin == nil || *origin != OwnOrigin {
		return nil
	}
	return problem.Refuse(problem.ErrForbidden, "only an administrator may import under the origin %s", OwnOrigin)
}

// StrongerRole is the one of two roles that allows more.
func StrongerRole(a, b MemberRole) MemberRole {
	if a == Editor || b == Editor {
		return Editor
	}
	return max(a, b)
}
