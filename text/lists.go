package text

import (
	"math"

	"github.com/cadastre-dev/cadastre/problem"
)

// MaxFilterList is the maximum number of names or uuids in one list of a
// filter.
const MaxFilterList = 250

// CheckList adds the problems of a list of at most limit strings of any length.
func CheckList(problems *problem.Problems, path string, texts []string, limit int) {
	if !CheckCount(problems, path, len(texts), limit) {
		return
	}
	for i, text := range texts {
		Check(problems, problem.Index(path, i), text, 0, math.MaxInt)
	}
}

// CheckAny returns the problems of strings of any length, passed as pairs of a
// path and a string.
func CheckAny(pairs ...string) error {
	var problems problem.Problems
	for i := 0; i < len(pairs); i += 2 {
		Check(&problems, pairs[i], pairs[i+1], 0, math.MaxInt)
	}
	return problems.Err()
}

// CheckCount reports whether a list has at most limit members, and adds a
// problem if it has more.
func CheckCount(problems *problem.Problems, path string, count, limit int) bool {
	if count > limit {
		problems.Add(path, "must have at most %d members, has %d", limit, count)
	}
	return count <= limit
}

// CheckNames adds the problems of names: each must have 1 to limit characters
// and occur once.
func CheckNames(problems *problem.Problems, path string, names []string, limit int) {
	seen := map[string]bool{}
	for i, name := range names {
		at := problem.Index(path, i)
		Check(problems, at, name, 1, limit)
		CheckUnique(problems, at, name, seen)
	}
}

// CheckDistinct adds a problem for each repetition of a name in a list.
func CheckDistinct[T ~string](problems *problem.Problems, path string, names []T) {
	seen := map[string]bool{}
	for i, name := range names {
		CheckUnique(problems, problem.Index(path, i), string(name), seen)
	}
}

// CheckUnique adds a problem if a name was seen before, and marks it as seen.
func CheckUnique(problems *problem.Problems, path, name string, seen map[string]bool) {
	if seen[name] {
		problems.Add(path, "is a duplicate")
	}
	seen[name] = true
}
