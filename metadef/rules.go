package metadef

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Rules of violations besides the keywords of a property.
const (
	RuleKey            = "key"      // the key is empty or too long, or not defined for a strict type
	RuleValue          = "value"    // the value is empty or too long, or placement refuses it
	RuleRequired       = "required" // a property that the key's object requires is missing
	RuleHidden         = "hidden"   // the viewer may not see the broken rule
	RuleUserModifiable = "userModifiable"
)

// Rules are the definitions that apply to the metadata of a resource: the
// definitions for its type that its project sees. Judge decides both which
// writes are refused and which violations a report has.
type Rules struct {
	strict  bool
	placing bool     // placement's keys are known
	keys    keyIndex // of all definitions
	shown   keyIndex // of the definitions that the viewer sees
	hidden  map[int64]bool
	names   map[int64]string // of the namespaces
	objects map[*PropertyDefinition]*ObjectDefinition
}

// placementNamespace is the namespace of the keys that placement reads. Where
// it applies, Rules know the keys that no list of definitions can have:
// resources:CLASS, trait:TRAIT, and others with a suffix.
const placementNamespace = "Cadastre::Placement"

// NewRules returns the rules of a type, made from the namespaces that apply to
// it. hidden has row ids of namespaces that the viewer does not see: verdicts
// reveal only that one of them refuses a value.
func NewRules(strict bool, applied []AppliedNamespace, hidden map[int64]bool) *Rules {
	rules := &Rules{strict: strict, hidden: hidden, names: map[int64]string{},
		objects: map[*PropertyDefinition]*ObjectDefinition{}}
	var all, shown []*PropertyDefinition
	for _, of := range applied {
		rules.names[of.Namespace.ID] = of.Namespace.Name
		rules.placing = rules.placing || of.Namespace.Name == placementNamespace
		definitions := of.Definitions()
		all = append(all, definitions...)
		if !hidden[of.Namespace.ID] {
			shown = append(shown, definitions...)
		}
		for _, object := range of.Objects {
			for _, property := range object.Properties {
				rules.objects[property] = object.ObjectDefinition
			}
		}
	}
	rules.keys = indexKeys(all)
	rules.shown = rules.keys
	if len(shown) < len(all) {
		rules.shown = indexKeys(shown)
	}
	return rules
}

// MetadataWrite is a write to the metadata of one resource.
type MetadataWrite struct {
	Before  []KeyValue // the metadata of the resource, empty for a new one
	Items   []KeyValue // the written items
	Deleted []string   // the deleted keys of Before
}

// MetadataVerdict is the verdict of rules on a write.
type MetadataVerdict struct {
	MetadataReport
	// Needed are keys that must not be deleted.
	Needed []neededKey
}

// neededKey is a key that a remaining item requires, with the message that says
// so.
type neededKey struct {
	Key     string
	Message string
}

// Judge returns the verdict on a write, with one item for each written item, in
// their order. For a key in conflict, the definition with the fewest violations
// counts. If the type is not strict, only an empty or too long key or value is
// refused. An unchanged item is accepted despite violations, unless the write
// deletes a key that its object requires. Judge suggests keys for at most
// MaxMetadataItems custom keys.
func (r *Rules) Judge(write MetadataWrite) MetadataVerdict {
	j := judge{Rules: r, before: map[string]string{}, after: map[string]string{}}
	for _, item := range write.Before {
		j.before[item.Key], j.after[item.Key] = item.Value, item.Value
	}
	for _, key := range write.Deleted {
		delete(j.after, key)
	}
	for _, item := range write.Items {
		j.after[item.Key] = item.Value
	}
	verdict := MetadataVerdict{MetadataReport: MetadataReport{Valid: true, Accepted: true, Strict: r.strict,
		Items: make([]MetadataReportItem, len(write.Items))}}
	for i, written := range write.Items {
		item := j.item(written)
		verdict.Valid = verdict.Valid && len(item.Violations) == 0
		verdict.Accepted = verdict.Accepted && item.Accepted
		verdict.Items[i] = item
	}
	if r.strict && len(write.Deleted) > 0 {
		verdict.Needed = j.needed(write)
		verdict.Accepted = verdict.Accepted && len(verdict.Needed) == 0
	}
	return verdict
}

