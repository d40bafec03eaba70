package auth

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// knownRoles returns the sorted roles for the names from an identity service.
// It compares names exactly: with the mapping or, without one, with the roles
// themselves. It drops other names.
func knownRoles(names []string, mapping map[string]string) []string {
	var roles []string
	for _, name := range names {
		role := name
		if len(mapping) > 0 {
			role = mapping[name]
		}
		if checkRole(role) == nil && !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return roles
}

// checkRole returns an error for a string that is not a role.
func checkRole(name string) error {
	switch name {
	case access.RoleAdmin, access.RoleMember, access.RoleReader, access.RoleService:
		return nil
	}
	return fmt.Errorf("unknown role %q: the roles are admin, member, reader and service", name)
}

// checkMapping returns an error if a mapping leads to something other than a
// role.
func checkMapping(mapping map[string]string) error {
	for name, role := range mapping {
		if err := checkRole(role); err != nil {
			return fmt.Errorf("roles: %s: %w", name, err)
		}
	}
	return nil
}

// checkID returns an error for a string that cannot be the id of a user or a
// project in the database.
func checkID(id string) error {
	var problems problem.Problems
	text.Check(&problems, "id", id, 0, 255)
	if len(problems) > 0 {
		return errors.New(problems[0].Message)
	}
	return nil
}

// viewerOf returns a viewer with this user, project and roles. The token is
// unknown if an id is invalid, if the user is empty, or if the project is empty
// and no role is for the whole cloud.
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

// claimAt returns the claim whose name is the path, such as `a.b`. If there is
// none, it follows the parts between dots into nested claims, and returns nil
// if they lead to no claim.
func claimAt(claims map[string]any, path string) any {
	if value, ok := claims[path]; ok {
		return value
	}
	first, rest, _ := strings.Cut(path, ".")
	if inner, ok := claims[first].(map[string]any); ok && rest != "" {
		return claimAt(inner, rest)
	}
	return nil
}

// textsOf returns the strings of a claim that is a list, or the words of a
// claim that is a string. It returns nil for any other claim.
func textsOf(claim any) []string {
	switch claim := claim.(type) {
	case string:
		return strings.Fields(claim)
	case []any:
		var texts []string
		for _, member := range claim {
			if name, ok := member.(string); ok {
				texts = append(texts, name)
			}
		}
		return texts
	}
	return nil
}
