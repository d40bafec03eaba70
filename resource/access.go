package resource

import (
	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
)

// MayWriteResources refuses whoever writes no resource at all: all but
// administrators, services and members. What says what was attempted.
func MayWriteResources(v access.Viewer, what string) error {
	if v.May(access.RuleResourcesWrite) {
		return nil
	}
	return problem.Refuse(problem.ErrForbidden, "only an administrator, a service or a member may %s", what)
}

// MayWriteForProject refuses whoever may not write what belongs to a project:
// members write what is their own project's.
func MayWriteForProject(v access.Viewer, projectID, what string) error {
	if v.May(access.RuleResourcesWriteAny) || v.May(access.RuleResourcesWrite) && v.ProjectID != "" && v.ProjectID == projectID {
		return nil
	}
	return problem.Refuse(problem.ErrForbidden, "%s belongs to another project", what)
}

// MayWriteServiceMetadata refuses whoever does not write service-owned
// metadata.
func MayWriteServiceMetadata(v access.Viewer, what string) error {
	if v.WritesServiceMetadata() {
		return nil
	}
	return problem.Refuse(problem.ErrForbidden, "only an administrator or a service may %s", what)
}

// MayWriteCapabilities refuses whoever does not write the capabilities of
// resources: they are what the cloud says of itself, so users do not.
func MayWriteCapabilities(v access.Viewer, what string) error {
	if v.May(access.RuleCapabilitiesWrite) {
		return nil
	}
	return problem.Refuse(problem.ErrForbidden, "only an administrator or a service may %s", what)
}

// CapabilityDiscovery says who may discover public capabilities.
type CapabilityDiscovery string

const (
	DiscoveryAdmin    CapabilityDiscovery = "admin" // the default
	DiscoveryEveryone CapabilityDiscovery = "everyone"
)

// MayDiscover refuses whoever may not discover capabilities at all: all but
// administrators, until the operator opens discovery.
func MayDiscover(v access.Viewer, discovery CapabilityDiscovery) error {
	if v.IsAdmin() || discovery == DiscoveryEveryone && v.CanRead() {
		return nil
	}
	return problem.Refuse(problem.ErrForbidden, "capabilities can be discovered by administrators only")
}

// MaySeePrivateCapabilities tells whether the viewer sees the names and values
// of private capabilities.
func MaySeePrivateCapabilities(v access.Viewer) bool { return v.May(access.RuleCapabilitiesPrivate) }

// MayManageCapabilities refuses whoever does not manage the registry of
// capabilities: all but administrators.
func MayManageCapabilities(v access.Viewer, what string) error {
	if v.May(access.RuleCapabilityRegistry) {
		return nil
	}
	return problem.Refuse(problem.ErrForbidden, "only an administrator may %s", what)
}

// CapabilityRegistration says how the name of a capability comes into the
// registry.
type CapabilityRegistration string

const (
	RegisterOnUse      CapabilityRegistration = "on-use"   // by its first use; the default
	RegisterExplicitly CapabilityRegistration = "explicit" // before its first use
)
