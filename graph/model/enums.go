package model

import (
	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/audit"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
)

// ViolationRule is a value of the enum of this name.
type ViolationRule string

// ResourceClauseKind is a value of the enum of this name.
type ResourceClauseKind string

// RuleOf returns the rule of a violation, for which package metadef has the
// name of a field.
func RuleOf(violation *metadef.Violation) ViolationRule {
	return ViolationRule(access.EnumName(violation.Rule))
}

// RuleNamed returns the name that package metadef has for a rule; nil for none.
func RuleNamed(rule *ViolationRule) *string {
	for _, name := range metadef.RuleNames() {
		if rule != nil && access.EnumName(name) == string(*rule) {
			return &name
		}
	}
	return nil
}

// KindOf returns the kind of a condition of a filter, for which package resource
// has the name of a field.
func KindOf(clause *resource.Clause) ResourceClauseKind {
	return ResourceClauseKind(access.EnumName(clause.Kind))
}

// OperationOf returns the operation that an event tells of, and nil for one that
// no longer exists.
func OperationOf(event *audit.Event) *Operation {
	if _, ok := access.PermissionOf(event.Action); !ok {
		return nil
	}
	return new(Operation(access.EnumName(event.Action)))
}
