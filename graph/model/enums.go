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
