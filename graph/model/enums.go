package model

import (
	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/audit"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
)

// ViolationRule is a value of the enum of the same name.
type ViolationRule string

// ResourceClauseKind is a value of the enum of the same name.
type ResourceClauseKind string

// RuleOf returns the rule of a violation, which package metadef names in camel
// case.
func RuleOf(violation *metadef.Violation) ViolationRule {
	return ViolationRule(access.EnumName(violation.Rule))
}

// RuleNamed returns the name of a rule in package metadef, or nil.
func RuleNamed(rule *ViolationRule) *string {
	for _, name := range metadef.RuleNames() {
		if rule != nil && access.EnumName(name) == string(*rule) {
			return &name
		}
	}
	return nil
}

// KindOf returns the kind of a condition of a filter, which package resource
// names in camel case.
func KindOf(clause *resource.Clause) ResourceClauseKind {
	return ResourceClauseKind(access.EnumName(clause.Kind))
}

// OperationOf returns the operation of an audit event, or nil if the operation
// no longer exists.
func OperationOf(event *audit.Event) *Operation {
	if _, ok := access.PermissionOf(event.Action); !ok {
		return nil
	}
	return new(Operation(access.EnumName(event.Action)))
}

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

// RowError is one error of an item of a bulk mutation.
type RowError struct {
	Code    RowErrorCode
	Field   *string
	Message string
}

// RowErrorCode is the kind of refusal of an item of a bulk mutation: the code
// that a separate mutation would return.
type RowErrorCode string
