// Package resourcedb stores resources with their metadata, tags and
// capabilities, and the registry of capabilities. It uses metadefdb for
// resource types, and for the definitions that strict types enforce.
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

// Options are the operator's rules.
type Options struct {
	// CapabilityDiscovery says who may discover public capabilities. The
	// default is resource.DiscoveryAdmin.
	CapabilityDiscovery resource.CapabilityDiscovery
	// CapabilityDefaultVisibility is the visibility of capabilities that are
	// registered without one, such as on first use. The default is
	// access.Private.
	CapabilityDefaultVisibility access.Visibility
	// CapabilityRegistration says how names enter the registry. The default is
	// resource.RegisterOnUse.
	CapabilityRegistration resource.CapabilityRegistration
	// ProtectedMetadataKeys are the keys that, by default, only administrators
	// and services may write, on every resource.
	ProtectedMetadataKeys []string
	// Limits are the limits on writes. The default is resource.DefaultLimits.
	Limits *resource.Limits
	// ResidentBytes is the maximum memory for resources, in bytes. 0 means
	// DefaultResidentBytes. A negative value keeps none in memory.
	ResidentBytes int64
	// ResidentFrom is the approximate number of metadata items from which
	// resources are kept in memory. 0 means defaultResidentFrom. With a
	// negative value, only LoadResources loads them.
	ResidentFrom int64
}

// ResourceStore reads and writes resources.
type ResourceStore struct {
	*sqldb.DB
	metadefs *metadefdb.MetadefStore
	options  Options
	limits   resource.Limits
	walk     query.Walk
	memory   *copies.Copy[heldResources] // nil if resources are not kept in memory
}

// New returns the store of the resources in a database.
func New(db *sqldb.DB, metadefs *metadefdb.MetadefStore, options Options) *ResourceStore {
	limits := resource.DefaultLimits()
	s := &ResourceStore{DB: db, metadefs: metadefs, options: options,
		limits: *cmp.Or(options.Limits, &limits), walk: query.TextWalk}
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
