package access

import "github.com/cadastre-dev/cadastre/problem"

// MayReadPlacement refuses whoever may not read providers, inventories,
// allocations and candidates: those without any role.
func MayReadPlacement(v Viewer) error {
	if v.May(RulePlacementRead) {
		return nil
	}
	return problem.Refuse(problem.ErrForbidden, "reading placement needs the role reader, member, service or admin")
}

// MayWritePlacement refuses whoever may not write placement: all but
// administrators and services. What says what was attempted.
func MayWritePlacement(v Viewer, what string) error {
	if v.May(RulePlacementWrite) {
		return nil
	}
	return problem.Refuse(problem.ErrForbidden, "only an administrator or a service may %s", what)
}
