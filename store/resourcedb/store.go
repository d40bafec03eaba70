// Package resourcedb keeps resources with their metadata, tags and
// capabilities, and the registry of capabilities. It uses metadefdb for the
// resource types that resources name and for the definitions that strict types
// are held to.
package resourcedb

import (
	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
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
	// Limits bound what is written.
	Limits resource.Limits
}

// ResourceStore reads and writes resources.
type ResourceStore struct {
	*sqldb.DB
	metadefs *metadefdb.MetadefStore
	options  Options
	limits   resource.Limits
	writes   writeRates
}

// New returns the resources of a database.
func New(db *sqldb.DB, metadefs *metadefdb.MetadefStore, options Options) *ResourceStore {
	return &ResourceStore{DB: db, metadefs: metadefs, options: options, limits: options.Limits}
}
