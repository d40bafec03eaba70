package placement

import (
	"cmp"
	"slices"
)

// FitLimit is a class, trait or aggregate that limits how many consumers fit.
type FitLimit struct {
	// Kind is ConstraintResourceAmount, ConstraintRequiredTrait or
	// ConstraintMemberOf.
	Kind ConstraintKind
	// Name is a resource class, a trait, or the uuid of an aggregate.
	Name string
	// Providers is the number of providers that would serve more consumers with
	// more units of the class and a higher maxUnit, with the trait or in the
	// aggregate. Some need several of the limits.
	Providers int
}

// limiter collects limits with their providers.
type limiter struct {
	world *World
	of    map[limitKey]mask
}

type limitKey struct {
	kind ConstraintKind
	name string
}

func newLimiter(w *World) limiter { return limiter{w, map[limitKey]mask{}} }

func (l limiter) providersOf(kind ConstraintKind, name string) mask {
	key := limitKey{kind, name}
	if l.of[key] == nil {
		l.of[key] = l.world.newMask()
	}
	return l.of[key]
}

// addAll adds providers to the limit of each name; an empty mask adds no limit.
func (l limiter) addAll(kind ConstraintKind, names []string, providers mask) {
	if providers.isEmpty() {
		return
	}
	for _, name := range names {
		l.providersOf(kind, name).join(providers)
	}
}

func (l limiter) join(other limiter) {
	for key, providers := range other.of {
		l.addAll(key.kind, []string{key.name}, providers)
	}
}

