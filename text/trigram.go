package text

import "unicode"

// HasTrigram reports whether a string has three letters or digits in a row.
// Trigram indexes need that to find strings, on every database.
func HasTrigram(text string) bool {
	run := 0
	for _, r := range text {
		if run++; !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			run = 0
		}
		if run == 3 {
			return true
		}
	}
	return false
}
