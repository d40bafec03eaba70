package text

import (
	"fmt"
	"math"

	"github.com/cadastre-dev/cadastre/problem"
)

// MaxFilterList is how many names or uuids one list of a filter takes.
const MaxFilterList = 250

func CheckEach(problems *problem.Problems, field string, texts []string, most int) {
	if !CheckFew(problems, field, len(texts), most) {
		return
	}
	for i, text := range texts {
		Check(problems, fmt.Sprintf("%s[%d]", field, i), text, 0, math.MaxInt)
	}
}

// CheckFew holds a list to a number of members.
func CheckFew(problems *problem.Problems, field string, count, most int) bool {
	if count > most {
		problems.Add(field, "must have at most %d members, has %d", most, count)
	}
	return count <= most
}

// CheckDistinct notes every name that the list has before.
func CheckDistinct[T ~string](problems *problem.Problems, path string, names []T) {
	seen := map[string]bool{}
	for i, name := range names {
		CheckNew(problems, problem.Index(path, i), string(name), seen)
	}
}

func CheckNew(problems *problem.Problems, path, name string, seen map[string]bool) {
	if seen[name] {
		problems.Add(path, "is named twice")
	}
	seen[name] = true
}
