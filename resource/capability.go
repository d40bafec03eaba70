package resource

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Limits of capabilities, in code points.
const (
	MaxCapabilityName  = 255
	MaxCapabilityValue = 4096
	MaxCapabilities    = 1000 // of one resource
)

// Capability is the registry entry of a resource type's capability: a name that
// conditions can use, and whether users may discover it.
type Capability struct {
	ID             int64
	UUID           string
	ResourceTypeID int64
	Name           string
	Private        bool
}

// NodeID returns the global id.
func (c *Capability) NodeID() string { return page.GlobalID(page.KindCapability, c.UUID, "") }

// CapabilityAnswer is the answer to a viewer who asks for a capability by name:
// the capability or an error.
type CapabilityAnswer struct {
	Capability *Capability
	Refused    error
}

// AnswerCapability returns the answer to a viewer who asks for a capability by
// name. As the specification says, it refuses a private one with an error that
// reveals its existence, unless the viewer may see private capabilities.
func AnswerCapability(v access.Viewer, capability *Capability) CapabilityAnswer {
	if capability.Private && !v.May(access.RuleCapabilitiesPrivate) {
		return CapabilityAnswer{Refused: problem.Refuse(problem.ErrForbidden,
			"capability %q is private", capability.Name)}
	}
	return CapabilityAnswer{Capability: capability}
}

// CapabilityValue is a value in use, with the number of resources that have it.
type CapabilityValue struct {
	Capability    *Capability // set only in answers of the API
	Value         string
	ResourceCount int
}

// ResourceCapability is a capability's value on one resource.
type ResourceCapability struct {
	ResourceID int64
	Name       string
	Value      string
	Private    bool
}

// MaxRemoved is the maximum number of removed values that a deletion returns.
const MaxRemoved = 1000

// CapabilityDeletion is a deleted capability with its removed values.
type CapabilityDeletion struct {
	Capability   *Capability
	Removed      []*RemovedCapability // the first MaxRemoved, by uuid of the resource
	RemovedCount int                  // of all removed values
}

// RemovedCapability is the value of a deleted capability on a resource.
type RemovedCapability struct {
	ResourceID int64
	Value      string
}

// CapabilitiesChange sets capabilities of one resource. The others stay.
type CapabilitiesChange struct {
	Resource     string // a uuid
	Capabilities []metadef.KeyValue
	Revision     *int // of the resource, to refuse concurrent changes
}

// CheckCapabilities adds the problems of capabilities to set.
func CheckCapabilities(problems *problem.Problems, path string, capabilities []metadef.KeyValue) {
	if len(capabilities) > MaxCapabilities {
		problems.Add(path, "must have at most %d capabilities, has %d", MaxCapabilities, len(capabilities))
		return
	}
	seen := map[string]bool{}
	for i, capability := range capabilities {
		at := problem.Index(path, i)
		text.Check(problems, problem.Join(at, "key"), capability.Key, 1, MaxCapabilityName)
		text.Check(problems, problem.Join(at, "value"), capability.Value, 0, MaxCapabilityValue)
		text.CheckUnique(problems, problem.Join(at, "key"), capability.Key, seen)
		members, _ := CapabilityMembers(capability.Value)
		for _, member := range members {
			if strings.ContainsRune(member, 0) || !utf8.ValidString(member) {
				problems.Add(problem.Join(at, "value"), "has a member with U+0000")
				break
			}
		}
	}
}

// CheckCapabilityNames adds the problems of capability names. An empty list is a
// problem.
func CheckCapabilityNames(problems *problem.Problems, path string, names []string) {
	text.CheckNames(problems, path, names, MaxCapabilityName)
	if len(names) == 0 {
		problems.Add(path, "must not be empty")
	}
}

// CapabilityMembers returns the members of a value, which discovery shows and
// conditions test. If the value is a JSON array of strings, inList is true, and
// they are its members, without duplicates and in their order. Otherwise the
// value itself is the only member.
func CapabilityMembers(value string) (members []string, inList bool) {
	if !strings.HasPrefix(strings.TrimLeft(value, " \t\r\n"), "[") {
		return []string{value}, false
	}
	var list []*string
	if json.Unmarshal([]byte(value), &list) != nil {
		return []string{value}, false
	}
	members = []string{}
	seen := map[string]bool{}
	for _, member := range list {
		if member == nil {
			return []string{value}, false
		}
		if !seen[*member] {
			seen[*member] = true
			members = append(members, *member)
		}
	}
	return members, true
}

// NumberKey returns a string that sorts by code point as the number in value
// sorts: exactly, without rounding, on every database. It returns false if
// value is not a number. Numbers are in JSON's notation, so `007` and `+7` are
// text. Numbers beyond metadef.MaxNumberDigits or metadef.MaxNumberExponent
// count as text, too.
func NumberKey(value string) (string, bool) {
	number, ok := text.ParseDecimal(value)
	switch {
	case !ok || len(number.Digits) > metadef.MaxNumberDigits:
		return "", false
	case number.Digits == "":
		return "1", true
	case number.Exponent > metadef.MaxNumberExponent || number.Exponent < -metadef.MaxNumberExponent:
		return "", false
	case !number.Negative:
		return fmt.Sprintf("2%04d%s", number.Exponent+5000, number.Digits), true
	}
	// Among negative numbers, the larger magnitude is the smaller number. So
	// every digit becomes its complement, and the end sorts behind every digit.
	complement := strings.Map(func(digit rune) rune { return '9' - digit + '0' }, number.Digits)
	return fmt.Sprintf("0%04d%s~", 4999-number.Exponent, complement), true
}
