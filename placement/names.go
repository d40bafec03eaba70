package placement

import (
	"strings"
	"unicode/utf8"
)

// MaxNameLength bounds names of traits, resource classes and consumer types, and the ids of projects and
// users, in code points.
const MaxNameLength = 255

const (
	nameRule       = "must be 1 to 255 of A-Z, 0-9 and _"
	customNameRule = "must be CUSTOM_ followed by at least one of A-Z, 0-9 and _, 255 characters at most"
	uuidRule       = "must be a UUID"
)

// ValidateName checks the name of a trait, resource class or consumer type: 1 to 255 of A-Z, 0-9 and _.
func ValidateName(path, name string) []Problem {
	if isName(name) {
		return nil
	}
	return []Problem{{Path: path, Message: nameRule}}
}

// IsCustomName says whether a trait or resource class of this name may be created: CUSTOM_ and at least one
// more of A-Z, 0-9 and _, 255 characters at most.
func IsCustomName(name string) bool {
	return strings.HasPrefix(name, "CUSTOM_") && len(name) > len("CUSTOM_") && isName(name)
}

// ValidateCustomName is IsCustomName with its rule as a violation.
func ValidateCustomName(path, name string) []Problem {
	if IsCustomName(name) {
		return nil
	}
	return []Problem{{Path: path, Message: customNameRule}}
}

// ValidateProviderName checks a provider's name: 1 to 200 code points of any text without U+0000.
func ValidateProviderName(path, name string) []Problem {
	if isText(name, MaxProviderNameLength) {
		return nil
	}
	return []Problem{{Path: path, Message: "must be 1 to 200 characters of valid text"}}
}

// CanonicalUUID is the lower-case dashed form of a UUID in any of its usual spellings: dashed or without
// dashes, in any case, in braces or after "urn:uuid:". It reports false for anything else.
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
	var canonical [36]byte
	next := 0
	for i := range canonical {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			canonical[i] = '-'
			if len(text) == 36 {
				if text[next] != '-' {
					return "", false
				}
				next++
			}
			continue
		}
		digit := text[next]
		next++
		switch {
		case digit >= '0' && digit <= '9', digit >= 'a' && digit <= 'f':
		case digit >= 'A' && digit <= 'F':
			digit += 'a' - 'A'
		default:
			return "", false
		}
		canonical[i] = digit
	}
	return string(canonical[:]), true
}

// canonicalOr is the canonical form of a UUID, or the text itself if it is none.
func canonicalOr(text string) string {
	if canonical, ok := CanonicalUUID(text); ok {
		return canonical
	}
	return text
}

// isName accepts what every name of a trait, class or consumer type is made of.
func isName(name string) bool {
	if len(name) == 0 || len(name) > MaxNameLength {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// isSuffix accepts the suffix of a request group: 1 to 64 of A-Z, a-z, 0-9, _ and -.
func isSuffix(suffix string) bool {
	if len(suffix) == 0 || len(suffix) > 64 {
		return false
	}
	for i := range len(suffix) {
		c := suffix[i]
		if (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// isText accepts valid UTF-8 of 1 to limit code points without U+0000.
func isText(text string, limit int) bool {
	length := utf8.RuneCountInString(text)
	return length >= 1 && length <= limit && utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}
