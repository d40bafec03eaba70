package text

import (
	"math/bits"
	"strconv"
)

// Speller finds the known name for a misspelled one.
type Speller struct {
	names  []string
	folded [][]rune
	used   []uint64 // the letters of each name, by letterSet
}

// NewSpeller returns a Speller of the known names.
func NewSpeller(names []string) Speller {
	s := Speller{names: names}
	for _, name := range names {
		letters := []rune(Fold(name))
		s.folded, s.used = append(s.folded, letters), append(s.used, letterSet(letters))
	}
	return s
}

// letterSet returns the set of letters in a string; several letters share a
// bit. One edit changes at most two bits. So strings that differ in too many
// bits need no comparison.
func letterSet(text []rune) uint64 {
	var used uint64
	for _, letter := range text {
		used |= 1 << (letter % 64)
	}
	return used
}

// Nearest returns the known name that is most similar to name, or "" if none is
// similar. Names are similar if at most a third of the characters of name, but
// at least one and at most three, must be inserted, removed, replaced or
// swapped. Case does not matter. Of equally near names the first in
// alphabetical order wins.
func (s Speller) Nearest(name string) string {
	letters := []rune(Fold(name))
	used := letterSet(letters)
	best, bestDistance := "", min(3, max(1, len(letters)/3))
	for i, candidate := range s.folded {
		if bits.OnesCount64(used^s.used[i]) > 2*bestDistance {
			continue
		}
		distance := editDistance(letters, candidate, bestDistance)
		if distance < bestDistance || distance == bestDistance && (best == "" || s.names[i] < best) {
			best, bestDistance = s.names[i], distance
		}
	}
	return best
}

// Nearest is Speller.Nearest for a single lookup.
func Nearest(name string, known []string) string { return NewSpeller(known).Nearest(name) }

// DidYouMean returns the end of a message about an unknown name: the most
// similar known name, or "" if none is similar.
func (s Speller) DidYouMean(name string) string {
	if near := s.Nearest(name); near != "" {
		return "; did you mean " + strconv.Quote(near) + "?"
	}
	return ""
}

// editDistance returns the number of single-character edits and swaps of
// neighbours that turn a into b, or limit + 1 if it exceeds limit. It computes
// only the cells of the table that a distance of at most limit can pass
// through.
func editDistance(a, b []rune, limit int) int {
	over := limit + 1
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return over
	}
	beforeLast, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = min(j, over)
	}
	for i := range a {
		for j := range row {
			row[j] = over
		}
		if i+1 <= limit {
			row[0] = i + 1
		}
		lowest := row[0]
		for j := max(0, i-limit); j < min(len(b), i+limit+1); j++ {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(over, last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], beforeLast[j-1]+1)
			}
			lowest = min(lowest, row[j+1])
		}
		if lowest > limit {
			return over
		}
		beforeLast, last, row = last, row, beforeLast
	}
	return last[len(b)]
}
