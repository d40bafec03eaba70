package text

import (
	"math"

	"github.com/cadastre-dev/cadastre/problem"
)

// MaxFilterList is how many names or uuids one list of a filter takes.
const MaxFilterList = 250

// CheckEach adds what is wrong with a list of at most most texts of any length.
func CheckEach(problems *problem.Problems, path string, texts []string, most int) {
	if !CheckFew(problems, path, len(texts), most) {
		return
	}
	for i, text := range texts {
		Check(problems, problem.Index(path, i), text, 0, math.MaxInt)
	}
}

// CheckFew reports whether a list has at most most members, and adds a problem
// where it has more.
func CheckFew(problems *problem.Problems, path string, count, most int) bool {
	if count > most {
		problems.Add(path, "must have at most %d members, has %d", most, count)
	}
	return count <= most
}

// CheckNames adds what is wrong with names of at most most characters, none of
// them twice.
func CheckNames(problems *problem.Problems, path string, names []string, most int) {
	seen := map[string]bool{}
	for i, name := range names {
		at := problem.Index(path, i)
		Check(problems, at, name, 1, most)
		CheckNew(problems, at, name, seen)
	}
}

// CheckDistinct adds a problem for every name that the list has before.
func CheckDistinct[T ~string](problems *problem.Problems, path string, names []T) {
	seen := map[string]bool{}
	for i, name := range names {
		CheckNew(problems, problem.Index(path, i), string(name), seen)
	}
}

// CheckNew adds a problem for a name that is among those seen, and adds it to
// them.
func CheckNew(problems *problem.Problems, path, name string, seen map[string]bool) {
	if seen[name] {
		problems.Add(path, "is named twice")
	}
	seen[name] = true
}
