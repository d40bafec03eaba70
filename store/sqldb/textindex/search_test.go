package textindex

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestTrigramsAreOfTheText checks the trigrams of random strings: at most
// maxTrigrams, spread over the string.
func TestTrigramsAreOfTheText(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		runes := make([]rune, chance.IntN(60))
		for i := range runes {
			runes[i] = []rune("abc日é\"% ")[chance.IntN(8)]
		}
		text := string(runes)
		trigrams := trigramsOf(text)
		if len(trigrams) > maxTrigrams || (len(trigrams) == 0) != (len(runes) < 3) {
			t.Fatalf("%q: %q", text, trigrams)
		}
		for _, trigram := range trigrams {
			if utf8.RuneCountInString(trigram) != 3 || !strings.Contains(text, trigram) {
				t.Fatalf("%q: %q", text, trigrams)
			}
		}
		if n := len(trigrams); n > 0 && (trigrams[0] != string(runes[:3]) ||
			!strings.Contains(strings.Join(trigrams, "|"), string(runes[len(runes)-3:]))) {
			t.Fatalf("%q: %q is not all over it", text, trigrams)
		}
	}
}
