package placement

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ExtraSpec is a metadata item of a flavor, an image or any other resource, which
// may say what a server made of it asks of placement.
type ExtraSpec struct {
	Key, Value string
}

// SpecRequest is what extra specs ask for.
type SpecRequest struct {
	Request Request
	// Capabilities are the specs in the scope of capabilities: what they require of
	// the host.
	Capabilities []ExtraSpec
	Ignored      []IgnoredSpec
	Problems     []SpecProblem
}

// IgnoredSpec is a spec that asks for nothing.
type IgnoredSpec struct {
	ExtraSpec
	Reason IgnoredReason
}

// IgnoredReason is why a spec asks for nothing.
type IgnoredReason string

// The reasons.
const (
	// NoRule: no rule reads the key.
	NoRule IgnoredReason = "NO_RULE"
	// ZeroAmount: the amount is 0.
	ZeroAmount IgnoredReason = "ZERO_AMOUNT"
	// Overridden: a key of `resources` says how much of the class is wanted.
	Overridden IgnoredReason = "OVERRIDDEN"
)

// SpecProblem is one thing wrong with the spec of a key; the key is empty where
// it is about all of them.
type SpecProblem struct {
	Key     string
	Message string
}

// The keys that say how large a flavor is. They count in the unsuffixed group,
// for the class beside them.
const (
	specVCPUs     = "vcpus"     // VCPU
	specRAM       = "ram"       // MEMORY_MB, in MiB
	specDisk      = "disk"      // DISK_GB, in GiB
	specEphemeral = "ephemeral" // DISK_GB, in GiB, in addition
	specSwap      = "swap"      // DISK_GB, in MiB, in addition, rounded up together
)

const (
	specGroupPolicy  = "group_policy"
	specCapabilities = "capabilities:"
)

var (
	// groupSpec is `resources[S]:CLASS` and `trait[S]:TRAIT`.
	groupSpec = regexp.MustCompile(`^(resources|trait)([A-Za-z0-9_-]{1,64})?:(.*)$`)
	// requiredSpec is `required[S]`, whose value is a list of traits.
	requiredSpec = regexp.MustCompile(`^required([A-Za-z0-9_-]{1,64})?$`)
	traitList    = regexp.MustCompile(`^(in:.*|!?[A-Z][A-Z0-9_]*( *, *!?[A-Z][A-Z0-9_]*)*)$`)
	subtreeSpec  = regexp.MustCompile(`^same_subtree([A-Za-z0-9_-]{1,64})?$`)
)

// ReadSpecs returns what extra specs ask for, by the rules of Nova's scheduler and
// of the any-traits specification, which docs/placement.md lists. The answer does
// not depend on the order of the specs. What cannot be read is a problem, and asks
// for nothing.
func ReadSpecs(w *World, specs []ExtraSpec) SpecRequest {
	r := &specReader{groups: map[string]*specGroup{}, named: map[string]bool{}, sizes: map[string]int64{}, origins: map[string]string{}}
	for _, spec := range slices.SortedFunc(slices.Values(specs), compareSpecs) {
		r.readSpec(spec)
	}
	r.addSizes()
	r.addGroups()
	r.validate(w)
	slices.SortStableFunc(r.found.Ignored, func(a, b IgnoredSpec) int { return compareSpecs(a.ExtraSpec, b.ExtraSpec) })
	slices.SortStableFunc(r.found.Problems, func(a, b SpecProblem) int { return cmp.Compare(a.Key, b.Key) })
	return r.found
}

func compareSpecs(a, b ExtraSpec) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value))
}

// specReader reads extra specs, one by one. Named are the classes that keys of
// `resources` name, in whatever group; origins are the keys that the paths of the
// request come from.
type specReader struct {
	found   SpecRequest
	groups  map[string]*specGroup // by suffix
	named   map[string]bool
	sizes   map[string]int64 // by key, of those that say how large a flavor is
	origins map[string]string
}

// specGroup is a group with the keys that its parts come from.
type specGroup struct {
	Group
	first                                 string // the first key of all
	resources, required, anyOf, forbidden []string
}

