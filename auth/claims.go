package auth

import (
	"errors"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// knownRoles gives the roles of a viewer out of the names that an identity
// service gave: those of the mapping, or, where there is none, those that are
// roles here. Others mean nothing here and are left out.
func knownRoles(names []string, mapping map[string]string) []string {
	var roles []string
	for _, name := range names {
		role := strings.ToLower(name)
		if len(mapping) > 0 {
			role = mapping[name]
		}
		if isRole(role) && !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return roles
}

func isRole(name string) bool {
	switch name {
	case access.RoleAdmin, access.RoleMember, access.RoleReader, access.RoleService:
		return true
	}
	return false
}

// checkID tells why a text is no id of a user or a project: what is written for
// them is kept in a database, which takes no other.
func checkID(id string) error {
	var problems problem.Problems
	text.Check(&problems, "id", id, 0, 255)
	if len(problems) > 0 {
		return errors.New(problems[0].Message)
	}
	return nil
}

// viewerOf makes a viewer, who needs an id, and a project unless the roles are
// those of the whole cloud.
func viewerOf(user, project string, roles []string) (access.Viewer, error) {
	viewer := access.Viewer{UserID: user, ProjectID: project, Roles: roles}
	if err := errors.Join(checkID(user), checkID(project)); err != nil {
		return access.Viewer{}, errUnknown().Because(err)
	}
	if user == "" || project == "" && !viewer.IsAdmin() && !viewer.IsService() {
		return access.Viewer{}, errUnknown()
	}
	return viewer, nil
}

// claimAt finds a claim by its name, or by the names on the way to it, with dots
// between them: `realm_access.roles`.
func claimAt(claims map[string]any, path string) any {
	if value, there := claims[path]; there {
		return value
	}
	first, rest, nested := strings.Cut(path, ".")
	if inner, isObject := claims[first].(map[string]any); nested && isObject {
		return claimAt(inner, rest)
	}
	return nil
}

// textsOf reads a claim that is a list of texts, or one text with spaces between.
func textsOf(claim any) []string {
	switch claim := claim.(type) {
	case string:
		return strings.Fields(claim)
	case []any:
		var texts []string
		for _, member := range claim {
			if text, isText := member.(string); isText {
				texts = append(texts, text)
			}
		}
		return texts
	}
	return nil
}
