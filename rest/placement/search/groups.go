package search

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/rest"
)

// parser reads the groups of a query. It keeps the first fault and continues.
type parser struct {
	*rest.Request
	err error
}

func (p *parser) refuse(fault error) {
	if p.err == nil {
		p.err = fault
	}
}

// bad refuses the query.
func (p *parser) bad(format string, args ...any) { p.refuse(rest.Bad(format, args...)) }

// badValue refuses the query with the code query.bad_value.
func (p *parser) badValue(format string, args ...any) {
	p.refuse(rest.Refuse(http.StatusBadRequest, "query.bad_value", format, args...))
}

// amounts reads amounts: VCPU:2,MEMORY_MB:512.
func (p *parser) amounts(value string) []placement.Amount {
	const form = "Badly formed resources parameter. Expected resources query string parameter in form: " +
		"?resources=VCPU:2,MEMORY_MB:1024. Got: "
	if strings.TrimSpace(value) == "" {
		p.bad("%sempty string.", form)
	}
	amounts := map[string]int64{}
	for part := range strings.SplitSeq(value, ",") {
		class, number, _ := strings.Cut(part, ":")
		amount, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		switch {
		case strings.Count(part, ":") != 1:
			p.bad("%s%s.", form, part)
		case err != nil:
			p.bad("Requested resource %s expected positive integer amount. Got: %s.", class, number)
		case amount < 1:
			p.bad("Requested resource %s requires amount >= 1. Got: %d.", class, amount)
		}
		amounts[class] = amount
	}
	return Amounts(amounts)
}

// Amounts returns amounts in the order of their classes.
func Amounts(amounts map[string]int64) []placement.Amount {
	list := make([]placement.Amount, 0, len(amounts))
	for _, class := range slices.Sorted(maps.Keys(amounts)) {
		list = append(list, placement.Amount{ResourceClass: class, Amount: amounts[class]})
	}
	return list
}

// invalid begins the messages about traits, aggregates and trees.
const invalid = "Invalid query string parameters: "

// traits adds the traits of one parameter to a group: HW_A,!CUSTOM_B or, if
// anyOf is set, in:HW_A,HW_B.
func (p *parser) traits(group *placement.Group, value string, anyOf bool) {
	list, isAny := strings.CutPrefix(value, "in:")
	names, form := trimmed(list), "HW_CPU_X86_VMX,CUSTOM_MAGIC"
	switch {
	case isAny:
		form = "in:" + form
		group.RequiredAnySets = append(group.RequiredAnySets, placement.TraitSet{AnyOf: names})
	case p.Since(22):
		form = "HW_CPU_X86_VMX,!CUSTOM_MAGIC"
	}
	for _, name := range names {
		bare := strings.TrimLeft(name, "!")
		switch {
		case isAny && !anyOf:
			p.bad(invalid+"The format '%s' only supported since microversion 1.39. Got: %s", form, value)
		case isAny && slices.Contains(names, "") || !isAny && bare == "":
			p.bad(invalid+"Expected 'required' parameter value of the form: %s. Got an empty trait in: %s", form, value)
		case isAny && bare != name:
			p.bad(invalid+"The format '%s' does not support forbidden traits. Got: %s", form, value)
		case isAny:
		case bare == name:
			group.RequiredAll = append(group.RequiredAll, name)
		case p.Since(22):
			group.Forbidden = append(group.Forbidden, bare)
		default:
			p.bad(invalid+"Expected 'required' parameter value of the form: %s. Got: %s", form, value)
		}
	}
}

// trimmed returns the parts of a list between commas, without spaces.
func trimmed(list string) []string {
	return lists.Map(strings.Split(list, ","), strings.TrimSpace)
}

