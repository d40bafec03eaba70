package resource

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// FilterPlan is a filter as a list of conditions that must all hold.
// Requirements become conditions in Conditions, once the known capabilities are
// given.
type FilterPlan struct {
	path         string
	parsed       []FilterCondition
	requirements []Requirement
	unknownKeys  UnknownKeys
}

// FilterCondition is one of the conditions of a filter that must all hold.
type FilterCondition struct {
	Clause    string // for display: its field, then its value for some fields
	Condition Condition
	Ignored   bool   // a requirement that does not concern capabilities
	Path      string // of its argument
}

// Field returns the field of the filter that has the condition.
func (c FilterCondition) Field() string {
	field, _, _ := strings.Cut(c.Clause, " ")
	field, _, _ = strings.Cut(field, "[")
	return field
}

// Plan returns the plan of a filter. It adds the problems of Matching, Where and
// the keys of Requirements; Check adds the others.
func (f Filter) Plan(problems *problem.Problems, path string) FilterPlan {
	plan := FilterPlan{path: path, requirements: f.Requirements, unknownKeys: f.UnknownKeys, parsed: f.plain(path)}
	add := func(field string, condition Condition) {
		for i, member := range topLevel(condition) {
			plan.parsed = append(plan.parsed,
				FilterCondition{Clause: problem.Index(field, i), Condition: member, Path: problem.Join(path, field)})
		}
	}
	if f.Matching != nil {
		add("matching", ParseMatching(*f.Matching, problems, problem.Join(path, "matching")))
	}
	if f.Where != nil {
		add("where", f.Where.Condition(problems, problem.Join(path, "where")))
	}
	for i, requirement := range f.Requirements {
		at := problem.Index(problem.Join(path, "requirements"), i)
		text.Check(problems, problem.Join(at, "key"), requirement.Key, 1, maxRequirement)
	}
	return plan
}

// plain returns the conditions of all fields that need no parsing.
func (f Filter) plain(path string) (conditions []FilterCondition) {
	add := func(clause, path string, condition Condition) {
		conditions = append(conditions, FilterCondition{Clause: clause, Condition: condition, Path: path})
	}
	of := func(field string, kind ConditionKind, operands []string) {
		if operands != nil {
			add(field, problem.Join(path, field), Condition{Kind: kind, Test: Test{Operands: operands}})
		}
	}
	of("types", ConditionType, f.Types)
	of("projectId", ConditionProject, one(f.ProjectID))
	of("projectIds", ConditionProject, f.ProjectIDs)
	if f.Visibility != nil {
		of("visibility", ConditionVisibility, []string{string(*f.Visibility)})
	}
	of("name", ConditionName, one(f.Name))
	of("nameContains", ConditionNameContains, folded(f.NameContains))
	of("search", ConditionSearch, folded(f.Search))
	if f.UpdatedSince != nil {
		add("updatedSince", problem.Join(path, "updatedSince"),
			Condition{Kind: ConditionUpdatedSince, Since: *f.UpdatedSince})
	}
	of("uuids", ConditionUUID, f.UUIDs)
	of("parent", ConditionParent, one(f.Parent))
	of("ancestor", ConditionAncestor, one(f.Ancestor))
	for i, tag := range f.Tags {
		add("tags "+tag.Name, problem.Index(problem.Join(path, "tags"), i), tag.Condition())
	}
	if f.AnyTags != nil {
		add("anyTags", problem.Join(path, "anyTags"),
			Condition{Kind: ConditionAny, Members: lists.Map(f.AnyTags, TagFilter.Condition)})
	}
	keys, values := f.metadataByKey()
	for _, key := range keys {
		test := Test{Name: key, Operator: Equals, Comparison: AsText, Operands: values[key]}
		add("metadata "+key+": "+strings.Join(values[key], ", "), problem.Join(path, "metadata"),
			Condition{Kind: ConditionMetadata, Test: test})
	}
	return conditions
}

// folded returns the folded operand as a list, nil for nil.
func folded(operand *string) []string {
	if operand == nil {
		return nil
	}
	return []string{text.Fold(*operand)}
}

// Condition returns the condition that a resource has the tag.
func (t TagFilter) Condition() Condition {
	return Condition{Kind: ConditionTag, Test: Test{Operands: []string{text.Fold(t.Name)}}, Below: t.IncludeDescendants}
}

// CapabilityNames are the names of the capabilities that a viewer may know of. All
// lists them, for suggestions if a name is unknown.
type CapabilityNames struct {
	Knows func(name string) bool
	All   []string
}

// Check adds a problem for an unknown name, with a suggestion.
func (n CapabilityNames) Check(problems *problem.Problems, path, name string) {
	if message, ok := n.Unknown([]string{name})[name]; ok {
		problems.Add(path, "%s", message)
	}
}

// Unknown returns a message for each unknown name. The first maxRequirements
// messages suggest known names.
func (n CapabilityNames) Unknown(names []string) map[string]string {
	messages := map[string]string{}
	var speller text.Speller
	for _, name := range names {
		if _, told := messages[name]; told || n.Knows(name) {
			continue
		}
		if len(messages) == 0 {
			speller = text.NewSpeller(n.All)
		}
		hint := ""
		if len(messages) < maxRequirements {
			hint = speller.DidYouMean(name)
		}
		messages[name] = fmt.Sprintf("unknown capability %q%s", metadef.Shorten(name), hint)
	}
	return messages
}

