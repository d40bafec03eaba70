package resourcedb

import (
	"context"
	"sync"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
)

// mostBuckets is how many projects are remembered before those that wrote
// nothing lately are forgotten.
const mostBuckets = 10_000

// writeRates counts the writes of each project, in this process.
type writeRates struct {
	mu      sync.Mutex
	buckets map[string]*resource.TokenBucket
}

// mayWriteNow refuses with ErrRateLimited a viewer whose project writes
// resources too fast. Administrators and services are never too fast.
func (s *ResourceStore) mayWriteNow(ctx context.Context) error {
	viewer := access.ViewerFrom(ctx)
	rate := s.limits.Writes
	if rate.PerMinute <= 0 || viewer.IsAdmin() || viewer.IsService() {
		return nil
	}
	now := s.Clock()
	s.writes.mu.Lock()
	defer s.writes.mu.Unlock()
	if len(s.writes.buckets) >= mostBuckets {
		for project, bucket := range s.writes.buckets {
			if bucket.Full(rate, now) {
				delete(s.writes.buckets, project)
			}
		}
	}
	bucket := s.writes.buckets[viewer.ProjectID]
	if bucket == nil {
		if s.writes.buckets == nil {
			s.writes.buckets = map[string]*resource.TokenBucket{}
		}
		bucket = &resource.TokenBucket{}
		s.writes.buckets[viewer.ProjectID] = bucket
	}
	wait, ok := bucket.Take(rate, now)
	if ok {
		return nil
	}
	return problem.Refuse(problem.ErrRateLimited, "the project writes more than %d times a minute", rate.PerMinute).After(wait)
}
