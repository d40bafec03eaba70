package demo

import "github.com/cadastre-dev/cadastre/access"

// The tokens of a demo, known to everyone.
const (
	AdminToken  = "demo-admin"
	MemberToken = "demo-member"
	ReaderToken = "demo-reader"
)

// Viewers returns the viewers that the tokens stand for: an administrator, and
// a member and a reader of the project demo.
func Viewers() map[string]access.Viewer {
	return map[string]access.Viewer{
		AdminToken:  {UserID: "demo-admin", ProjectID: "demo", Roles: []string{access.RoleAdmin, access.RoleMember, access.RoleReader}},
		MemberToken: {UserID: "demo-member", ProjectID: "demo", Roles: []string{access.RoleMember, access.RoleReader}},
		ReaderToken: {UserID: "demo-reader", ProjectID: "demo", Roles: []string{access.RoleReader}},
	}
}
