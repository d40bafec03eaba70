package resource

import (
	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
)

// MayWriteForProject refuses a viewer who may not write the resources of a
// project. Members may write only for their project. The refusal names the object
// by the last argument.
func MayWriteForProject(v access.Viewer, projectID, what string) error {
	if v.May(access.RuleResourcesWriteAny) ||
		v.May(access.RuleResourcesWrite) && v.ProjectID != "" && v.ProjectID == projectID {
		return nil
	}
	return RefuseForeign(what)
}

// RefuseForeign returns the refusal of a write to an object of another project,
// with the given name of the object.
func RefuseForeign(what string) error {
	return problem.Refuse(problem.ErrForbidden, "%s belongs to another project", what)
}

// SeesProject reports whether a viewer knows of a project: it is the viewer's
// own, or the viewer may write the resources of any project.
func SeesProject(v access.Viewer, project string) bool {
	return project != "" && v.ProjectID == project || v.May(access.RuleResourcesWriteAny)
}

// CapabilityDiscovery says who may discover public capabilities.
type CapabilityDiscovery string

// Who may discover capabilities, in addition to administrators and services.
const (
	DiscoveryAdmin    CapabilityDiscovery = "admin" // the default
	DiscoveryEveryone CapabilityDiscovery = "everyone"
)

// MayDiscover refuses a viewer who may not discover capabilities at all.
// Administrators and services always may: services write capabilities and ask
// for hosts by them. Other readers may if the operator opens discovery.
func MayDiscover(v access.Viewer, discovery CapabilityDiscovery) error {
	if v.IsAdmin() || v.IsService() || discovery == DiscoveryEveryone && v.CanRead() {
		return nil
	}
	return problem.Refuse(problem.ErrForbidden, "capabilities can be discovered by administrators and services only").
		ForAll()
}

// CapabilityRegistration says how the name of a capability enters the registry.
type CapabilityRegistration string

// How names are registered.
const (
	RegisterOnUse      CapabilityRegistration = "on-use"   // on first use; the default
	RegisterExplicitly CapabilityRegistration = "explicit" // before first use
)

// Reach is the set of resources that a viewer may see: all, none, or every
// resource that has Visibility or belongs to Project. Project is "" if the
// viewer has none.
type Reach struct {
	All, None           bool
	Visibility, Project string
}

// ReachOf returns the set of resources that a viewer may see.
func ReachOf(v access.Viewer) Reach {
	switch {
	case !v.May(access.RuleResourcesRead):
		return Reach{None: true}
	case v.IsAdmin() || v.IsService():
		return Reach{All: true}
	}
	return Reach{Visibility: string(access.Public), Project: v.ProjectID}
}
