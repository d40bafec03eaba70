package resource

import (
	"slices"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// FacetKind is what resources are counted by.
type FacetKind string

// The kinds of facets.
const (
	FacetType            FacetKind = "TYPE"
	FacetProject         FacetKind = "PROJECT"
	FacetTag             FacetKind = "TAG"
	FacetVisibility      FacetKind = "VISIBILITY"
	FacetMetadataKey     FacetKind = "METADATA_KEY"
	FacetMetadataValue   FacetKind = "METADATA_VALUE"
	FacetCapabilityValue FacetKind = "CAPABILITY_VALUE"
)

// HasKey reports whether the values are those of one key.
func (k FacetKind) HasKey() bool { return k == FacetMetadataValue || k == FacetCapabilityValue }

// FacetRequest asks for the values of one kind.
type FacetRequest struct {
	By            FacetKind
	Key           *string // of metadata, or the name of a capability
	StartsWith    *string // tags whatever their case
	First         int
	IncludeUnused bool // known values that no resource has, too
}

// Facet is what resources have and how many have it.
type Facet struct {
	By      FacetKind
	Key     *string
	Values  []FacetValue
	HasMore bool
}

// FacetValue is a value and how many resources have it.
type FacetValue struct {
	Value         string
	ResourceCount int
}

// MaxFacets bounds the facets that are counted together.
const MaxFacets = 20

// CheckFacets adds what is wrong with requests for facets.
func CheckFacets(problems *problem.Problems, path string, wanted []FacetRequest) {
	if !text.CheckCount(problems, path, len(wanted), MaxFacets) {
		return
	}
	for i, of := range wanted {
		at := problem.Index(path, i)
		switch {
		case !of.By.HasKey() && of.Key != nil:
			problems.Add(problem.Join(at, "key"), "must be absent: only METADATA_VALUE and CAPABILITY_VALUE have a key")
		case of.By.HasKey() && of.Key == nil:
			problems.Add(problem.Join(at, "key"), "must be given: %s counts the values of one key", of.By)
		default:
			text.CheckOptional(problems, problem.Join(at, "key"), of.Key, 1, metadef.MaxMetadataKey)
		}
		text.CheckOptional(problems, problem.Join(at, "startsWith"), of.StartsWith, 0, MaxCapabilityValue)
		if of.First < 0 || of.First > MaxFacetValues {
			problems.Add(problem.Join(at, "first"), "must be 0 to %d", MaxFacetValues)
		}
	}
}

// Capabilities returns the names of the capabilities whose values are asked for.
func Capabilities(wanted []FacetRequest) (names []string) {
	for _, of := range wanted {
		if of.By == FacetCapabilityValue {
			names = append(names, *of.Key)
		}
	}
	return names
}

// Without returns the plan without the own choice of a facet: without the
// conditions that ask of nothing else.
func (p FilterPlan) Without(of FacetRequest) FilterPlan {
	p.parsed = slices.DeleteFunc(slices.Clone(p.parsed), func(c FilterCondition) bool { return of.chosenBy(c.Condition) })
	if of.By == FacetCapabilityValue {
		kept := p.requirements[:0:0]
		for _, requirement := range p.requirements {
			if name, _ := requirement.Capability(); name != *of.Key {
				kept = append(kept, requirement)
			}
		}
		p.requirements = kept
	}
	return p
}

// choiceOf is the kind of the conditions that are a facet's own choice.
var choiceOf = map[FacetKind]ConditionKind{FacetType: ConditionType, FacetProject: ConditionProject, FacetTag: ConditionTag, FacetVisibility: ConditionVisibility}

// chosenBy reports whether a condition asks for nothing else than the facet.
func (r FacetRequest) chosenBy(c Condition) bool {
	switch c.Kind {
	case ConditionAll, ConditionAny, ConditionNot:
		return len(c.Members) > 0 && !slices.ContainsFunc(c.Members, func(member Condition) bool { return !r.chosenBy(member) })
	case ConditionMetadata:
		return r.By == FacetMetadataValue && c.Test.Name == *r.Key || r.By == FacetMetadataKey && c.Test.Operator == Exists
	case ConditionCapability:
		return r.By == FacetCapabilityValue && c.Test.Name == *r.Key
	}
	kind, ok := choiceOf[r.By]
	return ok && c.Kind == kind
}
