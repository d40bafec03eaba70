package placement

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/rest"
)

// badQuery is the fault of a value that its schema does not exclude.
func badQuery(format string, args ...any) *rest.Fault {
	return rest.Refuse(http.StatusBadRequest, "query.bad_value", format, args...)
}

// amountsOf returns the amounts in a parameter: VCPU:2,MEMORY_MB:512.
func amountsOf(value string) ([]placement.Amount, error) {
	const form = "Badly formed resources parameter. Expected resources query string parameter in form: ?resources=VCPU:2,MEMORY_MB:1024. Got: "
	if strings.TrimSpace(value) == "" {
		return nil, rest.Bad("%sempty string.", form)
	}
	amounts := map[string]int64{}
	for part := range strings.SplitSeq(value, ",") {
		class, number, ok := strings.Cut(part, ":")
		if !ok || strings.Contains(number, ":") {
			return nil, rest.Bad("%s%s.", form, part)
		}
		amount, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		switch {
		case err != nil:
			return nil, rest.Bad("Requested resource %s expected positive integer amount. Got: %s.", class, number)
		case amount < 1:
			return nil, rest.Bad("Requested resource %s requires amount >= 1. Got: %d.", class, amount)
		}
		amounts[class] = amount
	}
	list := make([]placement.Amount, 0, len(amounts))
	for class, amount := range amounts {
		list = append(list, placement.Amount{ResourceClass: class, Amount: amount})
	}
	slices.SortFunc(list, func(a, b placement.Amount) int { return cmp.Compare(a.ResourceClass, b.ResourceClass) })
	return list, nil
}

// traitsOf adds the traits of one parameter to a group: HW_A,!CUSTOM_B, or
// in:HW_A,HW_B.
func traitsOf(r *rest.Request, group *placement.Group, value string, anyOf bool) error {
	const wrong = "Invalid query string parameters: "
	if list, ok := strings.CutPrefix(value, "in:"); ok {
		names := trimmed(list)
		switch {
		case !anyOf:
			return rest.Bad(wrong+"The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' only supported since microversion 1.39. Got: %s", value)
		case slices.Contains(names, ""):
			return rest.Bad(wrong+"Expected 'required' parameter value of the form: in:HW_CPU_X86_VMX,CUSTOM_MAGIC. Got an empty trait in: %s", value)
		case slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "!") }):
			return rest.Bad(wrong+"The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' does not support forbidden traits. Got: %s", value)
		}
		group.RequiredAnySets = append(group.RequiredAnySets, placement.TraitSet{AnyOf: names})
		return nil
	}
	form := "HW_CPU_X86_VMX,CUSTOM_MAGIC"
	if r.Since(22) {
		form = "HW_CPU_X86_VMX,!CUSTOM_MAGIC"
	}
	for _, name := range trimmed(value) {
		bare := strings.TrimLeft(name, "!")
		switch {
		case bare == "":
			return rest.Bad(wrong+"Expected 'required' parameter value of the form: %s. Got an empty trait in: %s", form, value)
		case bare == name:
			group.RequiredAll = append(group.RequiredAll, name)
		case r.Since(22):
			group.Forbidden = append(group.Forbidden, bare)
		default:
			return rest.Bad(wrong+"Expected 'required' parameter value of the form: %s. Got: %s", form, value)
		}
	}
	return nil
}

