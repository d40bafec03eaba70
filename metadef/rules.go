package metadef

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// The rules of violations that are no keyword of a property.
const (
	RuleKey            = "key"      // the key is too long, or not defined for a strict type
	RuleValue          = "value"    // the value is empty or too long
	RuleRequired       = "required" // a property that the object of the key requires is not there
	RuleHidden         = "hidden"   // the viewer may not see which rule it is
	RuleUserModifiable = "userModifiable"
)

// Rules are the definitions that hold on the metadata of a resource: those that
// the project of the resource sees for its type. What a write is refused for
// and what a report says of it are both decided by Judge.
type Rules struct {
	strict  bool
	keys    keyIndex // of all definitions
	shown   keyIndex // of those that the viewer sees
	hidden  map[int64]bool
	names   map[int64]string // of the namespaces
	objects map[*PropertyDefinition]*ObjectDefinition
}

// NewRules returns the rules of a type, which may be strict, by the namespaces
// that apply to it. Of the namespaces that are hidden, by their row ids, a
// verdict tells no more than that they refuse a value.
func NewRules(strict bool, applied []AppliedNamespace, hidden map[int64]bool) *Rules {
	rules := &Rules{strict: strict, hidden: hidden, names: map[int64]string{}, objects: map[*PropertyDefinition]*ObjectDefinition{}}
	var all, shown []*PropertyDefinition
	for _, of := range applied {
		rules.names[of.Namespace.ID] = of.Namespace.Name
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

// MetadataWrite is a write of metadata of one resource.
type MetadataWrite struct {
	Before  []KeyValue // the metadata of the resource, empty for a new one
	Items   []KeyValue // what is written
	Deleted []string   // the keys of Before that go
}

// MetadataVerdict is what rules say of a write.
type MetadataVerdict struct {
	MetadataReport
	// Needed are keys that must not be deleted.
	Needed []NeededKey
}

// NeededKey is a key that what stays requires, and the message that says so.
type NeededKey struct {
	Key     string
	Message string
}

// Judge returns the verdict on a write. There is one item for each that is
// written, in their order. A key in conflict is held to the definition that has
// the least against it. An item that was there with the same value is accepted
// whatever it breaks, unless the write takes away what its object requires.
// Hints are given for as many custom keys as a resource can have.
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
	verdict := MetadataVerdict{MetadataReport: MetadataReport{Valid: true, Accepted: true, Strict: r.strict, Items: make([]MetadataReportItem, len(write.Items))}}
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
	hints         int // given so far
}

// ruling is what one definition says of a key and its value.
type ruling struct {
	definition *PropertyDefinition
	operator   string
	values     []string
	violations []Violation
	missing    []string // the keys that the object requires and that are not there
}

func (r ruling) against() int { return len(r.violations) + len(r.missing) }

// item returns the verdict on one item that is written.
func (j *judge) item(written KeyValue) MetadataReportItem {
	item, definitions := j.match(written.Key, j.hints < MaxMetadataItems)
	if item.IsCustom {
		j.hints++
	}
	formal := written.violations()
	least := j.leastAgainst(definitions, written.Value, j.after)
	j.describe(&item, least, written.Value)
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
		item.Accepted = j.isComplete(definitions, j.after) || !j.isComplete(definitions, j.before)
	}
	return item
}

// describe puts what the mildest of the definitions says into an item; nil is
// none.
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
			Message: fmt.Sprintf("the key %s is missing, which object %s requires", Shorten(key), Shorten(j.objects[least.definition].Name))})
	}
	name := j.names[least.definition.NamespaceID]
	for i := range item.Violations {
		item.Violations[i].Definition, item.Violations[i].Namespace = least.definition, &name
	}
}

func (j *judge) isHidden(definition *PropertyDefinition) bool {
	return j.hidden[definition.NamespaceID]
}

// leastAgainst returns what the definition says that has the least against a
// value on a resource with certain keys; nil without definitions.
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

// missing returns the keys that the object of a definition requires and that
// are not there.
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

// isComplete reports whether a key of definitions is one of an object that has
// all that it requires, or of no object.
func (j *judge) isComplete(definitions []*PropertyDefinition, there map[string]string) bool {
	return len(definitions) == 0 || slices.ContainsFunc(definitions, func(definition *PropertyDefinition) bool {
		return len(j.missing(definition, there)) == 0
	})
}

// needed returns the keys that go although what stays as it is requires them.
func (j *judge) needed(write MetadataWrite) []NeededKey {
	written := lists.Set(write.Items, func(item KeyValue) string { return item.Key })
	var needed []NeededKey
	for _, item := range write.Before {
		definitions, _ := j.defining(item.Key)
		if _, stays := j.after[item.Key]; !stays || written[item.Key] || j.isComplete(definitions, j.after) || !j.isComplete(definitions, j.before) {
			continue
		}
		least := j.leastAgainst(definitions, item.Value, j.after)
		message := fmt.Sprintf("is required by object %s, of which there is the key %s", Shorten(j.objects[least.definition].Name), Shorten(item.Key))
		if j.isHidden(least.definition) {
			message = hiddenMessage
		}
		for _, key := range write.Deleted {
			if slices.Contains(least.missing, strings.TrimPrefix(key, CapabilitiesScope)) || slices.Contains(least.missing, key) {
				needed = append(needed, NeededKey{key, message})
			}
		}
	}
	return needed
}

const hiddenMessage = "is refused by a definition that is not visible to you"

// defining returns the definitions of a key, and those of them that the viewer
// sees.
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

// match returns the item of a key, with its definitions or what may be meant,
// and the definitions that it is held to.
func (r *Rules) match(key string, suggest bool) (item MetadataReportItem, definitions []*PropertyDefinition) {
	item.Key = key
	if definitions, item.Definitions = r.defining(key); len(definitions) > 0 {
		return item, definitions
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

// violations returns what is wrong with an item in itself.
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

// Problem returns what is wrong with an item as the problem of an input in
// which the item stands at a path.
func (v Violation) Problem(path string) problem.Problem {
	switch v.Rule {
	case RuleKey, RuleValue:
		return problem.Problem{Field: problem.Join(path, v.Rule), Message: v.Message}
	case RuleHidden:
		return problem.Problem{Field: problem.Join(path, RuleValue), Message: v.Message}
	}
	return problem.Problem{Field: problem.Join(path, RuleValue), Message: "breaks " + v.Rule + ": " + v.Message}
}
