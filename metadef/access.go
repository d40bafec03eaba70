package metadef

import (
	"iter"

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
	Protected   bool // whether the namespace is protected
}

// At returns the standing at a field of Mutation.
func (s NamespaceStanding) At(field string) NamespaceStanding {
	s.Viewer = s.Viewer.At(field)
	return s
}

// MayManage reports whether the viewer may do everything with the namespace:
// share it, protect it, delete it.
func (s NamespaceStanding) MayManage() bool {
	return s.Viewer.May(access.RuleDefinitionsWrite) || s.OwnerWrites && s.Viewer.Has(access.RoleMember) && s.Viewer.ProjectID != "" && s.Viewer.ProjectID == s.Owner
}

// MayDefine reports whether the viewer may define in the namespace: properties,
// objects and tags, and what the namespace is called and described as.
func (s NamespaceStanding) MayDefine() bool {
	return s.MayManage() || s.Role == Editor && s.Viewer.Has(access.RoleMember)
}

// MayDelete reports whether the viewer may delete the namespace, or what it takes
// the same to delete: nobody may while it is protected.
func (s NamespaceStanding) MayDelete() bool { return s.MayManage() && !s.Protected }

// MayUndefine reports whether the viewer may delete what is defined in the
// namespace: nobody may while it is protected.
func (s NamespaceStanding) MayUndefine() bool { return s.MayDefine() && !s.Protected }

// CheckManage refuses whoever may not manage the namespace, at a field of
// Mutation.
func (s NamespaceStanding) CheckManage(field string) error {
	if s.MayManage() {
		return nil
	}
	return s.refuse(field, "")
}

// CheckDefine refuses whoever may not define in the namespace, at a field of
// Mutation.
func (s NamespaceStanding) CheckDefine(field string) error {
	if s.MayDefine() {
		return nil
	}
	return s.refuse(field, ", or the role member in a project with EDITOR")
}

// CheckImport refuses whoever can import nothing: neither may they create
// namespaces, nor can their project be one that edits some.
func (s NamespaceStanding) CheckImport(field string) error {
	if s.MayManage() || s.Viewer.Has(access.RoleMember) {
		return nil
	}
	return s.refuse(field, ", or the role member in a project that edits the namespace")
}

// CheckChange refuses a change of a namespace to those who define in it, where it
// is one of what takes whoever manages it: visibility, protection, owner and
// associations.
func (s NamespaceStanding) CheckChange(before, after *Document) error {
	if s.MayManage() || after == nil {
		return nil
	}
	managed := func(d *Document) *Document {
		return &Document{Visibility: d.Visibility, Protected: d.Protected, Owner: d.Owner, Associations: d.Associations}
	}
	if changes := Differences(managed(before), managed(after)); len(changes) > 0 {
		return s.refuse("an import that "+changes[0], "")
	}
	return nil
}

func (s NamespaceStanding) refuse(field, besides string) error {
	who := s.Viewer.RolesThatMay(access.RuleDefinitionsWrite)
	if s.OwnerWrites {
		who += ", or the role member in the project that owns the namespace"
	}
	return problem.Refuse(problem.ErrForbidden, "%s needs %s", field, who+besides)
}

// MayGiveNamespace refuses to make a project the owner of a namespace: members
// give to no other project than their own.
func MayGiveNamespace(v access.Viewer, project string) error {
	if v.ProjectID == project {
		return nil
	}
	return v.Require(access.RuleDefinitionsWrite, "making another project the owner of a namespace")
}

// MayImportFrom refuses viewers who are not administrators and import under the
// product's own origin, whose namespaces are upgraded with the product.
func MayImportFrom(v access.Viewer, origin *string) error {
	if origin == nil || *origin != OwnOrigin {
		return nil
	}
	return v.Require(access.RuleDefinitionsWrite, "importing under the origin "+OwnOrigin)
}

// StrongerRole returns the one of two roles that allows more.
func StrongerRole(a, b MemberRole) MemberRole {
	if a == Editor || b == Editor {
		return Editor
	}
	return max(a, b)
}

// Audience is who sees a namespace.
type Audience struct {
	Visibility access.Visibility
	Owner      string          // a project
	Members    map[string]bool // the projects that it is shared with, as far as they are known
}

// Includes reports whether a project sees the namespace; without one, whether
// every project does.
func (a Audience) Includes(project string) bool {
	return a.Visibility == access.Public || a.Members[EveryProject] || project != "" && (a.Owner == project || a.Members[project])
}

// IncludesViewer reports whether a viewer sees the namespace.
func (a Audience) IncludesViewer(v access.Viewer) bool {
	return v.May(access.RuleDefinitionsRead) && (v.IsAdmin() || a.Includes(v.ProjectID))
}

// KnowsType reports whether a viewer knows a resource type by what is defined: a
// protected one, one that an administrator created, or one of a namespace that
// the viewer sees. A viewer who sees a resource of a type knows the type, too.
func KnowsType(v access.Viewer, isProtected, isCreated bool, namespaces iter.Seq[Audience]) bool {
	if isProtected || isCreated || v.IsAdmin() && v.May(access.RuleDefinitionsRead) {
		return true
	}
	for namespace := range namespaces {
		if namespace.IncludesViewer(v) {
			return true
		}
	}
	return false
}