// trimmed returns the parts of a list between commas, without spaces.
func trimmed(list string) []string {
	parts := strings.Split(list, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// aggregatesOf returns the aggregate filters of the parameters member_of.
func aggregatesOf(r *rest.Request, suffix string) (filters []placement.AggregateFilter, err error) {
	values := r.All("member_of" + suffix)
	if len(values) > 1 && !r.Since(24) {
		return nil, rest.Bad("Multiple member_of%s parameters are not supported", suffix)
	}
	for _, value := range values {
		list, forbids := strings.CutPrefix(value, "!")
		list, several := strings.CutPrefix(list, "in:")
		if strings.Contains(value, ",") && !several {
			return nil, rest.Bad("Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the valid microversion. Got: %s", value)
		}
		uuids := strings.Split(list, ",")
		for _, uuid := range uuids {
			if _, ok := placement.CanonicalUUID(uuid); !ok {
				return nil, rest.Bad("Invalid query string parameters: Expected 'member_of' parameter to contain valid UUID(s). Got: %s", uuid)
			}
		}
		switch {
		case !forbids:
			filters = append(filters, placement.AggregateFilter{AnyOf: uuids})
		case r.Since(32):
			filters = append(filters, placement.AggregateFilter{NoneOf: uuids})
		default:
			return nil, rest.Bad("Forbidden member_of%s parameters are not supported in the specified microversion", suffix)
		}
	}
	return filters, nil
}

// groupOf returns the group of a suffix.
func groupOf(r *rest.Request, suffix string) (placement.Group, error) {
	group := placement.Group{Suffix: suffix}
	var err error
	if value, ok := r.Last("resources" + suffix); ok {
		if group.Resources, err = amountsOf(value); err != nil {
			return group, err
		}
	}
	required := r.All("required" + suffix)
	if n := len(required); n > 1 && !r.Since(39) {
		required = required[n-1:]
	}
	for _, value := range required {
		if err := traitsOf(r, &group, value, r.Since(39)); err != nil {
			return group, err
		}
	}
	if group.MemberOf, err = aggregatesOf(r, suffix); err != nil {
		return group, err
	}
	if value, ok := r.Last("in_tree" + suffix); ok {
		group.InTree, ok = placement.CanonicalUUID(strings.TrimSpace(value))
		if !ok {
			return group, rest.Bad("Invalid query string parameters: Expected 'in_tree' parameter to be a format of uuid. Got: %s", value)
		}
	}
	return group, nil
}

// suffixesOf returns the suffixes of the groups in the order of the query. The
// unsuffixed group is "".
func suffixesOf(r *rest.Request) (suffixes []string) {
	suffix := numbered
	if r.Since(33) {
		suffix = suffixed
	}
	key := regexp.MustCompile("^(?:" + strings.Join(groupKeys(r.Version), "|") + ")(" + suffix + ")?$")
	for _, one := range r.Query {
		if found := key.FindStringSubmatch(one.Key); found != nil && !slices.Contains(suffixes, found[1]) {
			suffixes = append(suffixes, found[1])
		}
	}
	return suffixes
}

// requestOf returns the request for candidates.
func requestOf(r *rest.Request) (*placement.Request, error) {
	request := &placement.Request{}
	var groups []placement.Group
	if err := requestWide(r, request); err != nil {
		return nil, err
	}
	for _, suffix := range suffixesOf(r) {
		group, err := groupOf(r, suffix)
		if err != nil {
			return nil, err
		}
		if groups = append(groups, group); suffix == "" {
			request.Unsuffixed = group
		} else {
			request.Groups = append(request.Groups, group)
		}
	}
	check := checkOrphans
	if r.Since(36) {
		check = checkSubtrees
	}
	if err := check(request, groups); err != nil {
		return nil, err
	}
	if err := checkForbidden(groups); err != nil {
		return nil, err
	}
	policy := r.All("group_policy")
	if policy != nil && policy[0] == "isolate" {
		request.Policy = placement.GroupPolicyIsolate
	}
	if policy == nil && len(request.Groups) > 1 {
		return nil, rest.Bad(`The "group_policy" parameter is required when specifying more than one "resources{N}" parameter.`)
	}
	return request, nil
}

// requestWide reads the parameters of all groups together.
func requestWide(r *rest.Request, request *placement.Request) error {
	roots := r.All("root_required")
	if len(roots) > 1 {
		return rest.Refuse(http.StatusBadRequest, "query.duplicate_key", "Query parameter 'root_required' may be specified only once.")
	}
	var root placement.Group
	for _, value := range roots {
		if err := traitsOf(r, &root, value, false); err != nil {
			return err
		}
	}
	request.RootRequired, request.RootForbidden = root.RequiredAll, root.Forbidden
	for _, trait := range root.RequiredAll {
		if slices.Contains(root.Forbidden, trait) {
			return badQuery("Conflicting required and forbidden traits found in root_required: %s", trait)
		}
	}
	for _, value := range r.All("same_subtree") {
		suffixes := trimmed(value)
		if slices.Contains(suffixes, "") {
			return badQuery("Empty string (unsuffixed group) can not be specified in `same_subtree` ")
		}
		request.SameSubtree = append(request.SameSubtree, placement.Subtree{Suffixes: suffixes})
	}
	return nil
}

// checkOrphans refuses groups without resources: before 1.36.
func checkOrphans(_ *placement.Request, groups []placement.Group) error {
	var traits, aggregates []string
	bare := false
	for _, group := range groups {
		if len(group.Resources) > 0 {
			continue
		}
		bare = true
		if len(group.RequiredAll)+len(group.RequiredAnySets) > 0 {
			traits = append(traits, "required"+group.Suffix)
		}
		if len(group.MemberOf) > 0 {
			aggregates = append(aggregates, "member_of"+group.Suffix)
		}
	}
	switch {
	case traits != nil:
		return rest.Bad("All traits parameters must be associated with resources.  Found the following orphaned traits keys: %s", strings.Join(traits, ", "))
	case aggregates != nil:
		return rest.Bad("All member_of parameters must be associated with resources. Found the following orphaned member_of keys: %s", strings.Join(aggregates, ", "))
	case bare:
		return rest.Bad("All request groups must specify resources.")
	case len(groups) == 0:
		return rest.Bad("At least one request group (`resources` or `resources{$S}`) is required.")
	}
	return nil
}

// checkSubtrees refuses groups without resources that no same_subtree names,
// and suffixes there that no group has: since 1.36.
func checkSubtrees(request *placement.Request, groups []placement.Group) error {
	var inSubtrees, suffixes, bare, stray []string
	for _, subtree := range request.SameSubtree {
		inSubtrees = append(inSubtrees, subtree.Suffixes...)
	}
	resourceless := 0
	for _, group := range groups {
		suffixes = append(suffixes, group.Suffix)
		if len(group.Resources) == 0 {
			resourceless++
			if !slices.Contains(inSubtrees, group.Suffix) {
				bare = append(bare, group.Suffix)
			}
		}
	}
	for _, suffix := range inSubtrees {
		if !slices.Contains(suffixes, suffix) {
			stray = append(stray, suffix)
		}
	}
	switch {
	case resourceless == len(groups):
		return rest.Refuse(http.StatusBadRequest, "query.missing_value", "There must be at least one resources or resources[$S] parameter.")
	case bare != nil:
		return badQuery("Resourceless suffixed group request should be specified in `same_subtree` query param: bad group(s) - %q.", bare)
	case stray != nil:
		return badQuery("Real suffixes should be specified in `same_subtree`: %q not found in %q.", stray, suffixes)
	}
	return nil
}

// checkForbidden refuses groups that require and forbid the same traits.
func checkForbidden(groups []placement.Group) error {
	var wrong []string
	for _, group := range groups {
		sets := slices.Clone(group.RequiredAnySets)
		for _, trait := range group.RequiredAll {
			sets = append(sets, placement.TraitSet{AnyOf: []string{trait}})
		}
		for _, set := range sets {
			if !slices.ContainsFunc(set.AnyOf, func(trait string) bool { return !slices.Contains(group.Forbidden, trait) }) {
				wrong = append(wrong, "required"+group.Suffix+": ("+strings.Join(slices.Sorted(slices.Values(set.AnyOf)), ", ")+")")
			}
		}
	}
	if wrong == nil {
		return nil
	}
	slices.Sort(wrong)
	return rest.Bad("Conflicting required and forbidden traits found in the following traits keys: %s", strings.Join(wrong, ", "))
}

func (d *door) candidates(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	if err := d.checkQuery(r, candidatesSchema(r.Version)); err != nil {
		return rest.Answer{}, err
	}
	request, err := requestOf(r)
	if err != nil {
		return rest.Answer{}, err
	}
	world, err := d.World(ctx)
	if err != nil {
		return rest.Answer{}, err
	}
	if err := checkProblems(placement.Validate(world, request)); err != nil {
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
		return rest.Answer{}, rest.Bad("the request needs too long a search; ask for less at once, or set a limit")
	}
	if err != nil {
		return rest.Answer{}, err
	}
	requests := make([]object, len(list))
	for i := range list {
		requests[i] = showCandidate(r, &list[i])
	}
	return rest.Answer{Body: object{"allocation_requests": requests, "provider_summaries": summaries(r, world, request, list)}, Modified: rest.Now()}, nil
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
func showCandidate(r *rest.Request, candidate *placement.Candidate) object {
	var list []object
	byProvider := map[string]object{}
	for _, allocation := range candidate.Allocations {
		resources := map[string]int64{}
		for _, amount := range allocation.Resources {
			resources[amount.ResourceClass] = amount.Amount
		}
		list = append(list, object{"resource_provider": object{"uuid": allocation.Provider}, "resources": resources})
		byProvider[allocation.Provider] = object{"resources": resources}
	}
	if !r.Since(12) {
		return object{"allocations": list}
	}
	shown := object{"allocations": byProvider}
	if r.Since(34) {
		mappings := map[string][]string{}
		for _, mapping := range candidate.Mappings {
			mappings[mapping.Suffix] = mapping.Providers
		}
		shown["mappings"] = mappings
	}
	return shown
}

// standardFirst returns traits in the order of the reference: standard traits
// before custom ones.
func standardFirst(traits []string) []string {
	ordered := orEmpty(slices.Clone(traits))
	slices.SortStableFunc(ordered, func(a, b string) int {
		isCustom := map[bool]int{true: 1}
		return isCustom[placement.IsCustomName(a)] - isCustom[placement.IsCustomName(b)]
	})
	return ordered
}

// summaries returns the providers of the trees of candidates by uuid. Before
// 1.29 they are only the providers of the candidates themselves, and before
// 1.27 they have only the classes that the request names.
func summaries(r *rest.Request, world *placement.World, request *placement.Request, list []placement.Candidate) map[string]object {
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
	shown := map[string]object{}
	for _, provider := range placement.ProviderSummaries(world, list) {
		if !r.Since(29) && !used[provider.UUID] {
			continue
		}
		resources := map[string]object{}
		for _, one := range provider.Inventories {
			if r.Since(27) || named[one.ResourceClass] {
				resources[one.ResourceClass] = object{"capacity": one.Capacity, "used": one.Used}
			}
		}
		summary := object{"resources": resources}
		if r.Since(17) {
			summary["traits"] = standardFirst(provider.Traits)
		}
		if r.Since(29) {
			summary["parent_provider_uuid"], summary["root_provider_uuid"] = orNull(provider.Parent), provider.Root
		}
		shown[provider.UUID] = summary
	}
	return shown
}
