package placement

// MaxLimits is the maximum number of limits of a project.
const MaxLimits = 100

// Limit is how much of a resource class the consumers of a project may use
// together, of all providers or of providers with Trait.
type Limit struct {
	ProjectID     string
	ResourceClass string
	Trait         *string // nil counts all providers
	Amount        int64
	Used          int64 // may exceed Amount, as a limit can be set below the use
	Held          int64 // the part of Used that held consumers use
}

// ProjectLimits replaces all limits of a project. It follows `SetLimitsInput`.
type ProjectLimits struct {
	ProjectID string
	Limits    []NewLimit
	DryRun    bool
}

// NewLimit is a limit of a project. It follows `LimitInput`.
type NewLimit struct {
	ResourceClass string
	Trait         *string
	Amount        int64
}

// Validate returns every problem of the limits, each at its path below path
// ("input"): of their form, and traits and classes that do not exist.
func (p *ProjectLimits) Validate(path string, known KnownNames) []Problem {
	var v validator
	v.require(isText(p.ProjectID, MaxNameLength), under(path, "projectId"), idRule)
	path = under(path, "limits")
	v.atMost(MaxLimits, path, len(p.Limits))
	type key struct {
		class, trait string
		hasTrait     bool
	}
	seen := map[key]bool{}
	for i, limit := range p.Limits {
		path, of := at(path, i), key{class: limit.ResourceClass}
		v.require(limit.Amount >= 0, under(path, "limit"), "must be at least 0")
		if limit.Trait != nil {
			of.trait, of.hasTrait = *limit.Trait, true
			v.checkKnownTrait(under(path, "trait"), of.trait, known)
		}
		switch class := under(path, "resourceClass"); {
		case !isName(of.class):
			v.add(class, nameRule)
		case !known.ResourceClasses[of.class]:
			v.unknownClass(class, of.class)
		case seen[of]:
			v.add(class, "duplicate limit of %s", limit.subject())
		}
		seen[of] = true
	}
	return v.problems
}

func (v *validator) checkKnownTrait(path, name string, known KnownNames) {
	if !isName(name) {
		v.add(path, nameRule)
	} else if !known.Traits[name] {
		v.problems = append(v.problems, UnknownTrait(path, name))
	}
}

// subject returns the class and the trait of a limit in words.
func (l *NewLimit) subject() string {
	if l.Trait == nil {
		return l.ResourceClass
	}
	return l.ResourceClass + " on providers with " + *l.Trait
}

// SetLimits sets the limits of the projects whose claims the ledger decides
// about. Used of a limit must count all consumers of its project. Before the
// first claim, Traits of each LedgerProvider must have its traits that the
// limits name. The ledger changes Used in the list.
func (l *Ledger) SetLimits(limits []Limit) { l.limits = limits }

// counts reports whether a limit counts an allocation of a project.
func (l *Ledger) counts(limit *Limit, project string, key AllocationKey) bool {
	return limit.ProjectID == project && limit.ResourceClass == key.ResourceClass &&
		(limit.Trait == nil || l.providers[key.Provider].Traits[*limit.Trait])
}

// count adds an amount, perhaps negative, to Used of the limits that count it.
func (l *Ledger) count(project string, key AllocationKey, amount int64) {
	for i := range l.limits {
		if l.counts(&l.limits[i], project, key) {
			l.limits[i].Used += amount
		}
	}
}

// checkLimits refuses claims that together raise the use of a project above a
// limit. Claims that keep or lower the use are accepted, even above the limit.
// A refusal is at the first consumer whose own use rises.
func (c *claimCheck) checkLimits(claims []ConsumerClaim, path string) {
	for i := range c.limits {
		limit, more, first := &c.limits[i], int64(0), -1
		for k := range claims {
			rise := c.rise(limit, &claims[k])
			if more += rise; rise > 0 && first < 0 {
				first = k
			}
		}
		if more > 0 && limit.Used+more > limit.Amount {
			of := NewLimit{ResourceClass: limit.ResourceClass, Trait: limit.Trait}
			c.refusals.add(LimitExceeded, under(at(path, first), "allocations"),
				"project %q may use %d %s: %d are used, %d more requested",
				limit.ProjectID, limit.Amount, of.subject(), limit.Used, more)
		}
	}
}

// rise returns by how much a claim raises the use that a limit counts. It is
// negative if the claim lowers the use.
func (c *claimCheck) rise(limit *Limit, claim *ConsumerClaim) (rise int64) {
	for _, allocation := range claim.Allocations {
		for _, amount := range allocation.Resources {
			if c.counts(limit, claim.ProjectID, AllocationKey{allocation.Provider, amount.ResourceClass}) {
				rise += amount.Amount
			}
		}
	}
	previous := c.Consumer(claim.UUID)
	for key, used := range previous.Allocations {
		if c.counts(limit, previous.ProjectID, key) {
			rise -= used
		}
	}
	return rise
}
