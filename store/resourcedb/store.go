// Package resourcedb keeps resources with their metadata, tags and
// capabilities, and the registry of capabilities. It uses metadefdb for the
// resource types that resources name and for the definitions that strict types
// are held to.
package resourcedb

import (
	"cmp"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/query"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	copies "github.com/cadastre-dev/cadastre/store/resident"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// Options are the rules of an operator.
type Options struct {
	// CapabilityDiscovery is who discovers public capabilities; empty is
	// resource.DiscoveryAdmin.
	CapabilityDiscovery resource.CapabilityDiscovery
	// CapabilityDefaultVisibility is that of a capability whose name is
	// registered by its first use; empty is access.Private.
	CapabilityDefaultVisibility access.Visibility
	// CapabilityRegistration is how a name comes into the registry; empty is
	// resource.RegisterOnUse.
	CapabilityRegistration resource.CapabilityRegistration
	// ProtectedMetadataKeys are those that only administrators and services
	// write, on every resource.
	ProtectedMetadataKeys []string
	// Limits bound what is written; nil is resource.DefaultLimits.
	Limits *resource.Limits
	// ResidentBytes is how much memory resources take at most to be kept there; 0 is
	// DefaultResidentBytes. Less than 0 keeps none.
	ResidentBytes int64
	// ResidentFrom is from how many metadata items on resources are kept in memory,
	// about; 0 is DefaultResidentFrom. Less than 0 waits to be asked to, by
	// LoadResources.
	ResidentFrom int64
}

// ResourceStore reads and writes resources.
type ResourceStore struct {
	*sqldb.DB
	metadefs *metadefdb.MetadefStore
	options  Options
	limits   resource.Limits
	walk     query.Walk
	memory   *copies.Copy[heldResources] // nil where none are kept
}

// New returns the resources of a database.
func New(db *sqldb.DB, metadefs *metadefdb.MetadefStore, options Options) *ResourceStore {
	limits := resource.DefaultLimits()
	s := &ResourceStore{DB: db, metadefs: metadefs, options: options, limits: *cmp.Or(options.Limits, &limits), walk: query.TextWalk}
	db.AddAudienceReader(change.Resource, s.resourceAudiences)
	db.AddAudienceReader(change.Capability, s.capabilityAudiences)
	if options.ResidentBytes >= 0 {
		s.keepResources()
	}
	return s
}

// Discovers reports whether a viewer may read capabilities.
func (s *ResourceStore) Discovers(viewer access.Viewer) bool {
	return resource.MayDiscover(viewer, s.options.CapabilityDiscovery) == nil
}
