package placement

import (
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// MaxNameLength is the maximum length of the names of traits, resource classes
// and consumer types and of the ids of projects and users, in code points.
const MaxNameLength = 255

const (
	nameRule         = "must be 1 to 255 of A-Z, 0-9 and _"
	customNameRule   = "must be CUSTOM_ followed by at least one of A-Z, 0-9 and _, 255 characters at most"
	providerNameRule = "must be 1 to 200 characters of UTF-8 without U+0000"
	idRule           = "must be 1 to 255 characters of UTF-8 without U+0000"
	suffixRule       = "must be 1 to 64 of A-Z, a-z, 0-9, _ and -"
	uuidRule         = "must be a UUID"
)

const (
	nameCharacters   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	suffixCharacters = nameCharacters + "abcdefghijklmnopqrstuvwxyz-"
)

// Trait is a quality that a provider has or does not have.
type Trait struct {
	Name   string
	Custom bool
}

// ResourceClass is a kind of resource that providers have inventories of.
type ResourceClass struct {
	Name   string
	Custom bool
}

// TraitFilter selects traits; all fields that are not nil must hold.
type TraitFilter struct {
	StartsWith *string
	Names      []string // nil is no constraint, an empty list selects nothing
	Associated *bool    // whether some provider has it
	Custom     *bool
	// IgnoreUnknown ignores names that do not exist.
	IgnoreUnknown bool
}

// Validate returns every problem of the filter, each at its path below path.
func (f TraitFilter) Validate(w *World, path string) []Problem {
	if f.IgnoreUnknown {
		w = nil
	}
	return validateNames(w, path, f.Names, (*validator).checkTrait)
}

// ResourceClassFilter selects resource classes; all fields that are not nil
// must hold.
type ResourceClassFilter struct {
	Names  []string // nil is no constraint, an empty list selects nothing
	Custom *bool
	// IgnoreUnknown ignores names that do not exist.
	IgnoreUnknown bool
}

// Validate returns every problem of the filter, each at its path below path.
func (f ResourceClassFilter) Validate(w *World, path string) []Problem {
	if f.IgnoreUnknown {
		w = nil
	}
	return validateNames(w, path, f.Names, (*validator).checkClass)
}

// validateNames checks the number of names, and each name with check. With too
// many names or a nil world it checks only the number.
func validateNames(w *World, path string, names []string, check func(v *validator, path, name string)) []Problem {
	v := validator{world: w}
	path = under(path, "names")
	v.atMost(MaxFilterList, path, len(names))
	for i, name := range names {
		if w != nil && len(names) <= MaxFilterList {
			check(&v, at(path, i), name)
		}
	}
	return v.problems
}

// ValidateName checks the name of a trait, resource class or consumer type: 1
// to 255 of A-Z, 0-9 and _.
func ValidateName(path, name string) []Problem {
	var v validator
	v.require(isName(name), path, nameRule)
	return v.problems
}

// ValidateCustomName checks that IsCustomName holds for a name.
func ValidateCustomName(path, name string) []Problem {
	var v validator
	v.require(IsCustomName(name), path, customNameRule)
	return v.problems
}

// MaxEnsured is the maximum number of traits that one input ensures.
const MaxEnsured = 1000

// ValidateEnsured returns the problems of a list of trait names. It needs 1 to
// MaxEnsured names. Each trait must exist in the world or have a custom name.
func ValidateEnsured(w *World, path string, names []string) []Problem {
	var v validator
	v.require(len(names) > 0, path, "must not be empty")
	v.atMost(MaxEnsured, path, len(names))
	for i, name := range names {
		if !IsCustomName(name) && !w.HasTrait(name) {
			v.problems = append(v.problems,
				Problem{Path: at(path, i), Message: "is not a trait; a new one " + customNameRule, Trait: name})
		}
	}
	return v.problems
}

// IsCustomName reports whether a trait or resource class of this name may be
// created: CUSTOM_ and at least one more of A-Z, 0-9 and _, 255 characters at
// most.
func IsCustomName(name string) bool {
	return strings.HasPrefix(name, "CUSTOM_") && len(name) > len("CUSTOM_") && isName(name)
}

// isName reports whether a string may name a trait, resource class or consumer
// type.
func isName(text string) bool { return consistsOf(nameCharacters, text, MaxNameLength) }

// isSuffix reports whether a string may be the suffix of a request group.
func isSuffix(text string) bool { return consistsOf(suffixCharacters, text, 64) }

func consistsOf(characters, text string, limit int) bool {
	return text != "" && len(text) <= limit && strings.Trim(text, characters) == ""
}

// isText reports whether a string is valid UTF-8 of 1 to limit code points
// without U+0000.
func isText(text string, limit int) bool {
	length := utf8.RuneCountInString(text)
	return length >= 1 && length <= limit && utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}

// CanonicalUUID returns the lower-case dashed form of a UUID in any of its
// usual spellings: with or without dashes, in any case, in braces or after
// "urn:uuid:". It reports false for any other string.
func CanonicalUUID(text string) (string, bool) {
	const urn = "urn:uuid:"
	if len(text) > len(urn) && strings.EqualFold(text[:len(urn)], urn) {
		text = text[len(urn):]
	} else if len(text) > 2 && text[0] == '{' && text[len(text)-1] == '}' {
		text = text[1 : len(text)-1]
	}
	if len(text) != 36 && len(text) != 32 {
		return "", false
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return "", false
	}
	return id.String(), true
}

// canonicalOr returns the canonical form of a UUID, or any other string itself.
func canonicalOr(text string) string {
	if canonical, ok := CanonicalUUID(text); ok {
		return canonical
	}
	return text
}

// UsesTrait reports whether any provider has a trait.
func (w *World) UsesTrait(name string) bool {
	members := w.traitMembers.at(w.traits.lookup(name))
	for i := range (w.idLimit + 63) / 64 {
		if members.word(int(i)) != 0 {
			return true
		}
	}
	return false
}

// UsesResourceClass reports whether any provider has an inventory of a class.
func (w *World) UsesResourceClass(name string) bool {
	column := w.column(w.classes.lookup(name))
	for id := range w.idLimit {
		if column.free.at(id) != 0 {
			return true
		}
	}
	return false
}

// HasChildren reports whether a provider has children, false for an unknown uuid.
func (w *World) HasChildren(uuid string) bool {
	id, ok := w.byUUID.get(uuid)
	if !ok {
		return false
	}
	n := w.nodes.at(id)
	return n.tree.ends[n.index] > n.index+1
}
