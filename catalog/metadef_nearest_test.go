package catalog

import (
	"math/rand/v2"
	"testing"
)

func TestEditDistanceIsThatOfTheWholeTable(t *testing.T) {
	t.Parallel()
	whole := func(a, b []rune) int {
		d := make([][]int, len(a)+1)
		for i := range d {
			d[i] = make([]int, len(b)+1)
			for j := range d[i] {
				switch {
				case i == 0 || j == 0:
					d[i][j] = i + j
					continue
				case a[i-1] == b[j-1]:
					d[i][j] = d[i-1][j-1]
				default:
					d[i][j] = d[i-1][j-1] + 1
				}
				d[i][j] = min(d[i][j], d[i-1][j]+1, d[i][j-1]+1)
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					d[i][j] = min(d[i][j], d[i-2][j-2]+1)
				}
			}
		}
		return d[len(a)][len(b)]
	}
	source := rand.New(rand.NewPCG(1, 2))
	word := func() []rune {
		letters := make([]rune, source.IntN(9))
		for i := range letters {
			letters[i] = rune('a' + source.IntN(3))
		}
		return letters
	}
	for range 20000 {
		a, b, most := word(), word(), source.IntN(4)
		if got, want := editDistance(a, b, most), min(whole(a, b), most+1); got != want {
			t.Fatalf("%q to %q within %d: %d, want %d", string(a), string(b), most, got, want)
		}
	}
}