// judge judges one write.
type judge struct {
	*Rules
	before, after map[string]string
	hints         int // number of custom keys so far
}

// ruling is the verdict of one definition on a key and its value.
type ruling struct {
	definition *PropertyDefinition
	operator   string
	values     []string
	violations []Violation
	missing    []string // the missing keys that the object requires
}

func (r ruling) against() int { return len(r.violations) + len(r.missing) }

// item returns the verdict on one written item.
func (j *judge) item(written KeyValue) MetadataReportItem {
	placed, wrong := j.placed(written)
	item, definitions := j.match(written.Key, placed, j.hints < MaxMetadataItems)
	if item.IsCustom {
		j.hints++
	}
	formal := written.violations()
	least := j.leastAgainst(definitions, written.Value, j.after)
	j.describe(&item, least, written.Value)
	if wrong != "" && len(item.Violations) == 0 {
		item.Violations = []Violation{{Rule: RuleValue, Message: wrong}}
	}
	if len(formal) > 0 {
		item.Violations = nil
	}
	if unknown := item.IsCustom || item.Suggestion != nil; unknown && j.strict {
		formal = append(formal, unknownKey(item.Suggestion))
	}
	item.Violations = append(formal, item.Violations...)
	was, there := j.before[written.Key]
	switch {
	case slices.ContainsFunc(formal, func(v Violation) bool { return v.isFormal }):
	case !j.strict || len(item.Violations) == 0:
		item.Accepted = true
	case there && was == written.Value:
		item.Accepted = j.spoiled(definitions, written.Value) == nil
	}
	return item
}

// describe copies the ruling with the fewest violations into an item. least is
// nil if there is no definition. Of a hidden definition, the item shows only
// that it refuses the value.
func (j *judge) describe(item *MetadataReportItem, least *ruling, value string) {
	if least == nil || j.isHidden(least.definition) {
		expression, _ := ParseExpression(value)
		if item.Values = expression.Operands; expression.Operator != "" {
			item.Operator = &expression.Operator
		}
		if least != nil && least.against() > 0 {
			item.Violations = []Violation{{Rule: RuleHidden, Message: hiddenMessage}}
		}
		return
	}
	item.Values, item.Violations = least.values, slices.Clone(least.violations)
	if least.operator != "" {
		item.Operator = &least.operator
	}
	for _, key := range least.missing {
		item.Violations = append(item.Violations, Violation{Rule: RuleRequired,
			Message: fmt.Sprintf("the key %s is missing: object %s requires it", Shorten(key),
				Shorten(j.objects[least.definition].Name))})
	}
	name := j.names[least.definition.NamespaceID]
	for i := range item.Violations {
		item.Violations[i].Definition, item.Violations[i].Namespace = least.definition, &name
	}
}

func (j *judge) isHidden(definition *PropertyDefinition) bool {
	return j.hidden[definition.NamespaceID]
}

// leastAgainst returns the ruling with the fewest violations on a value, given
// the keys of the resource. It returns nil without definitions.
func (j *judge) leastAgainst(definitions []*PropertyDefinition, value string, there map[string]string) *ruling {
	var least *ruling
	for _, definition := range definitions {
		of := ruling{definition: definition, missing: j.missing(definition, there)}
		of.operator, of.values, of.violations = definition.checkText(value)
		if least == nil || of.against() < least.against() {
			least = &of
		}
	}
	return least
}

// missing returns the missing keys that the object of a definition requires.
func (j *judge) missing(definition *PropertyDefinition, there map[string]string) []string {
	object := j.objects[definition]
	if object == nil {
		return nil
	}
	var keys []string
	for _, key := range object.Required {
		_, plain := there[key]
		_, scoped := there[CapabilitiesScope+key]
		if !plain && !scoped && key != definition.Name {
			keys = append(keys, key)
		}
	}
	return keys
}

// spoiled returns a definition whose required keys were all there before the
// write, if the value has more violations after it, because the write deletes
// such keys. It returns nil for a value that has no more violations than before.
func (j *judge) spoiled(definitions []*PropertyDefinition, value string) *PropertyDefinition {
	if !slices.ContainsFunc(definitions, func(definition *PropertyDefinition) bool {
		return len(j.missing(definition, j.after)) > 0
	}) {
		return nil
	}
	before, after := j.leastAgainst(definitions, value, j.before), j.leastAgainst(definitions, value, j.after)
	if len(before.missing) > 0 || after.against() <= before.against() {
		return nil
	}
	return before.definition
}

