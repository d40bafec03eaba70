package access

import (
	"maps"
	"slices"
	"strings"
)

// At returns the viewer at a field of Query or Mutation, where the operator may
// let others do what its rule covers. It refuses nothing.
func (v Viewer) At(field string) Viewer {
	v.field = field
	return v
}

// MayUse reports whether the viewer may, by role, do what a field of Query or
// Mutation needs.
func (v Viewer) MayUse(field string) bool {
	permission, ok := PermissionOf(field)
	return ok && v.At(field).May(permission.Rule)
}

// Can reports whether there can be anything that the viewer may use a field of
// Query or Mutation on: by role or, where members of some projects may besides,
// as one of those. Members of the project that owns a namespace write it where
// ownersWrite is set.
func (v Viewer) Can(field string, ownersWrite bool) bool {
	if v.MayUse(field) {
		return true
	}
	switch permissions[field].Besides {
	case Editors:
		return v.Has(RoleMember)
	case Owners:
		return ownersWrite && v.Has(RoleMember) && v.ProjectID != ""
	}
	return false
}

// Rules returns the rules that cover what the viewer may do by role, sorted.
func (v Viewer) Rules() []Rule {
	return slices.DeleteFunc(AllRules(), func(rule Rule) bool { return !v.At("").May(rule) })
}

// AllRules returns all rules, sorted.
func AllRules() []Rule { return slices.Sorted(maps.Keys(rules)) }

// AllRoles returns all roles, sorted.
func AllRoles() []string { return slices.Sorted(slices.Values(readers)) }

// Operations returns the fields of Query and Mutation that the table holds,
// sorted.
func Operations() []string { return slices.Sorted(maps.Keys(permissions)) }

// EnumName returns the name that a role, a rule or a field has as a value of an
// enum: RESOURCES_WRITE_ANY for resources.writeAny.
func EnumName(name string) string {
	var out strings.Builder
	for _, r := range name {
		switch {
		case r == '.':
			r = '_'
		case r >= 'A' && r <= 'Z':
			out.WriteByte('_')
		}
		out.WriteRune(r)
	}
	return strings.ToUpper(out.String())
}

// FieldNamed returns the field of Query or Mutation that has a name as a value
// of an enum, "" for none.
func FieldNamed(enumName string) string { return fieldsByEnumName[enumName] }

// fieldsByEnumName are the fields that the table holds by their EnumName.
var fieldsByEnumName = func() map[string]string {
	fields := map[string]string{}
	for field := range permissions {
		fields[EnumName(field)] = field
	}
	return fields
}()

// UsedField returns the field of Query or Mutation that the viewer is at; empty for
// none.
func (v Viewer) UsedField() string { return v.field }
