// Package search answers the two searches of OpenStack's Placement: providers
// by a filter, and candidates by the groups of a request. It reads their queries
// in the form of each version.
package search

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/rest"
)

// Candidates answers the query of GET /allocation_candidates.
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
	list, err := search(world, r, request, limit)
	if errors.Is(err, placement.ErrTooComplex) {
		err = rest.Bad("the request needs too long a search; ask for less at once, or set a limit")
	}
	if err != nil {
		return rest.Answer{}, err
	}
	body := make(rest.Text, 0, 700*len(list)) // a candidate with its provider has about 670 bytes
	body.Object(func() {
		body.Key("allocation_requests")
		body.List(func() {
			for i := range list {
				showCandidate(&body, r, &list[i])
			}
		})
		body.Key("provider_summaries")
		body.Object(func() { showSummaries(&body, r, world, request, list) })
	})
	return rest.Computed(body), nil
}

// search returns the first candidates, limit at most. Without nested providers,
// as before 1.29, it leaves out candidates with two providers of one tree. It
// refuses more candidates than an answer can have: each has at least 64 bytes,
// and 40 for each suffixed group. Before 1.34 groups have no bytes, but memory.
func search(world *placement.World, r *rest.Request, request *placement.Request,
	limit int) ([]placement.Candidate, error) {
	first, most := limit, r.Most(64+40*len(request.Groups))
	if !r.Since(29) {
		first = math.MaxInt
	}
	found, err := placement.Candidates(world, request, nil, min(first, most))
	if err == nil && found.HasNext && most < first {
		err = r.TooLong()
	}
	if err != nil || r.Since(29) {
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

// showCandidate writes a candidate in the form of the body of PUT
// /allocations/{consumer} of the same version.
func showCandidate(t *rest.Text, r *rest.Request, candidate *placement.Candidate) {
	t.Object(func() {
		t.Key("allocations")
		if !r.Since(12) {
			t.List(func() {
				for _, allocation := range candidate.Allocations {
					showListed(t, allocation)
				}
			})
			return
		}
		t.Object(func() {
			for _, allocation := range candidate.Allocations {
				t.Key(allocation.Provider)
				t.Object(func() { showAmounts(t, allocation.Resources) })
			}
		})
		if !r.Since(34) {
			return
		}
		t.Key("mappings")
		t.Object(func() {
			for _, mapping := range candidate.Mappings {
				t.Key(mapping.Suffix)
				t.Strings(mapping.Providers)
			}
		})
	})
}

// showListed writes an allocation in the form before 1.12.
func showListed(t *rest.Text, allocation placement.ProviderAllocation) {
	t.Object(func() {
		t.Key("resource_provider")
		t.Object(func() {
			t.Key("uuid")
			t.String(allocation.Provider)
		})
		showAmounts(t, allocation.Resources)
	})
}

// showAmounts writes the member with the amounts of an allocation.
func showAmounts(t *rest.Text, amounts []placement.Amount) {
	t.Key("resources")
	t.Object(func() {
		for _, amount := range amounts {
			t.Key(amount.ResourceClass)
			t.Integer(amount.Amount)
		}
	})
}

// showTraits writes traits in the order of the reference: standard traits before
// custom ones.
func showTraits(t *rest.Text, traits []string) {
	t.List(func() {
		for _, custom := range []bool{false, true} {
			for _, trait := range traits {
				if placement.IsCustomName(trait) == custom {
					t.String(trait)
				}
			}
		}
	})
}

// showSummaries writes the providers of the trees of candidates by uuid. Before
// 1.29 they are only the providers of the candidates themselves, and before
// 1.27 they have only the classes that the request names.
func showSummaries(t *rest.Text, r *rest.Request, world *placement.World, request *placement.Request,
	list []placement.Candidate) {
	named, used := map[string]bool{}, map[string]bool{}
	for _, group := range append([]placement.Group{request.Unsuffixed}, request.Groups...) {
		for _, amount := range group.Resources {
			named[amount.ResourceClass] = true
		}
	}
	if !r.Since(29) {
		for _, candidate := range list {
			for _, allocation := range candidate.Allocations {
				used[allocation.Provider] = true
			}
		}
	}
	for _, provider := range placement.ProviderSummaries(world, list) {
		if !r.Since(29) && !used[provider.UUID] {
			continue
		}
		t.Key(provider.UUID)
		t.Object(func() {
			if r.Since(29) {
				t.Key("parent_provider_uuid")
				t.StringOrNull(provider.Parent)
			}
			t.Key("resources")
			t.Object(func() {
				for _, one := range provider.Inventories {
					if r.Since(27) || named[one.ResourceClass] {
						showUse(t, one)
					}
				}
			})
			if r.Since(29) {
				t.Key("root_provider_uuid")
				t.String(provider.Root)
			}
			if r.Since(17) {
				t.Key("traits")
				showTraits(t, provider.Traits)
			}
		})
	}
}

// showUse writes the capacity and the use of an inventory under its class.
func showUse(t *rest.Text, inventory placement.Inventory) {
	t.Key(inventory.ResourceClass)
	t.Object(func() {
		t.Key("capacity")
		t.Integer(inventory.Capacity)
		t.Key("used")
		t.Integer(inventory.Used)
	})
}

// Patterns of the suffixes of groups: numbered before 1.33, then suffixed.
const (
	numbered = "[1-9][0-9]*"
	suffixed = "[a-zA-Z0-9_-]{1,64}"
)

var (
	text = &rest.Schema{Type: "string"}
	uuid = &rest.Schema{Type: "string", UUID: true}
)

func providersQuery(version int) *rest.Schema {
	return rest.Members(version, rest.May(0, "name", text), rest.May(0, "uuid", uuid),
		rest.May(3, "member_of", text), rest.May(4, "resources", text),
		rest.May(14, "in_tree", uuid), rest.May(18, "required", text))
}

// candidatesSchema returns the schema of the query of candidates.
func candidatesSchema(version int) *rest.Schema {
	list := []rest.Member{
		rest.May(16, "limit", &rest.Schema{Type: "string", Pattern: "^[1-9][0-9]*$", MinSize: 1}),
		rest.May(25, "group_policy", &rest.Schema{Type: "string", Enum: []string{"none", "isolate"}}),
		rest.May(35, "root_required", text), rest.May(36, "same_subtree", text),
	}
	if version < 25 {
		return rest.Members(version, append(list, rest.Must(10, "resources", text), rest.May(17, "required", text),
			rest.May(21, "member_of", text))...)
	}
	schema := rest.Members(version, list...)
	schema.Patterns = map[string]*rest.Schema{}
	for _, name := range groupKeys(version) {
		schema.Patterns["^"+name+suffixPattern(version)+"$"] = text
	}
	return schema
}

// groupKeys returns the parameters of groups.
func groupKeys(version int) []string {
	keys := []string{"resources", "required", "member_of"}
	if version >= 31 {
		keys = append(keys, "in_tree")
	}
	return keys
}

// suffixPattern returns a pattern that matches a suffix of a group or the empty
// string, as a subexpression.
func suffixPattern(version int) string {
	if version >= 33 {
		return "(" + suffixed + ")?"
	}
	return "(" + numbered + ")?"
}

// CheckQuery checks the parameters of a URL. For most parameters, the reference
// ignores all but one value. Without compat, several values of these are an
// error.
func CheckQuery(r *rest.Request, schema *rest.Schema, compat bool) error {
	seen := map[string]bool{}
	for _, one := range r.Query {
		isList := strings.HasPrefix(one.Key, "member_of") || strings.HasPrefix(one.Key, "required") && r.Since(39) ||
			one.Key == "same_subtree" || one.Key == "root_required"
		if seen[one.Key] && !isList && !compat {
			return repeated(one.Key)
		}
		seen[one.Key] = true
	}
	return r.CheckQuery(schema)
}

func repeated(key string) error {
	return rest.Refuse(http.StatusBadRequest, "query.duplicate_key",
		"Query parameter '%s' may be specified only once.", key)
}

// fault returns the fault for the problems of a search, nil if there are none.
func fault(problems []placement.Problem) error {
	var classes, traits []string // that do not exist
	for _, one := range problems {
		if one.ResourceClass != "" && !slices.Contains(classes, one.ResourceClass) {
			classes = append(classes, one.ResourceClass)
		}
		if one.Trait != "" && !slices.Contains(traits, one.Trait) {
			traits = append(traits, one.Trait)
		}
	}
	switch {
	case classes != nil:
		return rest.Bad("Invalid resource class in resources parameter: No such resource class %s.",
			strings.Join(classes, ", "))
	case traits != nil:
		return rest.Bad("Invalid trait(s) in \"required\" parameter: No such trait(s): %s.", strings.Join(traits, ", "))
	case len(problems) > 0:
		return rest.Bad("Invalid query string parameters: %s", problems[0].String())
	}
	return nil
}
