package model

import "github.com/cadastre-dev/cadastre/access"

// Role is a role as the schema names it.
type Role string

// AccessRule is a rule of the table of permissions as the schema names it.
type AccessRule string

// Operation is a field of Query, Mutation or Subscription as the schema names
// it.
type Operation string

// RolesOf returns the roles of a viewer, sorted.
func RolesOf(viewer access.Viewer) []Role {
	roles := []Role{}
	for _, role := range access.AllRoles() {
		if viewer.Has(role) {
			roles = append(roles, Role(access.EnumName(role)))
		}
	}
	return roles
}

// RulesOf returns the rules that a viewer's roles let it use, sorted.
func RulesOf(viewer access.Viewer) []AccessRule {
	rules := []AccessRule{}
	for _, rule := range viewer.Rules() {
		rules = append(rules, AccessRule(access.EnumName(string(rule))))
	}
	return rules
}

// Field returns the name of the field, or "" for an unknown operation.
func (o Operation) Field() string { return access.FieldNamed(string(o)) }