// needed returns the deleted keys that remaining items require. It ignores
// items that are also written, and items that lacked a required key before.
func (j *judge) needed(write MetadataWrite) []neededKey {
	written := lists.Set(write.Items, func(item KeyValue) string { return item.Key })
	var needed []neededKey
	for _, item := range write.Before {
		if _, stays := j.after[item.Key]; !stays || written[item.Key] {
			continue
		}
		definitions, _ := j.defining(item.Key)
		of := j.spoiled(definitions, item.Value)
		if of == nil {
			continue
		}
		missing := j.missing(of, j.after)
		message := fmt.Sprintf("is required by object %s, because its key %s is present",
			Shorten(j.objects[of].Name), Shorten(item.Key))
		if j.isHidden(of) {
			message = hiddenMessage
		}
		for _, key := range write.Deleted {
			if slices.Contains(missing, strings.TrimPrefix(key, CapabilitiesScope)) ||
				slices.Contains(missing, key) {
				needed = append(needed, neededKey{key, message})
			}
		}
	}
	return needed
}

const hiddenMessage = "is refused by a definition that is not visible to you"

// defining returns all definitions of a key, and each visible one once. If there
// are none, it looks the key up without the capabilities scope.
func (r *Rules) defining(key string) (all, shown []*PropertyDefinition) {
	unscoped := strings.TrimPrefix(key, CapabilitiesScope)
	for _, name := range []string{key, unscoped} {
		if all = r.keys.every[name]; len(all) > 0 {
			return all, r.shown.exact[name]
		}
	}
	return nil, nil
}

// Definitions returns the definitions of a key that the viewer sees.
func (r *Rules) Definitions(key string) []*PropertyDefinition {
	_, shown := r.defining(key)
	return shown
}

// placed reports whether placement reads the key of an item, and returns the
// problem with its value, "" for none.
func (r *Rules) placed(written KeyValue) (known bool, problem string) {
	if !r.placing {
		return false, ""
	}
	return placement.CheckSpec(placement.ExtraSpec{Key: written.Key, Value: written.Value})
}

// match returns an item with the definitions of its key or a suggestion, and
// the definitions to check it against. A key that placement reads is known
// without a definition.
func (r *Rules) match(key string, placed, suggest bool) (item MetadataReportItem, definitions []*PropertyDefinition) {
	item.Key = key
	if definitions, item.Definitions = r.defining(key); len(definitions) > 0 {
		return item, definitions
	}
	if placed {
		return item, nil
	}
	if item.Definitions = r.shown.alike[alikeKey(key)]; len(item.Definitions) > 0 {
		item.Suggestion = &item.Definitions[0].Name
		return item, item.Definitions
	}
	item.IsCustom = true
	if suggest && text.Length(key) <= MaxMetadataKey {
		if near := r.shown.spelling.Nearest(key); near != "" {
			item.Suggestion = &near
		}
	}
	return item, nil
}

// violations returns the violations of the item itself, apart from definitions.
func (item KeyValue) violations() []Violation {
	var problems problem.Problems
	item.Check(&problems, "")
	return lists.Map(problems, func(one problem.Problem) Violation {
		return Violation{Rule: one.Field, Message: one.Message, isFormal: true}
	})
}

func unknownKey(nearest *string) Violation {
	message := "is not defined for the type"
	if nearest != nil {
		message += "; the nearest key is " + *nearest
	}
	return Violation{Rule: RuleKey, Message: message}
}

// Problem returns the violation as a problem of an input that has the item at
// path.
func (v Violation) Problem(path string) problem.Problem {
	switch v.Rule {
	case RuleKey, RuleValue:
		return problem.Problem{Field: problem.Join(path, v.Rule), Message: v.Message}
	case RuleHidden:
		return problem.Problem{Field: problem.Join(path, RuleValue), Message: v.Message}
	}
	return problem.Problem{Field: problem.Join(path, RuleValue), Message: "breaks " + v.Rule + ": " + v.Message}
}
