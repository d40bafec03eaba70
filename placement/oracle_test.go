package placement_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	. "github.com/cadastre-dev/cadastre/placement"
)

// The oracle implements the definitions and nothing else: it tries every anchor
// and every assignment of the request's classes and groups to providers. It
// shares only types with the solver.

type oracle struct {
	providers map[string]Provider
	paths     map[string][]string // uuids from the root down
	order     []string            // uuids by path
}

func newOracle(providers []Provider) *oracle {
	o := &oracle{providers: map[string]Provider{}, paths: map[string][]string{}}
	for _, p := range providers {
		o.providers[p.UUID] = p
	}
	for uuid := range o.providers {
		for at := uuid; at != ""; at = o.providers[at].Parent {
			o.paths[uuid] = append([]string{at}, o.paths[uuid]...)
		}
		o.order = append(o.order, uuid)
	}
	slices.SortFunc(o.order, func(a, b string) int { return slices.Compare(o.paths[a], o.paths[b]) })
	return o
}

func (o *oracle) root(uuid string) string { return o.paths[uuid][0] }

func (o *oracle) hasTrait(uuid, trait string) bool {
	return slices.Contains(o.providers[uuid].Traits, trait)
}

func (o *oracle) inAnyOf(uuid string, aggregates []string) bool {
	return slices.ContainsFunc(aggregates, func(a string) bool {
		return slices.Contains(o.providers[uuid].Aggregates, a)
	})
}

// tolerated returns the traits that the request tolerates or requires.
func tolerated(r *Request) []string {
	named := slices.Concat(r.Tolerates, r.RootRequired)
	for _, g := range append([]Group{r.Unsuffixed}, r.Groups...) {
		named = append(named, slices.Concat(clauses(&g)...)...)
	}
	return named
}

// repels reports whether the provider or an ancestor has a taint that the
// request neither tolerates nor requires.
func (o *oracle) repels(uuid string, r *Request) bool {
	named := tolerated(r)
	return slices.ContainsFunc(o.paths[uuid], func(above string) bool {
		return slices.ContainsFunc(o.providers[above].Traits, func(trait string) bool {
			return strings.HasPrefix(trait, "CUSTOM_TAINT_") && !slices.Contains(named, trait)
		})
	})
}

// usable reports whether a provider is of the anchor's tree, or shares through
// an aggregate with any provider of that tree.
func (o *oracle) usable(uuid, anchor string) bool {
	if o.root(uuid) == anchor {
		return true
	}
	if !o.hasTrait(uuid, "MISC_SHARES_VIA_AGGREGATE") {
		return false
	}
	for other := range o.providers {
		if o.root(other) == anchor && o.inAnyOf(other, o.providers[uuid].Aggregates) {
			return true
		}
	}
	return false
}

func (o *oracle) fits(uuid string, amount Amount) bool {
	for _, inventory := range o.providers[uuid].Inventories {
		if inventory.ResourceClass == amount.ResourceClass {
			capacity := float64(inventory.Total-inventory.Reserved) * inventory.AllocationRatio
			return float64(inventory.Used+amount.Amount) <= capacity &&
				amount.Amount >= int64(inventory.MinUnit) && amount.Amount <= int64(inventory.MaxUnit) &&
				amount.Amount%int64(inventory.StepSize) == 0
		}
	}
	return false
}

func clauses(g *Group) [][]string {
	var all [][]string
	for _, trait := range g.RequiredAll {
		all = append(all, []string{trait})
	}
	if len(g.RequiredAny) > 0 {
		all = append(all, g.RequiredAny)
	}
	for _, set := range g.RequiredAnySets {
		all = append(all, set.AnyOf)
	}
	return all
}

func (o *oracle) meets(traits map[string]bool, clauses [][]string) bool {
	for _, clause := range clauses {
		if !slices.ContainsFunc(clause, func(trait string) bool { return traits[trait] }) {
			return false
		}
	}
	return true
}

func (o *oracle) traits(uuids ...string) map[string]bool {
	union := map[string]bool{}
	for _, uuid := range uuids {
		for _, trait := range o.providers[uuid].Traits {
			union[trait] = true
		}
	}
	return union
}

func (o *oracle) isMember(uuid string, memberOf []AggregateFilter) bool {
	for _, filter := range memberOf {
		if len(filter.AnyOf) > 0 && !o.inAnyOf(uuid, filter.AnyOf) {
			return false
		}
	}
	return true
}

func (o *oracle) barred(uuid string, memberOf []AggregateFilter) bool {
	return slices.ContainsFunc(memberOf, func(f AggregateFilter) bool { return o.inAnyOf(uuid, f.NoneOf) })
}

