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
	// Request has no hosts: Requirements select them.
	*placement.Request
	*placement.Group // the unsuffixed group of the request
	// Requirements are the capabilities that the request requires.
	Requirements []resource.Requirement
	// Ignored are the keys without effect on the request.
	Ignored  []placement.IgnoredSpec
	Problems []KeyProblem
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

// RequestHosts are the request's requirements for the resource of a root
// provider.
type RequestHosts struct {
	Requirements []resource.Requirement
}

// RequestIn returns the placement request in metadata, checked against a world.
// Call CheckCapabilities next.
func RequestIn(world *placement.World, items []*resource.MetadataItem) *PlacementRequest {
	specs := make([]placement.ExtraSpec, len(items))
	byOperator := map[string]bool{}
	for i, item := range items {
		specs[i] = placement.ExtraSpec{Key: item.Key, Value: item.Value}
		byOperator[item.Key] = item.ByOperator
	}
	read := placement.ReadSpecs(world, specs)
	r := &PlacementRequest{IsByOperator: true, Request: &read.Request,
		Group: &read.Request.Unsuffixed, Ignored: read.Ignored}
	add := func(key, message string) {
		one := KeyProblem{Message: message}
		if key != "" {
			one.Key = &key
		}
		r.Problems = append(r.Problems, one)
	}
	for _, one := range read.Problems {
		add(one.Key, one.Message)
	}
	for _, spec := range read.Capabilities {
		requirement := resource.Requirement{Key: spec.Key, Requirement: spec.Value}
		r.Requirements = append(r.Requirements, requirement)
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
// unknown, and sorts the problems by key. Unknown has the messages by
// capability name.
func (r *PlacementRequest) CheckCapabilities(unknown map[string]string) {
	for _, requirement := range r.Requirements {
		name, _ := requirement.Capability()
		if message, ok := unknown[name]; ok {
			r.Problems = append(r.Problems, KeyProblem{Key: &requirement.Key, Message: message})
		}
	}
	slices.SortStableFunc(r.Problems, func(a, b KeyProblem) int { return cmp.Compare(a.sortKey(), b.sortKey()) })
}

// Refusal returns an error with every problem of the request, or nil.
func (r *PlacementRequest) Refusal() error {
	var problems problem.Problems
	for _, one := range r.Problems {
		path := "metadata"
		if one.Key != nil {
			path = problem.Join(path, *one.Key)
		}
		problems.Add(path, "%s", one.Message)
	}
	return problems.Err()
}

// IsEmpty reports whether the metadata has no request: no key requests
// resources or traits, and no key is wrong. Capabilities alone are no request.
func (r *PlacementRequest) IsEmpty() bool {
	return len(r.Resources) == 0 && len(r.Groups) == 0 && len(r.Problems) == 1 && r.Problems[0].Key == nil
}

// Hosts returns the requirements for the resource of a root provider, or nil.
func (r *PlacementRequest) Hosts() *RequestHosts {
	if len(r.Requirements) == 0 {
		return nil
	}
	return &RequestHosts{r.Requirements}
}
