package model

import "github.com/cadastre-dev/cadastre/placement"

// MaxUnplaced is the maximum number of consumers that Unplaced lists for one
// failure or plan.
const MaxUnplaced = 100

// Failure is a loss of trees of a world.
type Failure struct {
	*placement.Failure
	World *placement.World
}

// Root returns the root of the tree, nil if several trees fail together.
func (f *Failure) Root() *ResourceProvider { return ProviderIn(f.World, f.Failure.Root) }

// Survives reports whether all consumers fit elsewhere.
func (f *Failure) Survives() bool { return len(f.Failure.Unplaced) == 0 }

// UnplacedCount returns the number of consumers that do not fit elsewhere. It
// counts consumers of a what-if, too.
func (f *Failure) UnplacedCount() int { return len(f.Failure.Unplaced) }

// FailuresIn returns the losses of a world as nodes.
func FailuresIn(world *placement.World, failures []*placement.Failure) []*Failure {
	nodes := make([]*Failure, len(failures))
	for i, failure := range failures {
		nodes[i] = &Failure{failure, world}
	}
	return nodes
}

// Unplaced returns the stored consumers that do not fit elsewhere, MaxUnplaced at
// most. Consumers that exist only in a what-if are not listed.
func (f *Failure) Unplaced() []*placement.Unplaced { return firstUnplaced(f.Failure.Unplaced) }

// firstUnplaced returns the first stored consumers of a list, MaxUnplaced at most.
func firstUnplaced(unplaced []placement.Unplaced) []*placement.Unplaced {
	nodes := make([]*placement.Unplaced, 0, min(len(unplaced), MaxUnplaced))
	for i := range unplaced {
		if len(nodes) < MaxUnplaced && placement.IsStored(unplaced[i].Consumer) {
			nodes = append(nodes, &unplaced[i])
		}
	}
	return nodes
}

// FailureConnection is a page of losses. UnsurvivedCount is the number of
// losses in the whole list for which a consumer does not fit elsewhere.
type FailureConnection struct {
	*Connection[Failure]
	UnsurvivedCount int
}

// Roots returns the roots of the page's losses.
func (c *FailureConnection) Roots() []*ResourceProvider {
	return rootsAmong(c.Page.Items)
}

// Unplaced returns the listed consumers of the page's losses.
func (c *FailureConnection) Unplaced() []*placement.Unplaced {
	var unplaced []*placement.Unplaced
	for _, failure := range c.Page.Items {
		unplaced = append(unplaced, failure.Unplaced()...)
	}
	return unplaced
}