// list returns the limits, most providers first.
func (l limiter) list() []FitLimit {
	limits := make([]FitLimit, 0, len(l.of))
	for key, providers := range l.of {
		limits = append(limits, FitLimit{key.kind, key.name, providers.size()})
	}
	slices.SortFunc(limits, func(a, b FitLimit) int {
		return cmp.Or(cmp.Compare(b.Providers, a.Providers), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return limits
}

// limitEach adds, for each option of a kind in the current tree, the provider to
// the masks of the demands that it has least of.
func (f *fitter) limitEach(k *servedKind, masks []mask) {
	for i, o := range k.options {
		for j := range k.demands {
			d := &k.demands[j]
			if len(k.demands) == 1 || o.node.inventoryOf(d.class).free/d.amount == k.times[i] {
				f.limitBy(masks, j, o.node.id)
			}
		}
	}
}

// limitBy adds a provider to the mask of a demand.
func (f *fitter) limitBy(masks []mask, demand int, id int32) {
	if masks[demand] == nil {
		masks[demand] = f.world.newMask()
	}
	masks[demand].add(id)
}

// limitJointly adds the options of the kinds of a joint class to its limit.
func (f *fitter) limitJointly(of jointClass) {
	for _, k := range of.kinds {
		for _, o := range f.kinds[k].options {
			f.limits.providersOf(ConstraintResourceAmount, of.name).add(o.node.id)
		}
	}
}

// limitMeeting adds the options that meet a clause to the limits of the classes
// that they serve.
func (f *fitter) limitMeeting(clause int) {
	for i := range f.options[:f.classSlots] {
		for _, o := range f.options[i] {
			if o.clauses[clause/64]&(1<<(clause%64)) != 0 {
				f.limits.providersOf(ConstraintResourceAmount, f.slots[i].demands[0].name).add(o.node.id)
			}
		}
	}
}

// limitMerged notes the providers of the current tree as limits of each class that
// several slots ask for: one of them may suffice for a slot, but not for all.
func (f *fitter) limitMerged() {
	for i := range f.slots {
		for _, d := range f.slots[i].demands {
			for _, o := range f.options[i] {
				if d.merged {
					f.refused.providersOf(ConstraintResourceAmount, d.name).add(o.node.id)
				}
			}
		}
	}
}

// limitRefused calls limitMerged for a tree that enter refused, if it may be an
// anchor, slots compete (see matcher) and every slot has an option.
func (f *fitter) limitRefused(anchor *providerTree) {
	if len(f.matchers) == 0 || !f.mayAnchor(anchor) {
		return
	}
	shared := f.sharingProviders(anchor)
	for i := range f.slots {
		if _, ok := f.listOptions(i, anchor, shared); !ok {
			return
		}
	}
	f.limitMerged()
}

// addRefused adds the limits of providers that serve no consumer: the units,
// required traits and aggregates that they lack. The argument fits reports
// whether AtMost is above 0.
func (l limiter) addRefused(r *Request, fits bool) {
	p := compile(l.world, r)
	f := &refusedFinder{reacher: l.world.newReacher(), limiter: l, plan: p}
	anchors := f.anchorsOf(p)
	f.usable = f.membersOf(anchors)
	f.usable.join(f.reachedFrom(anchors, f.sharing))
	for i := range p.slots {
		f.addShort(&p.slots[i])
	}
	for i, g := range bySuffix(r.Groups) {
		f.addGroup(&g, &p.slots[p.classSlots+i])
	}
	if p.classSlots > 0 {
		f.addUnsuffixed(&r.Unsuffixed)
	}
	f.addRoots(r)
	if len(l.of) == 0 || !fits && !f.suffices(r) {
		f.addLoosely(r)
	}
}

// suffices reports whether a root has servers for every group if all providers
// get the units, traits and aggregates that the limits found so far name. It
// ignores constraints between groups.
func (f *refusedFinder) suffices(r *Request) bool {
	relaxed := f.relaxed(r)
	p := compile(f.World, &relaxed)
	anchors, slots := f.anchorsOf(p), make([]servers, len(p.slots))
	for i, slot := range p.slots {
		demands, enough := slot.demands, slices.Clone(f.known)
		slot.demands = nil
		for _, d := range demands {
			if !f.names(ConstraintResourceAmount, d.name) {
				slot.demands = append(slot.demands, d)
				continue
			}
			f.keepUnpicky(enough, d)
			f.keepStocked(enough, d.class)
		}
		slots[i] = f.serversOf(p, &slot).with(enough)
	}
	f.keepServed(anchors, slots)
	f.keepMeeting(anchors, p, slots)
	return !anchors.isEmpty()
}

// names reports whether a class, trait or aggregate is one of the limits.
func (l limiter) names(kind ConstraintKind, name string) bool {
	return l.of[limitKey{kind, name}] != nil
}

// relaxed returns the request without the requirements that a trait or
// aggregate of the limits meets.
func (l limiter) relaxed(r *Request) Request {
	isNamed := func(trait string) bool { return l.names(ConstraintRequiredTrait, trait) }
	relax := func(g Group) Group {
		for _, clause := range g.clauses() {
			if i := slices.IndexFunc(clause, isNamed); i >= 0 {
				g = g.withoutClausesOf(clause[i])
			}
		}
		filters := g.MemberOf
		g.MemberOf = nil
		for _, of := range filters {
			if slices.ContainsFunc(of.AnyOf, func(uuid string) bool { return l.names(ConstraintMemberOf, uuid) }) {
				of.AnyOf = nil
			}
			g.MemberOf = append(g.MemberOf, of)
		}
		return g
	}
	relaxed := *r
	relaxed.Unsuffixed, relaxed.Groups = relax(r.Unsuffixed), nil
	for _, g := range r.Groups {
		relaxed.Groups = append(relaxed.Groups, relax(g))
	}
	relaxed.RootRequired = slices.DeleteFunc(slices.Clone(r.RootRequired), isNamed)
	return relaxed
}

// addLoosely adds the limits of everything that is missing on the providers
// that could serve a group or be the root, even if they lack several things.
func (f *refusedFinder) addLoosely(r *Request) {
	f.usable = f.known
	groups := bySuffix(r.Groups)
	for i := range f.plan.slots {
		g := &r.Unsuffixed
		if i >= f.plan.classSlots {
			g = &groups[i-f.plan.classSlots]
		}
		slot := f.groupSlot(&Group{Forbidden: g.Forbidden, InTree: g.InTree})
		could := f.serversOf(f.plan, &slot).own
		slot.demands = f.plan.slots[i].demands
		for _, d := range slot.demands {
			f.keepUnpicky(could, d)
			f.keepStocked(could, d.class)
		}
		f.addLacked(could, append(f.traitNeeds(g), f.aggregateNeeds(g)...))
		f.addShort(&slot)
	}
	f.addLacked(f.roots, f.traitNeeds(&Group{RequiredAll: r.RootRequired}))
}

// addLacked adds, for each need, the providers in could that do not meet it to
// the limits of its names.
func (f *refusedFinder) addLacked(could mask, needs []need) {
	for _, n := range needs {
		lacking := slices.Clone(could)
		lacking.without(n.having)
		f.addAll(n.kind, n.names, lacking)
	}
}

// refusedFinder finds providers that lack something to serve a request. The
// mask usable has the providers that a possible anchor may use.
type refusedFinder struct {
	*reacher
	limiter
	plan   *plan
	usable mask
}

// addShort adds the providers that would serve a slot with more units and a
// higher maxUnit, each to the limits of the classes that it is short of.
func (f *refusedFinder) addShort(s *slot) {
	relaxed := *s
	relaxed.demands = nil
	could := f.serversOf(f.plan, &relaxed).own
	could.keep(f.usable)
	for _, d := range s.demands {
		f.keepUnpicky(could, d)
		f.keepStocked(could, d.class)
	}
	for _, d := range s.demands {
		short, fitting := slices.Clone(could), slices.Clone(could)
		f.keepFitting(fitting, d)
		short.without(fitting)
		f.addAll(ConstraintResourceAmount, []string{d.name}, short)
	}
}

// keepUnpicky removes the providers that refuse an amount because of minUnit or
// stepSize, however many units they have.
func (f *refusedFinder) keepUnpicky(m mask, d demand) {
	picky := f.picky.at(d.class)
	for i := range m {
		for bit := range bitsOf(m[i] & picky.word(i)) {
			inventory := f.nodes.at(int32(i)*64 + bit).inventoryOf(d.class)
			if d.amount < int64(inventory.minUnit) || d.amount%int64(inventory.stepSize) != 0 {
				m.remove(int32(i)*64 + bit)
			}
		}
	}
}

// need is a condition on traits or aggregates. A provider must have at least one
// of each set. Sets with a common name are one need, because one name
// can meet both.
type need struct {
	kind   ConstraintKind
	names  []string
	sets   []mask // the providers that meet each set
	having mask   // the providers that meet all
}

// addNeed adds a set to the needs, joined with the needs that have one of its
// names.
func addNeed(needs []need, kind ConstraintKind, names []string, providers mask) []need {
	added := need{kind, slices.Clone(names), []mask{providers}, slices.Clone(providers)}
	isAdded := map[string]bool{}
	for _, name := range names {
		isAdded[name] = true
	}
	var others []need
	for _, other := range needs {
		if !slices.ContainsFunc(other.names, func(name string) bool { return isAdded[name] }) {
			others = append(others, other)
			continue
		}
		added.names, added.sets = append(added.names, other.names...), append(added.sets, other.sets...)
		added.having.keep(other.having)
	}
	added.names = sortedSet(added.names)
	return append(others, added)
}

// traitNeeds returns the needs of a group for required traits.
func (f *refusedFinder) traitNeeds(g *Group) (needs []need) {
	for _, clause := range g.clauses() {
		needs = addNeed(needs, ConstraintRequiredTrait, clause, f.union(f.traitSets(f.traits.lookupAll(clause))))
	}
	return needs
}

// aggregateNeeds returns the needs of a group for aggregates (AnyOf).
func (f *refusedFinder) aggregateNeeds(g *Group) (needs []need) {
	for _, filter := range g.MemberOf {
		if len(filter.AnyOf) > 0 {
			needs = addNeed(needs, ConstraintMemberOf, filter.AnyOf, f.union(f.aggregateSets(filter.AnyOf)))
		}
	}
	return needs
}

// lackingOne returns, for each need, the ids of a mask that meet all other
// needs, but not this one.
func lackingOne(among mask, needs []need) []mask {
	once, twice := make(mask, len(among)), make(mask, len(among))
	for _, n := range needs {
		for i := range among {
			missing := among[i] &^ n.having[i]
			twice[i] |= once[i] & missing
			once[i] |= missing
		}
	}
	alone := make([]mask, len(needs))
	for k, n := range needs {
		alone[k] = slices.Clone(among)
		alone[k].without(n.having)
		alone[k].without(twice)
	}
	return alone
}

// addGroup adds the providers that could serve a suffixed group if they had one
// more trait or aggregate.
func (f *refusedFinder) addGroup(g *Group, s *slot) {
	needs := append(f.traitNeeds(g), f.aggregateNeeds(g)...)
	if len(needs) == 0 {
		return
	}
	relaxed := Group{Resources: g.Resources, Forbidden: g.Forbidden, InTree: g.InTree}
	for _, filter := range g.MemberOf {
		relaxed.MemberOf = append(relaxed.MemberOf, AggregateFilter{NoneOf: filter.NoneOf})
	}
	slot := f.groupSlot(&relaxed)
	slot.demands = s.demands
	could := f.serversOf(f.plan, &slot).own
	could.keep(f.usable)
	for k, alone := range lackingOne(could, needs) {
		f.addAll(needs[k].kind, needs[k].names, alone)
	}
}

// addUnsuffixed does what addGroup does for the unsuffixed group. Its providers
// meet the required traits together, and a provider may be in an aggregate
// through its root.
func (f *refusedFinder) addUnsuffixed(g *Group) {
	inside := *f.plan
	inside.memberOf = nil
	relaxed, serving, shared := f.newMask(), f.newMask(), f.newMask()
	var slots []servers
	for i := range f.plan.classSlots {
		of := f.serversOf(f.plan, &f.plan.slots[i])
		slots = append(slots, of)
		serving.join(of.own)
		shared.join(of.shared)
		relaxed.join(f.serversOf(&inside, &f.plan.slots[i]).own)
	}
	traits := f.traitNeeds(g)
	met, all := make([]need, len(traits)), slices.Clone(f.roots) // of roots
	for k, trait := range traits {
		met[k].having = slices.Clone(f.roots)
		for _, having := range trait.sets {
			roots := f.newMask()
			for _, of := range slots {
				roots.join(f.rootsServed(of.with(having)))
			}
			met[k].having.keep(roots)
		}
		all.keep(met[k].having)
	}
	for k, roots := range lackingOne(f.roots, met) {
		roots.join(all)
		lacking := f.membersOf(roots)
		lacking.keep(serving)
		lacking.join(shared)
		lacking.without(traits[k].having)
		lacking.keep(f.usable)
		f.addAll(traits[k].kind, traits[k].names, lacking)
	}
	aggregates := f.aggregateNeeds(g)
	for k, alone := range lackingOne(f.known, aggregates) {
		either := f.membersOf(f.rootsAmong(alone))
		either.join(alone)
		either.keep(relaxed)
		either.keep(f.usable)
		either.without(serving)
		f.addAll(aggregates[k].kind, aggregates[k].names, either)
	}
}

// addRoots adds the roots that lack only one of the traits that roots must
// have. The other providers of their trees may lack the same trait.
func (f *refusedFinder) addRoots(r *Request) {
	if len(r.RootRequired) == 0 {
		return
	}
	needs := f.traitNeeds(&Group{RequiredAll: r.RootRequired})
	roots := slices.Clone(f.roots)
	roots.keep(f.matching(nil, r.RootForbidden, nil))
	roots.keep(f.linked(r.Hosts))
	f.keepTree(roots, f.plan.inTree)
	groups := bySuffix(r.Groups)
	for k, alone := range lackingOne(roots, needs) {
		for i := range f.plan.slots {
			if alone.isEmpty() {
				break
			}
			slot := f.plan.slots[i]
			if i >= f.plan.classSlots {
				relaxed := groups[i-f.plan.classSlots].withoutClausesOf(needs[k].names[0])
				slot.allowed = f.groupSlot(&relaxed).allowed
			}
			alone.keep(f.rootsServed(f.serversOf(f.plan, &slot)))
		}
		f.addAll(needs[k].kind, needs[k].names, alone)
	}
}

// withoutClausesOf returns the group without the requirements that a trait meets.
func (g *Group) withoutClausesOf(trait string) Group {
	relaxed := *g
	relaxed.RequiredAll, relaxed.RequiredAny, relaxed.RequiredAnySets = nil, nil, nil
	for _, clause := range g.clauses() {
		if !slices.Contains(clause, trait) {
			relaxed.RequiredAnySets = append(relaxed.RequiredAnySets, TraitSet{AnyOf: clause})
		}
	}
	return relaxed
}
