package text

import (
	"slices"
	"unicode"
)

// FoldingTo returns the code points that Fold replaces by code points of a
// folded text, each with what replaces it, in the order of the former. Where
// only these are replaced in another text, the folded text is in it exactly
// where it is in the text that Fold returns.
func FoldingTo(folded string) (from, to []rune) {
	wanted := map[rune]bool{}
	for _, r := range folded {
		wanted[r] = true
	}
	for _, cased := range unicode.CaseRanges {
		for r := rune(cased.Lo); r <= rune(cased.Hi); r++ {
			if lower := foldRune(r); lower != r && wanted[lower] {
				from = append(from, r)
			}
		}
	}
	slices.Sort(from)
	from = slices.Compact(from)
	for _, r := range from {
		to = append(to, foldRune(r))
	}
	return from, to
}
