package placement

import "slices"

// Validate names everything that is wrong with a request, each problem at its argument. A name is wrong when
// the world does not know it; an aggregate or tree that nobody has ever seen is not wrong, it only matches
// nothing. The rules are those of the Placement reference for `GET /allocation_candidates`.
func Validate(w *World, r *Request) []Problem {
	var found problems
	found.tooMany("groups", len(r.Groups), MaxGroups)
	validateGroup(&found, w, "", &r.Unsuffixed)
	if len(r.Unsuffixed.Resources) == 0 && r.Unsuffixed.constrained() {
		found.add("resources", "must name an amount when other arguments of the unsuffixed group are given")
	}

	suffixes := map[string]bool{}
	anyResources := len(r.Unsuffixed.Resources) > 0
	for i := range r.Groups {
		g := &r.Groups[i]
		path := at("groups", i)
		switch {
		case !isSuffix(g.Suffix):
			found.add(under(path, "suffix"), "must be 1 to 64 of A-Z, a-z, 0-9, _ and -")
		case suffixes[g.Suffix]:
			found.add(under(path, "suffix"), "must not repeat the suffix %s", g.Suffix)
		}
		suffixes[g.Suffix] = true
		validateGroup(&found, w, path, g)
		anyResources = anyResources || len(g.Resources) > 0
		if len(g.Resources) == 0 && !r.inSameSubtree(g.Suffix) {
			found.add(under(path, "resources"), "must name an amount unless the group is named in sameSubtree")
		}
	}
	if !anyResources {
		found.add("resources", "must name an amount here or in a group")
	}
	if r.Policy != GroupPolicyNone && r.Policy != GroupPolicyIsolate {
		found.add("groupPolicy", "must be NONE or ISOLATE")
	}

	found.tooMany("sameSubtree", len(r.SameSubtree), MaxSameSubtree)
	for i, subtree := range r.SameSubtree {
		path := under(at("sameSubtree", i), "suffixes")
		if len(subtree.Suffixes) == 0 {
			found.add(path, "must name at least one group")
		}
		found.tooMany(path, len(subtree.Suffixes), MaxGroups)
		for k, suffix := range subtree.Suffixes {
			if !suffixes[suffix] {
				found.add(at(path, k), "must be the suffix of a group")
			}
		}
	}

	validateTraits(&found, w, "rootRequired", r.RootRequired)
	validateTraits(&found, w, "rootForbidden", r.RootForbidden)
	for i, trait := range r.RootRequired {
		if slices.Contains(r.RootForbidden, trait) {
			found.add(at("rootRequired", i), "must not also be in rootForbidden")
		}
	}
	return found
}

// Validate names everything that is wrong with the filter, each problem below path. Requiring and forbidding
// the same is not wrong here; nothing meets it (as in the reference's `GET /resource_providers`).
func (f *ProviderFilter) Validate(w *World, path string) []Problem {
	var found problems
	g := f.group()
	found.tooMany(under(path, "uuids"), len(f.UUIDs), MaxFilterList)
	for i, uuid := range f.UUIDs {
		validateUUID(&found, at(under(path, "uuids"), i), uuid)
	}
	validateConstraints(&found, w, path, &g)
	return found
}

// group is what the filter asks of a provider's inventories, traits, aggregates and tree.
func (f *ProviderFilter) group() Group {
	return Group{
		Resources:       f.Resources,
		RequiredAll:     f.RequiredAll,
		RequiredAny:     f.RequiredAny,
		RequiredAnySets: f.RequiredAnySets,
		Forbidden:       f.Forbidden,
		MemberOf:        f.MemberOf,
		InTree:          f.InTree,
	}
}

// constrained says whether anything but resources is given.
func (g *Group) constrained() bool {
	return len(g.RequiredAll)+len(g.RequiredAny)+len(g.RequiredAnySets)+len(g.Forbidden)+len(g.MemberOf) > 0 ||
		g.InTree != ""
}

func (r *Request) inSameSubtree(suffix string) bool {
	return slices.ContainsFunc(r.SameSubtree, func(s Subtree) bool { return slices.Contains(s.Suffixes, suffix) })
}