func (r *specReader) problem(key, message string) {
	r.found.Problems = append(r.found.Problems, SpecProblem{Key: key, Message: message})
}

func (r *specReader) ignore(spec ExtraSpec, reason IgnoredReason) {
	r.found.Ignored = append(r.found.Ignored, IgnoredSpec{spec, reason})
}

// group returns the group of a suffix, "" for the unsuffixed one.
func (r *specReader) group(suffix, key string) *specGroup {
	if r.groups[suffix] == nil {
		r.groups[suffix] = &specGroup{Group: Group{Suffix: suffix}, first: key}
	}
	return r.groups[suffix]
}

func (r *specReader) readSpec(spec ExtraSpec) {
	switch key := spec.Key; key {
	case specVCPUs, specRAM, specDisk, specEphemeral, specSwap:
		r.readSize(spec)
		return
	case specGroupPolicy:
		r.readPolicy(spec)
		return
	}
	if strings.HasPrefix(spec.Key, specCapabilities) {
		r.found.Capabilities = append(r.found.Capabilities, spec)
	} else if of := groupSpec.FindStringSubmatch(spec.Key); of != nil && of[1] == "resources" {
		r.readAmount(spec, of[2], of[3])
	} else if of != nil {
		r.readTrait(spec, of[2], of[3])
	} else if of := requiredSpec.FindStringSubmatch(spec.Key); of != nil && traitList.MatchString(spec.Value) {
		r.readTraits(spec, of[1])
	} else if subtreeSpec.MatchString(spec.Key) {
		r.readSubtree(spec)
	} else {
		r.ignore(spec, NoRule)
	}
}

// amountOf returns the amount that a value is: a number without sign, fraction or
// unit.
func (r *specReader) amountOf(spec ExtraSpec) (amount int64, ok bool) {
	amount, err := strconv.ParseInt(spec.Value, 10, 64)
	if err != nil || amount < 0 || amount > MaxAmount || strings.HasPrefix(spec.Value, "+") || strings.HasPrefix(spec.Value, "-") {
		r.problem(spec.Key, "must be a whole number from 0 to 2147483647")
		return 0, false
	}
	return amount, true
}

func (r *specReader) readSize(spec ExtraSpec) {
	amount, ok := r.amountOf(spec)
	if !ok {
		return
	}
	if r.sizes[spec.Key] = amount; amount == 0 {
		r.ignore(spec, ZeroAmount)
	}
}

func (r *specReader) readPolicy(spec ExtraSpec) {
	switch spec.Value {
	case "none":
	case "isolate":
		r.found.Request.Policy = GroupPolicyIsolate
	default:
		r.problem(spec.Key, "must be none or isolate")
	}
}

// readAmount reads `resources[S]:CLASS`. The class counts as named whatever the
// amount is.
func (r *specReader) readAmount(spec ExtraSpec, suffix, class string) {
	r.named[class] = true
	amount, ok := r.amountOf(spec)
	switch {
	case !ok:
	case amount == 0:
		r.ignore(spec, ZeroAmount)
	default:
		g := r.group(suffix, spec.Key)
		g.Resources, g.resources = append(g.Resources, Amount{class, amount}), append(g.resources, spec.Key)
	}
}

// readTrait reads `trait[S]:TRAIT`.
func (r *specReader) readTrait(spec ExtraSpec, suffix, trait string) {
	switch spec.Value {
	case "required":
		g := r.group(suffix, spec.Key)
		g.RequiredAll, g.required = append(g.RequiredAll, trait), append(g.required, spec.Key)
	case "forbidden":
		g := r.group(suffix, spec.Key)
		g.Forbidden, g.forbidden = append(g.Forbidden, trait), append(g.forbidden, spec.Key)
	default:
		r.problem(spec.Key, "must be required or forbidden")
	}
}

