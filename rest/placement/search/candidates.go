// Package search answers the two searches of OpenStack's Placement: providers
// by a filter, and candidates by the groups of a request. It reads their queries
// in the form of each version.
package search

import (
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/rest"
)

// Candidates answers a query for candidates.
func Candidates(world *placement.World, r *rest.Request, compat bool) (rest.Answer, error) {
	if err := CheckQuery(r, candidatesSchema(r.Version), compat); err != nil {
		return rest.Answer{}, err
	}
	request, err := requestOf(r)
	if err != nil {
		return rest.Answer{}, err
	}
	if err := fault(placement.Validate(world, request)); err != nil {
		return rest.Answer{}, err
	}
	limit := math.MaxInt
	if text := r.All("limit"); text != nil {
		if n, err := strconv.Atoi(text[0]); err == nil {
			limit = n
		}
	}
	list, err := search(world, request, limit, r.Since(29))
	if errors.Is(err, placement.ErrTooComplex) {
		err = rest.Bad("the request needs too long a search; ask for less at once, or set a limit")
	}
	if err != nil {
		return rest.Answer{}, err
	}
	requests := make([]rest.Object, len(list))
	for i := range list {
		requests[i] = showCandidate(r, &list[i])
	}
	return rest.Computed(rest.Object{"allocation_requests": requests,
		"provider_summaries": summaries(r, world, request, list)}), nil
}

// search returns the first candidates. Without nested, it leaves out candidates
// with two providers of one tree, which clients before 1.29 do not know.
func search(world *placement.World, request *placement.Request, limit int, nested bool) ([]placement.Candidate, error) {
	first := limit
	if !nested {
		first = math.MaxInt
	}
	found, err := placement.Candidates(world, request, nil, first)
	if err != nil || nested {
		return found.Candidates, err
	}
	flat := slices.DeleteFunc(found.Candidates, func(candidate placement.Candidate) bool {
		roots := map[string]bool{}
		for _, allocation := range candidate.Allocations {
			provider, _ := world.Provider(allocation.Provider)
			roots[provider.Root] = true
		}
		return len(roots) < len(candidate.Allocations)
	})
	return flat[:min(limit, len(flat))], nil
}

// showCandidate returns a candidate in the form of the body of PUT
// /allocations/{consumer} of the same version.
func showCandidate(r *rest.Request, candidate *placement.Candidate) rest.Object {
	var list []rest.Object
	byProvider := map[string]rest.Object{}
	for _, allocation := range candidate.Allocations {
		resources := map[string]int64{}
		for _, amount := range allocation.Resources {
			resources[amount.ResourceClass] = amount.Amount
		}
		provider := rest.Object{"uuid": allocation.Provider}
		list = append(list, rest.Object{"resource_provider": provider, "resources": resources})
		byProvider[allocation.Provider] = rest.Object{"resources": resources}
	}
	if !r.Since(12) {
		return rest.Object{"allocations": list}
	}
	mappings := map[string][]string{}
	for _, mapping := range candidate.Mappings {
		mappings[mapping.Suffix] = mapping.Providers
	}
	shown := rest.Object{"allocations": byProvider}
	shown.Set(r, 34, "mappings", mappings)
	return shown
}

// standardFirst returns traits in the order of the reference: standard traits
// before custom ones.
func standardFirst(traits []string) []string {
	ordered := append([]string{}, traits...)
	slices.SortStableFunc(ordered, func(a, b string) int {
		isCustom := map[bool]int{true: 1}
		return isCustom[placement.IsCustomName(a)] - isCustom[placement.IsCustomName(b)]
	})
	return ordered
}

// summaries returns the providers of the trees of candidates by uuid. Before
// 1.29 they are only the providers of the candidates themselves, and before
// 1.27 they have only the classes that the request names.
func summaries(r *rest.Request, world *placement.World, request *placement.Request,
	list []placement.Candidate) map[string]rest.Object {
	named, used := map[string]bool{}, map[string]bool{}
	for _, group := range append([]placement.Group{request.Unsuffixed}, request.Groups...) {
		for _, amount := range group.Resources {
			named[amount.ResourceClass] = true
		}
	}
	for _, candidate := range list {
		for _, allocation := range candidate.Allocations {
			used[allocation.Provider] = true
		}
	}
	shown := map[string]rest.Object{}
	for _, provider := range placement.ProviderSummaries(world, list) {
		if !r.Since(29) && !used[provider.UUID] {
			continue
		}
		resources := map[string]rest.Object{}
		for _, one := range provider.Inventories {
			if r.Since(27) || named[one.ResourceClass] {
				resources[one.ResourceClass] = rest.Object{"capacity": one.Capacity, "used": one.Used}
			}
		}
		summary := rest.Object{"resources": resources}
		summary.Set(r, 17, "traits", standardFirst(provider.Traits))
		summary.Set(r, 29, "parent_provider_uuid", rest.OrNull(provider.Parent))
		summary.Set(r, 29, "root_provider_uuid", provider.Root)
		shown[provider.UUID] = summary
	}
	return shown
}
