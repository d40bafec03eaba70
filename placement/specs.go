package placement

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ExtraSpec is a metadata item of a flavor, an image or another resource. It
// may contain requirements on placement for servers made from the resource.
type ExtraSpec struct {
	Key, Value string
}

// SpecRequest is the result of ReadSpecs.
type SpecRequest struct {
	Request Request
	// Capabilities are the specs with the scope `capabilities`: requirements on
	// the host.
	Capabilities []ExtraSpec
	Ignored      []IgnoredSpec
	Problems     []SpecProblem
}

// IgnoredSpec is a spec without effect on the request.
type IgnoredSpec struct {
	ExtraSpec
	Reason IgnoredReason
}

// IgnoredReason is why a spec has no effect.
type IgnoredReason string

// The reasons.
const (
	// NoRule: no rule reads the key.
	NoRule IgnoredReason = "NO_RULE"
	// ZeroAmount: the amount is 0.
	ZeroAmount IgnoredReason = "ZERO_AMOUNT"
	// Overridden: a key of `resources` sets the amount of the class.
	Overridden IgnoredReason = "OVERRIDDEN"
)

// SpecProblem is one thing wrong with the spec of a key. Key is empty if the
// problem concerns all specs.
type SpecProblem struct {
	Key     string
	Message string
}

// The keys for the size of a flavor. They count in the unsuffixed group, for
// the class in the comment.
const (
	specVCPUs     = "vcpus"     // VCPU
	specRAM       = "ram"       // MEMORY_MB, in MiB
	specDisk      = "disk"      // DISK_GB, in GiB
	specEphemeral = "ephemeral" // DISK_GB, in GiB, in addition
	specSwap      = "swap"      // DISK_GB, in MiB, in addition, rounded up to GiB
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

// ReadSpecs translates extra specs into a request, by the rules of Nova's
// scheduler and of the any-traits specification, which docs/placement.md lists.
// The result does not depend on the order of the specs. A spec that cannot be
// parsed is a problem and adds nothing to the request.
func ReadSpecs(w *World, specs []ExtraSpec) SpecRequest {
	r := newSpecReader()
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

// CheckSpec reports whether a rule of placement reads a spec, and returns its
// problem, "" for none. It checks the form of a class or trait in the key, but
// not whether it exists.
func CheckSpec(spec ExtraSpec) (known bool, problem string) {
	r := newSpecReader()
	r.readSpec(spec)
	if of := groupSpec.FindStringSubmatch(spec.Key); of != nil && !isName(of[3]) {
		return true, "the name in the key " + nameRule
	}
	for _, found := range r.found.Problems {
		problem = found.Message
	}
	ignored := slices.ContainsFunc(r.found.Ignored, func(of IgnoredSpec) bool { return of.Reason == NoRule })
	return !ignored && len(r.found.Capabilities) == 0, problem
}

func compareSpecs(a, b ExtraSpec) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value))
}

// specReader reads extra specs, one by one. Named holds the classes that any
// key of `resources` names. Origins maps a path of the request to the key that
// it comes from.
type specReader struct {
	found   SpecRequest
	groups  map[string]*specGroup // by suffix
	named   map[string]bool
	sizes   map[string]int64 // by key for the size of a flavor
	origins map[string]string
}

// specGroup is a group with the keys of its parts.
type specGroup struct {
	Group
	first                                 string // the first key of all
	resources, required, anyOf, forbidden []string
}

func newSpecReader() *specReader {
	return &specReader{groups: map[string]*specGroup{}, named: map[string]bool{},
		sizes: map[string]int64{}, origins: map[string]string{}}
}

func (r *specReader) problem(key, message string) {
	r.found.Problems = append(r.found.Problems, SpecProblem{Key: key, Message: message})
}

func (r *specReader) ignore(spec ExtraSpec, reason IgnoredReason) {
	r.found.Ignored = append(r.found.Ignored, IgnoredSpec{spec, reason})
}

// group returns the group of a suffix, "" for the unsuffixed group. It creates a
// missing group, with key as its first key.
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

// amountOf parses the value as an amount: a number up to MaxAmount without sign,
// fraction or unit. For any other value it adds a problem.
func (r *specReader) amountOf(spec ExtraSpec) (amount int64, ok bool) {
	amount, err := strconv.ParseInt(spec.Value, 10, 64)
	if err != nil || amount < 0 || amount > MaxAmount || strings.HasPrefix(spec.Value, "+") ||
		strings.HasPrefix(spec.Value, "-") {
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

// readAmount reads `resources[S]:CLASS`. The class counts as named for any
// amount, also 0.
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

// readTraits reads `required[S]`, whose value is a list of traits. A trait
// after ! is forbidden. After in: at least one of the traits is required.
func (r *specReader) readTraits(spec ExtraSpec, suffix string) {
	list, anyOf := strings.CutPrefix(spec.Value, "in:")
	var traits []string
	for trait := range strings.SplitSeq(list, ",") {
		traits = append(traits, strings.TrimSpace(trait))
	}
	g := r.group(suffix, spec.Key)
	if anyOf {
		if slices.ContainsFunc(traits, func(trait string) bool { return strings.HasPrefix(trait, "!") }) {
			r.problem(spec.Key, "must not combine in: and !")
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

// readSubtree reads `same_subtree`, a list of suffixes. The key may have a
// suffix, so that there can be several lists.
func (r *specReader) readSubtree(spec ExtraSpec) {
	var suffixes []string
	for suffix := range strings.SplitSeq(spec.Value, ",") {
		suffixes = append(suffixes, strings.TrimSpace(suffix))
	}
	r.origins[at("sameSubtree", len(r.found.Request.SameSubtree))] = spec.Key
	r.found.Request.SameSubtree = append(r.found.Request.SameSubtree, Subtree{Suffixes: suffixes})
}

// addSizes adds the size of the flavor to the unsuffixed group, except for
// classes that a key of `resources` names.
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

// addGroups adds the groups to the request and records the origins of their
// parts.
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
		}{{"resources", g.resources}, {"requiredAll", g.required},
			{"requiredAnySets", g.anyOf}, {"forbidden", g.forbidden}} {
			for i, key := range of.keys {
				r.origins[at(under(path, of.field), i)] = key
			}
		}
	}
}

// validate adds the problems of the whole request, each under the key that its
// path comes from.
func (r *specReader) validate(w *World) {
	if len(r.groups) == 0 && len(r.found.Request.SameSubtree) == 0 {
		if len(r.found.Problems) == 0 {
			r.problem("", "no key requests resources")
		}
		return
	}
	for _, problem := range Validate(w, &r.found.Request) {
		r.problem(r.originOf(problem.Path), problem.Message)
	}
}

// originOf returns the key of the longest prefix of a path that has an origin, ""
// for none.
func (r *specReader) originOf(path string) string {
	for path != "" {
		if key, ok := r.origins[path]; ok {
			return key
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return ""
}
