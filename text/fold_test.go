package text

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestFoldingToHasEveryCodePoint compares what folds to some code points with
// all code points that there are.
func TestFoldingToHasEveryCodePoint(t *testing.T) {
	t.Parallel()
	var all []rune
	folds := map[rune][]rune{}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		lower := foldRune(r)
		if foldRune(lower) != lower {
			t.Fatalf("%U folds to %U, which folds on", r, lower)
		}
		if lower != r {
			folds[lower] = append(folds[lower], r)
			all = append(all, lower)
		}
	}
	chance := rand.New(rand.NewPCG(3, 5))
	for range 200 {
		folded := string([]rune{all[chance.IntN(len(all))], all[chance.IntN(len(all))], '1', 'ß'})
		var want []rune
		for _, r := range slices.Compact(slices.Sorted(slices.Values([]rune(folded)))) {
			want = append(want, folds[r]...)
		}
		slices.Sort(want)
		from, to := FoldingTo(folded)
		if !slices.Equal(from, want) || len(to) != len(from) {
			t.Fatalf("%q: got %U, want %U", folded, from, want)
		}
		text := string(from) + string([]rune{all[chance.IntN(len(all))]})
		replaced := strings.Map(func(r rune) rune {
			if at := slices.Index(from, r); at >= 0 {
				return to[at]
			}
			return r
		}, text)
		for _, r := range folded {
			if strings.ContainsRune(replaced, r) != strings.ContainsRune(Fold(text), r) {
				t.Fatalf("%q in %q", r, text)
			}
		}
	}
}