// servesClass reports whether the provider may serve this class of the
// unsuffixed group from this anchor.
func (o *oracle) servesClass(uuid, anchor string, g *Group, amount Amount) bool {
	return o.fits(uuid, amount) && o.mayServeClass(uuid, anchor, g)
}

// mayServeClass reports whether the provider could serve a class of the
// unsuffixed group if it had enough units.
func (o *oracle) mayServeClass(uuid, anchor string, g *Group) bool {
	if !o.usable(uuid, anchor) {
		return false
	}
	foreign := o.root(uuid) != anchor
	if g.InTree != "" {
		if _, known := o.providers[g.InTree]; !known || foreign || o.root(g.InTree) != anchor {
			return false
		}
	}
	for _, trait := range g.Forbidden {
		if o.hasTrait(uuid, trait) {
			return false
		}
	}
	if o.barred(uuid, g.MemberOf) || o.barred(anchor, g.MemberOf) {
		return false
	}
	return o.isMember(uuid, g.MemberOf) || !foreign && o.isMember(anchor, g.MemberOf)
}

// servesGroup reports whether the provider may serve this suffixed group from
// this anchor.
func (o *oracle) servesGroup(uuid, anchor string, g *Group) bool {
	if !o.usable(uuid, anchor) || !o.isMember(uuid, g.MemberOf) || o.barred(uuid, g.MemberOf) {
		return false
	}
	if g.InTree != "" {
		if _, known := o.providers[g.InTree]; !known || o.root(uuid) != o.root(g.InTree) {
			return false
		}
	}
	for _, amount := range g.Resources {
		if !o.fits(uuid, amount) {
			return false
		}
	}
	for _, trait := range g.Forbidden {
		if o.hasTrait(uuid, trait) {
			return false
		}
	}
	return o.meets(o.traits(uuid), clauses(g))
}

// candidates returns all candidates in the total order.
func (o *oracle) candidates(r *Request) []Candidate {
	return slices.Concat(o.candidatesByAnchor(r)...)
}

// breadthFirst returns the first candidate of each anchor, then the second of
// each, and so on.
func (o *oracle) breadthFirst(r *Request) []Candidate {
	var found []Candidate
	anchors := o.candidatesByAnchor(r)
	for round := 0; ; round++ {
		before := len(found)
		for _, of := range anchors {
			if round < len(of) {
				found = append(found, of[round])
			}
		}
		if len(found) == before {
			return found
		}
	}
}

// candidatesByAnchor returns the candidates of each anchor, without candidates
// that an earlier anchor allows.
func (o *oracle) candidatesByAnchor(r *Request) [][]Candidate {
	var all [][]Candidate
	for _, of := range o.assignmentsByAnchor(r) {
		var found []Candidate
		for _, a := range of {
			found = append(found, a.candidate)
		}
		all = append(all, o.distinct(r, found))
	}
	return all
}

// assignment is a candidate with the provider of each class of the unsuffixed
// group and of each suffixed group.
type assignment struct {
	anchor    string
	chosen    []string
	needs     [][]Amount // of each
	candidate Candidate
}

// assignmentsByAnchor returns the candidates of each anchor with their
// providers.
func (o *oracle) assignmentsByAnchor(r *Request) [][]assignment {
	classes := slices.SortedFunc(slices.Values(r.Unsuffixed.Resources), func(a, b Amount) int {
		return cmp.Compare(a.ResourceClass, b.ResourceClass)
	})
	groups := slices.SortedFunc(slices.Values(r.Groups), func(a, b Group) int {
		return cmp.Compare(a.Suffix, b.Suffix)
	})
	var needs [][]Amount
	for _, amount := range classes {
		needs = append(needs, []Amount{amount})
	}
	for _, g := range groups {
		needs = append(needs, g.Resources)
	}
	var all [][]assignment
	seen := map[string]bool{}
	for _, anchor := range o.order { // anchors by uuid; within one, assignments by paths
		if !o.mayAnchor(anchor, r) {
			continue
		}
		var found []assignment
		var try func(chosen []string)
		try = func(chosen []string) {
			i := len(chosen)
			if i == len(classes)+len(groups) {
				if !o.holds(r, classes, groups, chosen) {
					return
				}
				candidate := o.candidate(classes, groups, chosen)
				if key := render([]Candidate{candidate}); !seen[key] {
					seen[key] = true
					candidate.Root = anchor
					found = append(found, assignment{anchor, chosen, needs, candidate})
				}
				return
			}
			for _, uuid := range o.order {
				if o.repels(uuid, r) {
					continue
				}
				if i < len(classes) && o.servesClass(uuid, anchor, &r.Unsuffixed, classes[i]) ||
					i >= len(classes) && o.servesGroup(uuid, anchor, &groups[i-len(classes)]) {
					try(append(slices.Clone(chosen), uuid))
				}
			}
		}
		if len(classes)+len(groups) > 0 {
			try(nil)
		}
		all = append(all, found)
	}
	return all
}