// aggregates reads the aggregate filters of the parameters member_of.
func (p *parser) aggregates(suffix string) (filters []placement.AggregateFilter) {
	values := p.All("member_of" + suffix)
	if len(values) > 1 && !p.Since(24) {
		p.bad("Multiple member_of%s parameters are not supported", suffix)
	}
	for _, value := range values {
		list, forbids := strings.CutPrefix(value, "!")
		list, several := strings.CutPrefix(list, "in:")
		if strings.Contains(value, ",") && !several {
			p.bad("Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword "+
				"using the valid microversion. Got: %s", value)
		}
		uuids := strings.Split(list, ",")
		for _, uuid := range uuids {
			if _, ok := placement.CanonicalUUID(uuid); !ok {
				p.bad(invalid+"Expected 'member_of' parameter to contain valid UUID(s). Got: %s", uuid)
			}
		}
		switch {
		case !forbids:
			filters = append(filters, placement.AggregateFilter{AnyOf: uuids})
		case p.Since(32):
			filters = append(filters, placement.AggregateFilter{NoneOf: uuids})
		default:
			p.bad("Forbidden member_of%s parameters are not supported in the specified microversion", suffix)
		}
	}
	return filters
}

func (p *parser) group(suffix string) placement.Group {
	group := placement.Group{Suffix: suffix}
	if value, ok := p.Last("resources" + suffix); ok {
		group.Resources = p.amounts(value)
	}
	required := p.All("required" + suffix)
	if n := len(required); n > 1 && !p.Since(39) {
		required = required[n-1:]
	}
	for _, value := range required {
		p.traits(&group, value, p.Since(39))
	}
	group.MemberOf = p.aggregates(suffix)
	if value, ok := p.Last("in_tree" + suffix); ok {
		if group.InTree, ok = placement.CanonicalUUID(strings.TrimSpace(value)); !ok {
			p.bad(invalid+"Expected 'in_tree' parameter to be a format of uuid. Got: %s", value)
		}
	}
	return group
}

// suffixesOf returns the suffixes of the groups in the order of the query. The
// unsuffixed group is "".
func suffixesOf(r *rest.Request) (suffixes []string) {
	key := rest.Compiled("^(?:" + strings.Join(groupKeys(r.Version), "|") + ")" + suffixPattern(r.Version) + "$")
	for _, one := range r.Query {
		if found := key.FindStringSubmatch(one.Key); found != nil && !slices.Contains(suffixes, found[1]) {
			suffixes = append(suffixes, found[1])
		}
	}
	return suffixes
}

// requestOf returns the request for candidates.
func requestOf(r *rest.Request) (*placement.Request, error) {
	p, request := parser{Request: r}, &placement.Request{}
	p.together(request)
	var groups []placement.Group
	for _, suffix := range suffixesOf(r) {
		group := p.group(suffix)
		if groups = append(groups, group); suffix == "" {
			request.Unsuffixed = group
		} else {
			request.Groups = append(request.Groups, group)
		}
	}
	if r.Since(36) {
		p.checkSubtrees(request, groups)
	} else {
		p.checkOrphans(groups)
	}
	p.checkForbidden(groups)
	policy := r.All("group_policy")
	if policy != nil && policy[0] == "isolate" {
		request.Policy = placement.GroupPolicyIsolate
	}
	if policy == nil && len(request.Groups) > 1 {
		p.bad(`The "group_policy" parameter is required when specifying more than one "resources{N}" parameter.`)
	}
	return request, p.err
}

// together reads root_required and same_subtree, which belong to no single group.
func (p *parser) together(request *placement.Request) {
	roots := p.All("root_required")
	if len(roots) > 1 {
		p.refuse(repeated("root_required"))
	}
	var root placement.Group
	for _, value := range roots {
		p.traits(&root, value, false)
	}
	request.RootRequired, request.RootForbidden = root.RequiredAll, root.Forbidden
	for _, trait := range root.RequiredAll {
		if slices.Contains(root.Forbidden, trait) {
			p.badValue("Conflicting required and forbidden traits found in root_required: %s", trait)
		}
	}
	for _, value := range p.All("same_subtree") {
		suffixes := trimmed(value)
		if slices.Contains(suffixes, "") {
			p.badValue("Empty string (unsuffixed group) can not be specified in `same_subtree` ")
		}
		request.SameSubtree = append(request.SameSubtree, placement.Subtree{Suffixes: suffixes})
	}
}

