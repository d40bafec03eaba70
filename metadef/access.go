package metadef

import (
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
)

// NamespaceStanding has the facts that decide a viewer's rights in a visible
// namespace.
type NamespaceStanding struct {
	Viewer access.Viewer
	Owner  string     // the project that owns the namespace
	Role   MemberRole // of the viewer's project as a member; "" for none
	// OwnerWrites allows members of the owning project to write the namespace.
	OwnerWrites bool
	Protected   bool // whether the namespace is protected
}

// At returns the standing for a field of Mutation; see access.Viewer.At.
func (s NamespaceStanding) At(field string) NamespaceStanding {
	s.Viewer = s.Viewer.At(field)
	return s
}

// MayManage reports whether the viewer may do everything with the namespace,
// including sharing, protecting and deleting it.
func (s NamespaceStanding) MayManage() bool {
	return s.Viewer.May(access.RuleDefinitionsWrite) ||
		s.OwnerWrites && s.Viewer.Has(access.RoleMember) && s.Viewer.ProjectID != "" && s.Viewer.ProjectID == s.Owner
}

// MayDefine reports whether the viewer may write properties, objects and tags
// in the namespace, and its display name and description.
func (s NamespaceStanding) MayDefine() bool {
	return s.MayManage() || s.Role == Editor && s.Viewer.Has(access.RoleMember)
}

// MayDelete reports whether the viewer may delete the namespace or one of its
// associations. It is false while the namespace is protected.
func (s NamespaceStanding) MayDelete() bool { return s.MayManage() && !s.Protected }

// MayUndefine reports whether the viewer may delete definitions in the
// namespace. It is false while the namespace is protected.
func (s NamespaceStanding) MayUndefine() bool { return s.MayDefine() && !s.Protected }

// CheckManage refuses a viewer who may not manage the namespace. field is the
// field of Mutation that the error names.
func (s NamespaceStanding) CheckManage(field string) error {
	if s.MayManage() {
		return nil
	}
	return s.refuse(field, "")
}

// CheckDefine refuses a viewer who may not define in the namespace. field is
// the field of Mutation that the error names.
func (s NamespaceStanding) CheckDefine(field string) error {
	if s.MayDefine() {
		return nil
	}
	return s.refuse(field, ", or the role member in a project that the namespace is shared with as EDITOR")
}

// CheckImport refuses a viewer who can import nothing: one who may not create
// namespaces and whose role does not allow editing any. field is the field of
// Mutation that the error names.
func (s NamespaceStanding) CheckImport(field string) error {
	if s.MayManage() || s.Viewer.Has(access.RoleMember) {
		return nil
	}
	return s.refuse(field, ", or the role member in a project that edits the namespace")
}

// CheckChange refuses editors a change that requires managing the namespace: of
// visibility, protection, owner or associations.
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

// MayGiveNamespace refuses to make a project other than the viewer's the owner
// of a namespace, unless the viewer may write all definitions.
func MayGiveNamespace(v access.Viewer, project string) error {
	if v.ProjectID == project {
		return nil
	}
	return v.Require(access.RuleDefinitionsWrite, "making another project the owner of a namespace")
}

// MayImportFrom refuses the origins of the product and of clouds to viewers who may
// not write all definitions. The product's upgrades, and syncs, write the content of
// their origin into namespaces of that origin, which a project could have shared.
func MayImportFrom(v access.Viewer, origin *string) error {
	if origin == nil || *origin != OwnOrigin && !strings.HasSuffix(*origin, cloudOrigins) {
		return nil
	}
	return v.Require(access.RuleDefinitionsWrite, "importing under the origin "+*origin)
}

// cloudOrigins ends the origins of namespaces that syncs import: the key of an
// origin.Scope of the kind definitions.
const cloudOrigins = "/definitions"

// StrongerRole returns the role that allows more.
func StrongerRole(a, b MemberRole) MemberRole {
	if a == Editor || b == Editor {
		return Editor
	}
	return max(a, b)
}

// Audience is the set of viewers of a namespace.
type Audience struct {
	Visibility access.Visibility
	Owner      string          // a project
	Members    map[string]bool // the known projects that it is shared with
}

// Includes reports whether a project sees the namespace. For "", it reports
// whether every project does.
func (a Audience) Includes(project string) bool {
	return a.Visibility == access.Public || a.Members[EveryProject] ||
		project != "" && (a.Owner == project || a.Members[project])
}

// IncludesViewer reports whether a viewer sees the namespace.
func (a Audience) IncludesViewer(v access.Viewer) bool {
	return v.May(access.RuleDefinitionsRead) && (v.IsAdmin() || a.Includes(v.ProjectID))
}

// KnowsType reports whether a viewer knows a resource type in any case: if the
// type is protected, if an administrator created it, or if the viewer sees every
// namespace. Other viewers know a type by a namespace or a resource that they see.
func KnowsType(v access.Viewer, isProtected, isCreated bool) bool {
	return isProtected || isCreated || v.IsAdmin() && v.May(access.RuleDefinitionsRead)
}