// NamesToKnow returns the names of the capabilities in the plan that the viewer
// must know of, perhaps with duplicates.
func (p FilterPlan) NamesToKnow() []string {
	var names []string
	for _, c := range p.parsed {
		names = append(names, c.Condition.CapabilityNames()...)
	}
	if p.unknownKeys == RefuseUnknownKeys {
		names = append(names, CapabilitiesOf(p.requirements)...)
	}
	return names
}

// CapabilityNames returns the name of every capability in the plan, sorted and
// without duplicates.
func (p FilterPlan) CapabilityNames() []string {
	return lists.Distinct(append(p.NamesToKnow(), CapabilitiesOf(p.requirements)...))
}

// Conditions returns the plan's conditions, given the capabilities that the
// viewer may know of. Any other name counts as nonexistent. An unknown name is
// a problem, except in requirements with IgnoreUnknownKeys.
func (p FilterPlan) Conditions(names CapabilityNames, problems *problem.Problems) []FilterCondition {
	conditions := slices.Clone(p.parsed)
	for _, c := range conditions {
		c.Condition.capabilities(func(test Condition) {
			names.Check(problems, cmp.Or(test.Path, c.Path), test.Test.Name)
		})
	}
	for i, requirement := range p.requirements {
		path := problem.Index(problem.Join(p.path, "requirements"), i)
		of := FilterCondition{Path: path, Clause: "requirements " + requirement.Key + ": " + requirement.Requirement}
		switch name, scoped := requirement.Capability(); {
		case names.Knows(name):
			of.Condition = requirement.Condition(problems, path)
		case p.unknownKeys == RefuseUnknownKeys:
			names.Check(problems, problem.Join(path, "key"), name)
			of.Condition = Condition{Kind: ConditionNever}
		case scoped:
			of.Condition = Condition{Kind: ConditionNever}
		default:
			of.Ignored = true
		}
		conditions = append(conditions, of)
	}
	return conditions
}

// topLevel returns the conditions that must all hold, with nested ones
// flattened.
func topLevel(c Condition) []Condition {
	if c.Kind != ConditionAll {
		return []Condition{c}
	}
	var all []Condition
	for _, member := range c.Members {
		all = append(all, topLevel(member)...)
	}
	return all
}

// Requirement is a scheduler's requirement on a capability: a key, and an
// operator with operands, as in the extra specs of a flavor.
type Requirement struct {
	Key         string
	Requirement string
}

// UnknownKeys says how to treat a requirement if the viewer may not know of a
// capability with its key.
type UnknownKeys int

// How to treat requirements with unknown keys.
const (
	RefuseUnknownKeys UnknownKeys = iota // the default
	// IgnoreUnknownKeys ignores the requirement, as Nova does: another filter
	// of the scheduler may read the key. With the capabilities scope, the
	// requirement is never met.
	IgnoreUnknownKeys
)

// Limits of requirements. maxRequirement is in code points.
const (
	maxRequirements = 64
	maxRequirement  = 4096
)

// Capability returns the name of the capability without the capabilities scope,
// and reports whether the key has the scope.
func (r Requirement) Capability() (name string, scoped bool) {
	return strings.CutPrefix(r.Key, metadef.CapabilitiesScope)
}

// CapabilitiesOf returns the names of the capabilities in requirements, sorted
// and without duplicates.
func CapabilitiesOf(requirements []Requirement) []string {
	return lists.Distinct(lists.Map(requirements, func(requirement Requirement) string {
		name, _ := requirement.Capability()
		return name
	}))
}

// requirementOperators are the operators of a requirement and the way in which
// each compares its operands. "" is for text without an operator.
var requirementOperators = map[string]struct {
	operator   Operator
	comparison Comparison
}{
	"":   {Equals, Pairwise},
	"=":  {GreaterOrEqual, AsNumbers}, // at least, for historical reasons
	"==": {Equals, AsNumbers}, "!=": {Differs, AsNumbers},
	">=": {GreaterOrEqual, AsNumbers}, "<=": {LessOrEqual, AsNumbers},
	">": {Greater, AsNumbers}, "<": {Less, AsNumbers},
	"s==": {Equals, AsText}, "s!=": {Differs, AsText},
	"s<": {Less, AsText}, "s<=": {LessOrEqual, AsText}, "s>": {Greater, AsText}, "s>=": {GreaterOrEqual, AsText},
	metadef.OperatorIn: {Has, AsText}, metadef.OperatorOr: {Equals, Pairwise}, metadef.OperatorAllIn: {HasAll, AsText},
}

// Condition returns the condition of the requirement, and adds the problems of
// its text, with hints; then the condition never holds. Text without an operator
// must equal the whole value or a member of a list, or be the same number if both
// are numbers.
func (r Requirement) Condition(problems *problem.Problems, path string) Condition {
	before := len(*problems)
	test := r.test(problems, problem.Join(path, "requirement"))
	if len(*problems) > before {
		return Condition{Kind: ConditionNever}
	}
	test.Name, _ = r.Capability()
	return Condition{Kind: ConditionCapability, Test: test}
}

func (r Requirement) test(problems *problem.Problems, path string) Test {
	before := len(*problems)
	text.Check(problems, path, r.Requirement, 0, maxRequirement)
	if len(*problems) > before {
		return Test{}
	}
	expression, wrong := metadef.ParseExpression(r.Requirement)
	if wrong != "" {
		problems.Add(path, "%s", wrong)
	}
	meaning := requirementOperators[expression.Operator]
	return Test{Operator: meaning.operator, Comparison: meaning.comparison, Operands: expression.Operands}
}
