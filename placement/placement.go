// Package placement holds the nouns of resource placement (providers, inventories, requests, candidates,
// claims) and the decision itself: which providers can serve a request. It is pure: a World is an immutable
// value, every answer follows from its arguments alone, and the same question has the same answer, in the
// same order, in every process. It refuses to know databases, GraphQL, users, clocks, randomness and
// cancellation; work is bounded by counted steps, and what is wrong with a request comes back as Problems
// that name the argument. The rules are those of the OpenStack Placement API at microversion 1.39 together
// with the any-traits specification; the text calls the first "the Placement reference".
package placement

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with an input: the path of the argument or field in the terms of
// the public language (`groups[1].requiredAny[0]`) and the rule it breaks, as a sentence without a period.
type Problem struct {
	Path    string
	Message string
}

func (v Problem) String() string { return v.Path + ": " + v.Message }

// problems collects everything that is wrong, so that one answer can name it all.
type problems []Problem

func (v *problems) add(path, format string, arguments ...string) {
	rule := format
	for _, argument := range arguments {
		rule = strings.Replace(rule, "%s", argument, 1)
	}
	*v = append(*v, Problem{Path: path, Message: rule})
}

// tooMany refuses lists beyond their limit.
func (v *problems) tooMany(path string, length, limit int) {
	if length > limit {
		v.add(path, fmt.Sprintf("must not have more than %d entries, has %d", limit, length))
	}
}

func at(path string, index int) string { return fmt.Sprintf("%s[%d]", path, index) }

func under(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// sortedSet is the list without duplicates, sorted by code point.
func sortedSet(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}