// mayAnchor reports whether a provider is a root that the request allows.
func (o *oracle) mayAnchor(uuid string, r *Request) bool {
	for _, trait := range r.RootRequired {
		if !o.hasTrait(uuid, trait) {
			return false
		}
	}
	for _, trait := range r.RootForbidden {
		if o.hasTrait(uuid, trait) {
			return false
		}
	}
	return o.root(uuid) == uuid && !o.repels(uuid, r) &&
		(r.Hosts == nil || slices.Contains(r.Hosts.Resources, o.providers[uuid].ResourceRow))
}

// holds checks the constraints on the assignment as a whole.
func (o *oracle) holds(r *Request, classes []Amount, groups []Group, chosen []string) bool {
	if !o.meets(o.traits(chosen[:len(classes)]...), clauses(&r.Unsuffixed)) && len(classes) > 0 {
		return false
	}
	serving := map[string]string{}
	distinct := map[string]bool{}
	for i, g := range groups {
		serving[g.Suffix] = chosen[len(classes)+i]
		distinct[chosen[len(classes)+i]] = true
	}
	if r.Policy == GroupPolicyIsolate && len(distinct) != len(groups) {
		return false
	}
	for _, subtree := range r.SameSubtree {
		if !o.haveTop(subtree, serving) {
			return false
		}
	}
	return o.fit(o.candidate(classes, groups, chosen).Allocations)
}

// haveTop reports whether one of the providers serving the groups of a
// constraint is an ancestor of all the others or the same.
func (o *oracle) haveTop(subtree Subtree, serving map[string]string) bool {
	for _, top := range subtree.Suffixes {
		over := true
		for _, other := range subtree.Suffixes {
			over = over && slices.Contains(o.paths[serving[other]], serving[top])
		}
		if over {
			return true
		}
	}
	return false
}

// fit checks the sums of amounts.
func (o *oracle) fit(allocations []ProviderAllocation) bool {
	for _, allocation := range allocations {
		for _, inventory := range o.providers[allocation.Provider].Inventories {
			for _, amount := range allocation.Resources {
				if amount.ResourceClass != inventory.ResourceClass {
					continue
				}
				capacity := float64(inventory.Total-inventory.Reserved) * inventory.AllocationRatio
				if float64(inventory.Used+amount.Amount) > capacity || amount.Amount > int64(inventory.MaxUnit) {
					return false
				}
			}
		}
	}
	return true
}

func (o *oracle) candidate(classes []Amount, groups []Group, chosen []string) Candidate {
	var c Candidate
	given := map[string]map[string]int64{}
	give := func(uuid string, amounts ...Amount) {
		for _, amount := range amounts {
			if given[uuid] == nil {
				given[uuid] = map[string]int64{}
			}
			given[uuid][amount.ResourceClass] += amount.Amount
		}
	}
	var unsuffixed []string
	for i, amount := range classes {
		give(chosen[i], amount)
		unsuffixed = append(unsuffixed, chosen[i])
	}
	if len(classes) > 0 {
		slices.Sort(unsuffixed)
		c.Mappings = append(c.Mappings, Mapping{Providers: slices.Compact(unsuffixed)})
	}
	for i, g := range groups {
		uuid := chosen[len(classes)+i]
		give(uuid, g.Resources...)
		c.Mappings = append(c.Mappings, Mapping{Suffix: g.Suffix, Providers: []string{uuid}})
	}
	for uuid, amounts := range given {
		allocation := ProviderAllocation{Provider: uuid}
		for class, amount := range amounts {
			allocation.Resources = append(allocation.Resources, Amount{ResourceClass: class, Amount: amount})
		}
		slices.SortFunc(allocation.Resources, func(a, b Amount) int {
			return cmp.Compare(a.ResourceClass, b.ResourceClass)
		})
		c.Allocations = append(c.Allocations, allocation)
	}
	slices.SortFunc(c.Allocations, func(a, b ProviderAllocation) int { return cmp.Compare(a.Provider, b.Provider) })
	return c
}

// render writes candidates as text, one to a line.
func render(candidates []Candidate) string {
	var text strings.Builder
	for _, c := range candidates {
		text.WriteString(renderCandidate(c, func(uuid string) string { return uuid }))
		text.WriteString("\n")
	}
	return text.String()
}

