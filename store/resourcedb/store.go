// Package resourcedb keeps resources with their metadata, tags and
// capabilities, and the registry of capabilities. It uses metadefdb for the
// resource types that resources name and for the definitions that strict types
// are held to.
package resourcedb

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/problem"
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
	writes   writeRates
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

// maxLimiters is how many projects are remembered before those that wrote
// nothing lately are forgotten.
const maxLimiters = 10_000

// writeRates limits the writes of each project, in this process.
type writeRates struct {
	mu       sync.Mutex
	limiters map[string]*rate.Limiter
}

// mayWriteNow refuses with ErrRateLimited a viewer whose project writes
// resources too fast. Administrators and services are never too fast.
func (s *ResourceStore) mayWriteNow(ctx context.Context) error {
	viewer := access.ViewerFrom(ctx)
	limit := s.limits.Writes
	if s.IsDone(ctx) { // nothing is written
		return nil
	}
	if limit.PerMinute <= 0 || viewer.IsAdmin() || viewer.IsService() {
		return nil
	}
	now := s.Clock()
	limiter := s.writes.of(viewer.ProjectID, limit, now)
	if limiter.AllowN(now, 1) {
		return nil
	}
	wait := time.Duration((1 - limiter.TokensAt(now)) / float64(limiter.Limit()) * float64(time.Second))
	return problem.Refuse(problem.ErrRateLimited, "too many writes: a project may write %d times a minute", limit.PerMinute).After(wait)
}

// of returns the limiter of a project, which starts full.
func (w *writeRates) of(project string, limit resource.WriteRate, now time.Time) *rate.Limiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	burst := max(1, limit.Burst)
	if len(w.limiters) >= maxLimiters {
		maps.DeleteFunc(w.limiters, func(_ string, held *rate.Limiter) bool { return held.TokensAt(now) >= float64(burst) })
	}
	limiter := w.limiters[project]
	if limiter == nil {
		if w.limiters == nil {
			w.limiters = map[string]*rate.Limiter{}
		}
		limiter = rate.NewLimiter(rate.Limit(limit.PerMinute)/60, burst)
		w.limiters[project] = limiter
	}
	return limiter
}