// readTraits reads `required[S]`, whose value is a list of traits: those with ! are
// forbidden; after in: one of them is enough.
func (r *specReader) readTraits(spec ExtraSpec, suffix string) {
	list, anyOf := strings.CutPrefix(spec.Value, "in:")
	var traits []string
	for trait := range strings.SplitSeq(list, ",") {
		traits = append(traits, strings.TrimSpace(trait))
	}
	g := r.group(suffix, spec.Key)
	if anyOf {
		if slices.ContainsFunc(traits, func(trait string) bool { return strings.HasPrefix(trait, "!") }) {
			r.problem(spec.Key, "must not have a trait with ! after in:")
			return
		}
		g.RequiredAnySets, g.anyOf = append(g.RequiredAnySets, TraitSet{AnyOf: traits}), append(g.anyOf, spec.Key)
		return
	}
	for _, trait := range traits {
		if name, forbidden := strings.CutPrefix(trait, "!"); forbidden {
			g.Forbidden, g.forbidden = append(g.Forbidden, name), append(g.forbidden, spec.Key)
		} else {
			g.RequiredAll, g.required = append(g.RequiredAll, trait), append(g.required, spec.Key)
		}
	}
}

// readSubtree reads `same_subtree`, a list of suffixes. A text after the key makes
// several of them possible.
func (r *specReader) readSubtree(spec ExtraSpec) {
	var suffixes []string
	for suffix := range strings.SplitSeq(spec.Value, ",") {
		suffixes = append(suffixes, strings.TrimSpace(suffix))
	}
	r.origins[at("sameSubtree", len(r.found.Request.SameSubtree))] = spec.Key
	r.found.Request.SameSubtree = append(r.found.Request.SameSubtree, Subtree{Suffixes: suffixes})
}

// addSizes adds how large the flavor is to the unsuffixed group: the classes that
// no key of `resources` names.
func (r *specReader) addSizes() {
	mebibytes := 1024*r.sizes[specEphemeral] + r.sizes[specSwap]
	for _, size := range []struct {
		class  string
		amount int64
		keys   []string
	}{
		{"VCPU", r.sizes[specVCPUs], []string{specVCPUs}},
		{"MEMORY_MB", r.sizes[specRAM], []string{specRAM}},
		{"DISK_GB", r.sizes[specDisk] + (mebibytes+1023)/1024, []string{specDisk, specEphemeral, specSwap}},
	} {
		key := size.keys[0]
		for _, of := range size.keys {
			if amount := r.sizes[of]; amount > 0 {
				if key = of; r.named[size.class] {
					r.ignore(ExtraSpec{of, strconv.FormatInt(amount, 10)}, Overridden)
				}
			}
		}
		if size.amount > 0 && !r.named[size.class] {
			g := r.group("", key)
			g.Resources, g.resources = append(g.Resources, Amount{size.class, size.amount}), append(g.resources, key)
		}
	}
}

// addGroups puts the groups into the request and notes where their parts come from.
func (r *specReader) addGroups() {
	request := &r.found.Request
	suffixes := []string{}
	for suffix := range r.groups {
		suffixes = append(suffixes, suffix)
	}
	slices.Sort(suffixes)
	for _, suffix := range suffixes {
		g, path := r.groups[suffix], ""
		if suffix == "" {
			request.Unsuffixed = g.Group
			r.origins["resources"] = g.first
		} else {
			path = at("groups", len(request.Groups))
			request.Groups = append(request.Groups, g.Group)
			r.origins[path] = g.first
		}
		for _, of := range []struct {
			field string
			keys  []string
		}{{"resources", g.resources}, {"requiredAll", g.required}, {"requiredAnySets", g.anyOf}, {"forbidden", g.forbidden}} {
			for i, key := range of.keys {
				r.origins[at(under(path, of.field), i)] = key
			}
		}
	}
}

// validate adds the problems of the request as a whole, each at the key that its
// path comes from.
func (r *specReader) validate(w *World) {
	if len(r.groups) == 0 && len(r.found.Request.SameSubtree) == 0 {
		if len(r.found.Problems) == 0 {
			r.problem("", "no key asks for resources")
		}
		return
	}
	for _, problem := range Validate(w, &r.found.Request) {
		r.problem(r.originOf(problem.Path), problem.Message)
	}
}

// originOf returns the key of the longest part of a path that comes from one.
func (r *specReader) originOf(path string) string {
	for path != "" {
		if key, ok := r.origins[path]; ok {
			return key
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return ""
}
