package resource

import (
	"slices"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// FacetKind is the property by which resources are counted.
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

// hasKey reports whether the facet has the values of one key.
func (k FacetKind) hasKey() bool { return k == FacetMetadataValue || k == FacetCapabilityValue }

// FacetRequest is a request for the values of one kind.
type FacetRequest struct {
	By            FacetKind
	Key           *string // of metadata, or the name of a capability
	StartsWith    *string // prefix of the values; ignores case for tags only
	First         int
	IncludeUnused bool // includes known values that no resource has
}

// Facet is the values of one kind with their counts.
type Facet struct {
	By      FacetKind
	Key     *string
	Values  []FacetValue
	HasMore bool
}

// FacetValue is a value, with the number of resources that have it.
type FacetValue struct {
	Value         string
	ResourceCount int
}

// maxFacets is the maximum number of facets in one request.
const maxFacets = 20

// CheckFacets adds the problems of requests for facets.
func CheckFacets(problems *problem.Problems, path string, wanted []FacetRequest) {
	if !text.CheckCount(problems, path, len(wanted), maxFacets) {
		return
	}
	for i, of := range wanted {
		at := problem.Index(path, i)
		switch {
		case !of.By.hasKey() && of.Key != nil:
			problems.Add(problem.Join(at, "key"), "must be absent: only METADATA_VALUE and CAPABILITY_VALUE have a key")
		case of.By.hasKey() && of.Key == nil:
			problems.Add(problem.Join(at, "key"), "is required: %s counts the values of one key", of.By)
		default:
			text.CheckOptional(problems, problem.Join(at, "key"), of.Key, 1, metadef.MaxMetadataKey)
		}
		text.CheckOptional(problems, problem.Join(at, "startsWith"), of.StartsWith, 0, MaxCapabilityValue)
		if of.First < 0 || of.First > MaxFacetValues {
			problems.Add(problem.Join(at, "first"), "must be 0 to %d", MaxFacetValues)
		}
	}
}

// Capabilities returns the names of the capabilities in the requests.
func Capabilities(wanted []FacetRequest) (names []string) {
	for _, of := range wanted {
		if of.By == FacetCapabilityValue {
			names = append(names, *of.Key)
		}
	}
	return names
}

// Without returns the plan without the conditions that only concern the facet
// itself.
func (p FilterPlan) Without(of FacetRequest) FilterPlan {
	p.parsed = slices.DeleteFunc(slices.Clone(p.parsed), func(c FilterCondition) bool {
		return of.chosenBy(c.Condition) || of.By == FacetTag && c.Clause == "anyTags"
	})
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

// choiceOf maps kinds of facets to the conditions that only concern them.
var choiceOf = map[FacetKind]ConditionKind{FacetType: ConditionType, FacetProject: ConditionProject,
	FacetTag: ConditionTag, FacetVisibility: ConditionVisibility}

// chosenBy reports whether a condition concerns only the facet.
func (r FacetRequest) chosenBy(c Condition) bool {
	switch c.Kind {
	case ConditionAll, ConditionAny, ConditionNot:
		return len(c.Members) > 0 &&
			!slices.ContainsFunc(c.Members, func(member Condition) bool { return !r.chosenBy(member) })
	case ConditionMetadata:
		return r.By == FacetMetadataValue && c.Test.Name == *r.Key ||
			r.By == FacetMetadataKey && c.Test.Operator == Exists
	case ConditionCapability:
		return r.By == FacetCapabilityValue && c.Test.Name == *r.Key
	}
	kind, ok := choiceOf[r.By]
	return ok && c.Kind == kind
}
