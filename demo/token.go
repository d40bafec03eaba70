package demo

import "github.com/cadastre-dev/cadastre/catalog"

// The tokens of a demo, known to everyone.
const (
	AdminToken  = "demo-admin"
	MemberToken = "demo-member"
	ReaderToken = "demo-reader"
)

// Viewers are whom the tokens stand for: an administrator, and a member and a
// reader of the project demo.
func Viewers() map[string]catalog.Viewer {
	return map[string]catalog.Viewer{
		AdminToken:  {UserID: "demo-admin", ProjectID: "demo", Roles: []string{catalog.RoleAdmin, catalog.RoleMember, catalog.RoleReader}},
		MemberToken: {UserID: "demo-member", ProjectID: "demo", Roles: []string{catalog.RoleMember, catalog.RoleReader}},
		ReaderToken: {UserID: "demo-reader", ProjectID: "demo", Roles: []string{catalog.RoleReader}},
	}
}