// validateGroup checks a group of a request, where requiring only what is forbidden is a mistake.
func validateGroup(found *problems, w *World, path string, g *Group) {
	validateConstraints(found, w, path, g)
	if len(g.Forbidden) == 0 {
		return
	}
	forbids := func(trait string) bool { return slices.Contains(g.Forbidden, trait) }
	allForbidden := func(traits []string) bool {
		return len(traits) > 0 && !slices.ContainsFunc(traits, func(trait string) bool { return !forbids(trait) })
	}
	for i, trait := range g.RequiredAll {
		if forbids(trait) {
			found.add(at(under(path, "requiredAll"), i), "must not also be forbidden in the same group")
		}
	}
	if allForbidden(g.RequiredAny) {
		found.add(under(path, "requiredAny"), "must not consist of traits forbidden in the same group")
	}
	for i, set := range g.RequiredAnySets {
		if allForbidden(set.AnyOf) {
			found.add(at(under(path, "requiredAnySets"), i), "must not consist of traits forbidden in the same group")
		}
	}
}

// validateConstraints checks each argument of a group or filter by itself.
func validateConstraints(found *problems, w *World, path string, g *Group) {
	validateAmounts(found, under(path, "resources"), g.Resources, w)
	validateTraits(found, w, under(path, "requiredAll"), g.RequiredAll)
	validateTraits(found, w, under(path, "requiredAny"), g.RequiredAny)
	found.tooMany(under(path, "requiredAnySets"), len(g.RequiredAnySets), MaxTraitSets)
	for i, set := range g.RequiredAnySets {
		here := under(at(under(path, "requiredAnySets"), i), "anyOf")
		if len(set.AnyOf) == 0 {
			found.add(here, "must name at least one trait")
		}
		validateTraits(found, w, here, set.AnyOf)
	}
	validateTraits(found, w, under(path, "forbidden"), g.Forbidden)
	found.tooMany(under(path, "memberOf"), len(g.MemberOf), MaxMemberOf)
	for i, filter := range g.MemberOf {
		here := at(under(path, "memberOf"), i)
		validateAggregates(found, under(here, "anyOf"), filter.AnyOf)
		validateAggregates(found, under(here, "noneOf"), filter.NoneOf)
	}
	if g.InTree != "" {
		validateUUID(found, under(path, "inTree"), g.InTree)
	}
}

// validateAmounts checks amounts; a nil world leaves open whether the classes exist.
func validateAmounts(found *problems, path string, resources []Amount, w *World) {
	found.tooMany(path, len(resources), MaxResources)
	seen := map[string]bool{}
	for i, amount := range resources {
		class := under(at(path, i), "resourceClass")
		switch {
		case !isName(amount.ResourceClass):
			found.add(class, nameRule)
		case seen[amount.ResourceClass]:
			found.add(class, "must not repeat the class %s", amount.ResourceClass)
		case w != nil && !w.HasResourceClass(amount.ResourceClass):
			found.add(class, "must be an existing resource class, %s is none", amount.ResourceClass)
		}
		seen[amount.ResourceClass] = true
		if amount.Amount < 1 || amount.Amount > MaxAmount {
			found.add(under(at(path, i), "amount"), "must be between 1 and 2147483647")
		}
	}
}

func validateTraits(found *problems, w *World, path string, traits []string) {
	found.tooMany(path, len(traits), MaxTraits)
	for i, trait := range traits {
		switch {
		case !isName(trait):
			found.add(at(path, i), nameRule)
		case !w.HasTrait(trait):
			found.add(at(path, i), "must be an existing trait, %s is none", trait)
		}
	}
}

func validateAggregates(found *problems, path string, uuids []string) {
	found.tooMany(path, len(uuids), MaxAggregates)
	for i, uuid := range uuids {
		validateUUID(found, at(path, i), uuid)
	}
}

func validateUUID(found *problems, path, uuid string) {
	if _, ok := CanonicalUUID(uuid); !ok {
		found.add(path, uuidRule)
	}
}