// nearest returns the trees that lack least to serve a request, as in
// Explanation, with the names of their roots.
func (o *oracle) nearest(r *Request) []NearMiss {
	var misses []NearMiss
	for _, anchor := range o.order {
		rootsOnly := *r
		rootsOnly.Tolerates, rootsOnly.RootRequired = slices.Concat(r.Tolerates, r.RootRequired), nil
		if !o.mayAnchor(anchor, &rootsOnly) {
			continue
		}
		if miss, ok := o.missOf(anchor, r); ok && len(miss.Missing)+len(miss.Traits) > 0 {
			misses = append(misses, miss)
		}
	}
	slices.SortStableFunc(misses, lessMissing)
	return misses[:min(len(misses), MaxNearest)]
}

// lessMissing compares by number of missing things, then of missing units.
func lessMissing(a, b NearMiss) int {
	units := func(m NearMiss) (sum int64) {
		for _, shortage := range m.Missing {
			sum += shortage.Short
		}
		return sum
	}
	return cmp.Or(cmp.Compare(len(a.Missing)+len(a.Traits), len(b.Missing)+len(b.Traits)),
		cmp.Compare(units(a), units(b)))
}

// missOf returns the lack of an anchor's tree with the providers that share
// with it. It reports false if more units and traits would not help.
func (o *oracle) missOf(anchor string, r *Request) (NearMiss, bool) {
	provider := o.providers[anchor]
	miss := NearMiss{Provider: &provider}
	for _, trait := range r.RootRequired {
		if !o.hasTrait(anchor, trait) {
			miss.Traits = append(miss.Traits, trait)
		}
	}
	union := map[string]bool{} // traits of all providers that serve the unsuffixed group, or could
	for _, amount := range r.Unsuffixed.Resources {
		able, ok := o.addMiss(&miss, anchor, &Group{Resources: []Amount{amount}}, func(uuid string) bool {
			return !o.repels(uuid, r) && o.mayServeClass(uuid, anchor, &r.Unsuffixed)
		})
		if !ok {
			return miss, false
		}
		maps.Copy(union, o.traits(able...))
	}
	for i := range r.Groups {
		relaxed := Group{Forbidden: r.Groups[i].Forbidden, MemberOf: r.Groups[i].MemberOf, InTree: r.Groups[i].InTree}
		if _, ok := o.addMiss(&miss, anchor, &r.Groups[i], func(uuid string) bool {
			return !o.repels(uuid, r) && o.servesGroup(uuid, anchor, &relaxed)
		}); !ok {
			return miss, false
		}
	}
	for _, clause := range clauses(&r.Unsuffixed) {
		if len(r.Unsuffixed.Resources) > 0 && !o.meets(union, [][]string{clause}) {
			miss.Traits = append(miss.Traits, clause...)
		}
	}
	slices.Sort(miss.Traits)
	miss.Traits = slices.Compact(miss.Traits)
	slices.SortFunc(miss.Missing, func(a, b Shortage) int {
		return cmp.Or(cmp.Compare(a.ResourceClass, b.ResourceClass), cmp.Compare(a.Short, b.Short))
	})
	return miss, true
}

// addMiss adds the smallest lack of all providers that could serve a group. On
// a tie the anchor's own providers come first. It returns the providers that
// serve the group or, if there are none, the providers that could.
func (o *oracle) addMiss(miss *NearMiss, anchor string, g *Group, may func(uuid string) bool) (able []string, ok bool) {
	var own, foreign []string
	for _, uuid := range o.order {
		switch {
		case !may(uuid):
		case o.root(uuid) == anchor:
			own = append(own, uuid)
		default:
			foreign = append(foreign, uuid)
		}
	}
	able = append(own, foreign...)
	var misses []NearMiss
	for _, uuid := range able {
		misses = append(misses, o.missOfProvider(uuid, g))
	}
	serving := slices.DeleteFunc(slices.Clone(able), func(uuid string) bool {
		lacks := misses[slices.Index(able, uuid)]
		return len(lacks.Missing)+len(lacks.Traits) > 0
	})
	if len(serving) > 0 {
		return serving, true
	}
	if len(able) > 0 {
		least := slices.MinFunc(misses, lessMissing)
		miss.Missing, miss.Traits = append(miss.Missing, least.Missing...), append(miss.Traits, least.Traits...)
	}
	return able, len(able) > 0
}

func (o *oracle) missOfProvider(uuid string, g *Group) NearMiss {
	var miss NearMiss
	for _, amount := range g.Resources {
		available := amount.Amount
		for available > 0 && !o.fits(uuid, Amount{ResourceClass: amount.ResourceClass, Amount: available}) {
			available--
		}
		if available < amount.Amount {
			miss.Missing = append(miss.Missing,
				Shortage{ResourceClass: amount.ResourceClass, Short: amount.Amount - available})
		}
	}
	for _, clause := range clauses(g) {
		if !o.meets(o.traits(uuid), [][]string{clause}) {
			miss.Traits = append(miss.Traits, clause...)
		}
	}
	return miss
}
