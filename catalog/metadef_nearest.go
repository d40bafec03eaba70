package catalog

import "slices"

// nearest is the one of the known names that is most like name, or empty where
// none is: names are alike when at most a third of their characters, and at
// most three, would have to be inserted, removed, replaced or swapped. Case
// makes no difference; of equally near names the first in order of text wins.
func nearest(name string, known []string) string {
	letters := []rune(Fold(name))
	best, bestDistance := "", min(3, max(1, len(letters)/3))
	for _, candidate := range known {
		distance := editDistance(letters, []rune(Fold(candidate)), bestDistance+1)
		if distance < bestDistance || distance == bestDistance && (best == "" || candidate < best) {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// editDistance counts single-character edits and swaps of neighbours that turn
// a into b; it stops counting at most.
func editDistance(a, b []rune, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	beforeLast, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], beforeLast[j-1]+1)
			}
		}
		if slices.Min(row) >= most {
			return most
		}
		beforeLast, last, row = last, row, beforeLast
	}
	return min(most, last[len(b)])
}
