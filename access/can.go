package access

import (
	"maps"
	"slices"
	"strings"
)

// At returns the viewer as a user of a field of Query, Mutation or
// Subscription, because an operator's policy may override a rule for one field.
// At never refuses.
func (v Viewer) At(field string) Viewer {
	v.field = field
	return v
}

// MayUse reports whether the viewer's roles permit a field of Query, Mutation
// or Subscription.
func (v Viewer) MayUse(field string) bool {
	permission, ok := PermissionOf(field)
	return ok && v.At(field).May(permission.Rule)
}

// Can reports whether the viewer could use the field on at least one object, by
// role or by project membership. If ownersWrite is set, members of the project
// that owns a namespace may write it.
func (v Viewer) Can(field string, ownersWrite bool) bool {
	if v.MayUse(field) {
		return true
	}
	switch permissions[field].Besides {
	case editors:
		return v.Has(RoleMember)
	case owners:
		return ownersWrite && v.Has(RoleMember) && v.ProjectID != ""
	}
	return false
}

// Rules returns the rules that the viewer's roles permit, sorted.
func (v Viewer) Rules() []Rule {
	return slices.DeleteFunc(AllRules(), func(rule Rule) bool { return !v.At("").May(rule) })
}

// AllRules returns all rules, sorted.
func AllRules() []Rule { return slices.Sorted(maps.Keys(rules)) }

// AllRoles returns all roles, sorted.
func AllRoles() []string { return slices.Sorted(slices.Values(readers)) }

// Operations returns all fields in the table of permissions, sorted.
func Operations() []string { return slices.Sorted(maps.Keys(permissions)) }

// EnumName returns the enum value for a role, a rule or a field, for example
// RESOURCES_WRITE_ANY for resources.writeAny.
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

// FieldNamed returns the field of Query, Mutation or Subscription for an enum
// value, "" if there is none.
func FieldNamed(enumName string) string { return fieldsByEnumName[enumName] }

// fieldsByEnumName maps an EnumName to its field in the table of permissions.
var fieldsByEnumName = func() map[string]string {
	fields := map[string]string{}
	for field := range permissions {
		fields[EnumName(field)] = field
	}
	return fields
}()

// UsedField returns the field of Query, Mutation or Subscription that the
// viewer uses, empty for none.
func (v Viewer) UsedField() string { return v.field }