// checkOrphans refuses, before 1.36, a query without groups, and groups without
// resources.
func (p *parser) checkOrphans(groups []placement.Group) {
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
		p.bad("All traits parameters must be associated with resources.  "+
			"Found the following orphaned traits keys: %s", strings.Join(traits, ", "))
	case aggregates != nil:
		p.bad("All member_of parameters must be associated with resources. "+
			"Found the following orphaned member_of keys: %s", strings.Join(aggregates, ", "))
	case bare:
		p.bad("All request groups must specify resources.")
	case len(groups) == 0:
		p.bad("At least one request group (`resources` or `resources{$S}`) is required.")
	}
}

// checkSubtrees refuses, since 1.36, requests without any resources, groups
// without resources that no same_subtree names, and unknown suffixes in
// same_subtree.
func (p *parser) checkSubtrees(request *placement.Request, groups []placement.Group) {
	var inSubtrees, suffixes, bare []string
	for _, subtree := range request.SameSubtree {
		inSubtrees = append(inSubtrees, subtree.Suffixes...)
	}
	for _, group := range groups {
		suffixes = append(suffixes, group.Suffix)
		if len(group.Resources) == 0 {
			bare = append(bare, group.Suffix)
		}
	}
	stray := lists.Without(inSubtrees, suffixes)
	switch alone := lists.Without(bare, inSubtrees); {
	case len(bare) == len(groups):
		p.refuse(rest.Refuse(http.StatusBadRequest, "query.missing_value",
			"There must be at least one resources or resources[$S] parameter."))
	case len(alone) > 0:
		p.badValue("Resourceless suffixed group request should be specified in `same_subtree` query param: "+
			"bad group(s) - %q.", alone)
	case len(stray) > 0:
		p.badValue("Real suffixes should be specified in `same_subtree`: %q not found in %q.", stray, suffixes)
	}
}

// checkForbidden refuses groups that require and forbid the same traits.
func (p *parser) checkForbidden(groups []placement.Group) {
	var wrong []string
	for _, group := range groups {
		sets := slices.Clone(group.RequiredAnySets)
		for _, trait := range group.RequiredAll {
			sets = append(sets, placement.TraitSet{AnyOf: []string{trait}})
		}
		for _, set := range sets {
			if len(lists.Without(set.AnyOf, group.Forbidden)) == 0 {
				traits := strings.Join(slices.Sorted(slices.Values(set.AnyOf)), ", ")
				wrong = append(wrong, "required"+group.Suffix+": ("+traits+")")
			}
		}
	}
	if wrong != nil {
		slices.Sort(wrong)
		p.bad("Conflicting required and forbidden traits found in the following traits keys: %s",
			strings.Join(wrong, ", "))
	}
}

// Providers returns the providers that a query selects.
func Providers(world *placement.World, r *rest.Request, compat bool) ([]*placement.Provider, error) {
	if err := CheckQuery(r, providersQuery(r.Version), compat); err != nil {
		return nil, err
	}
	filter, err := filterOf(r)
	if err != nil {
		return nil, err
	}
	if err := fault(filter.Validate(world, "")); err != nil {
		return nil, err
	}
	return world.Filter(filter), nil
}

func filterOf(r *rest.Request) (filter placement.ProviderFilter, err error) {
	p := parser{Request: r}
	group := p.group("")
	if name, ok := r.Last("name"); ok {
		filter.Name = &name
	}
	if uuid, ok := r.Last("uuid"); ok {
		filter.UUIDs = []string{uuid}
	}
	filter.InTree, filter.MemberOf, filter.Resources = group.InTree, group.MemberOf, group.Resources
	filter.RequiredAll, filter.RequiredAnySets = group.RequiredAll, group.RequiredAnySets
	filter.Forbidden = group.Forbidden
	return filter, p.err
}
