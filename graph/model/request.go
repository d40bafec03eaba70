package model

import (
	"cmp"
	"slices"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
)

// PlacementRequest is the placement request in the metadata of a resource.
type PlacementRequest struct {
	IsByOperator bool // operators wrote all required capabilities
	read         placement.SpecRequest
	capabilities []resource.Requirement
	wrong        []KeyProblem
}

// KeyProblem is a problem of a metadata key. A nil key means all keys.
type KeyProblem struct {
	Key     *string
	Message string
}

// sortKey returns the key of the problem, or the empty string for all keys.
func (p KeyProblem) sortKey() string {
	if p.Key == nil {
		return ""
	}
	return *p.Key
}

// RequestHosts are the request's requirements for the resource of a root.
type RequestHosts struct {
	Requirements []resource.Requirement
}

// RequestIn returns the placement request in metadata, as a world reads it.
// Call CheckCapabilities next.
func RequestIn(world *placement.World, items []*resource.MetadataItem) *PlacementRequest {
	specs := make([]placement.ExtraSpec, len(items))
	byOperator := map[string]bool{}
	for i, item := range items {
		specs[i] = placement.ExtraSpec{Key: item.Key, Value: item.Value}
		byOperator[item.Key] = item.ByOperator
	}
	r := &PlacementRequest{IsByOperator: true, read: placement.ReadSpecs(world, specs)}
	add := func(key, message string) {
		one := KeyProblem{Message: message}
		if key != "" {
			one.Key = &key
		}
		r.wrong = append(r.wrong, one)
	}
	for _, one := range r.read.Problems {
		add(one.Key, one.Message)
	}
	for _, spec := range r.read.Capabilities {
		requirement := resource.Requirement{Key: spec.Key, Requirement: spec.Value}
		r.capabilities = append(r.capabilities, requirement)
		r.IsByOperator = r.IsByOperator && byOperator[spec.Key]
		var problems problem.Problems
		requirement.Condition(&problems, "")
		for _, one := range problems {
			add(spec.Key, one.Message)
		}
	}
	return r
}

// CheckCapabilities adds a problem for each required capability that is
// unknown. Unknown has the messages by capability name.
func (r *PlacementRequest) CheckCapabilities(unknown map[string]string) {
	for _, requirement := range r.capabilities {
		name, _ := requirement.Capability()
		if message, ok := unknown[name]; ok {
			r.wrong = append(r.wrong, KeyProblem{Key: &requirement.Key, Message: message})
		}
	}
	slices.SortStableFunc(r.wrong, func(a, b KeyProblem) int { return cmp.Compare(a.sortKey(), b.sortKey()) })
}

// Request returns the request without its requirements for hosts.
func (r *PlacementRequest) Request() placement.Request { return r.read.Request }

// Requirements returns the capabilities that the request requires.
func (r *PlacementRequest) Requirements() []resource.Requirement { return r.capabilities }

// Refusal returns an error with every problem of the request, or nil.
func (r *PlacementRequest) Refusal() error {
	var problems problem.Problems
	for _, one := range r.wrong {
		path := "metadata"
		if one.Key != nil {
			path = problem.Join(path, *one.Key)
		}
		problems.Add(path, "%s", one.Message)
	}
	return problems.Err()
}

// IsEmpty reports whether the metadata has no request: no key asks for
// anything, and no key is wrong.
func (r *PlacementRequest) IsEmpty() bool {
	return len(r.Resources()) == 0 && len(r.Groups()) == 0 && len(r.wrong) == 1 && r.wrong[0].Key == nil
}

// Resources returns the amounts of the unsuffixed group.
func (r *PlacementRequest) Resources() []placement.Amount { return r.read.Request.Unsuffixed.Resources }

// RequiredAll returns the traits that the unsuffixed group requires.
func (r *PlacementRequest) RequiredAll() []string { return r.read.Request.Unsuffixed.RequiredAll }

// RequiredAnySets returns the sets of traits that the unsuffixed group
// requires.
func (r *PlacementRequest) RequiredAnySets() []placement.TraitSet {
	return r.read.Request.Unsuffixed.RequiredAnySets
}

// Forbidden returns the traits that the unsuffixed group forbids.
func (r *PlacementRequest) Forbidden() []string { return r.read.Request.Unsuffixed.Forbidden }

// Groups returns the groups with a suffix.
func (r *PlacementRequest) Groups() []placement.Group { return r.read.Request.Groups }

// GroupPolicy returns whether the groups with a suffix may share a provider.
func (r *PlacementRequest) GroupPolicy() placement.GroupPolicy { return r.read.Request.Policy }

// SameSubtree returns the sets of groups that must be in one subtree.
func (r *PlacementRequest) SameSubtree() []placement.Subtree { return r.read.Request.SameSubtree }

// Hosts returns the requirements for the resource of a root, or nil.
func (r *PlacementRequest) Hosts() *RequestHosts {
	if len(r.capabilities) == 0 {
		return nil
	}
	return &RequestHosts{r.capabilities}
}

// Ignored returns the keys that request nothing.
func (r *PlacementRequest) Ignored() []placement.IgnoredSpec { return r.read.Ignored }

// Problems returns the problems of the keys.
func (r *PlacementRequest) Problems() []KeyProblem { return r.wrong }
