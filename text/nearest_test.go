package text

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

func TestTheNearestIsTheNearestOfAll(t *testing.T) {
	t.Parallel()
	source := rand.New(rand.NewPCG(3, 4))
	word := func() string {
		letters := make([]rune, 1+source.IntN(8))
		for i := range letters {
			letters[i] = []rune("abcdeä日_:")[source.IntN(9)]
		}
		return string(letters)
	}
	names := make([]string, 300)
	for i := range names {
		names[i] = word()
	}
	speller := NewSpeller(names)
	for range 2000 {
		given, want := word(), ""
		least := min(3, max(1, len([]rune(given))/3))
		for _, name := range names {
			distance := editDistance([]rune(given), []rune(name), 99)
			if distance < least || distance == least && (want == "" || name < want) {
				want, least = name, distance
			}
		}
		if got := speller.Nearest(given); got != want {
			t.Fatalf("nearest of %q is %q, want %q", given, got, want)
		}
	}
}
