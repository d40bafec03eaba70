package auth

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
)

func TestACacheIsBoundedAndDropsWhatHasExpiredFirst(t *testing.T) {
	t.Parallel()
	cache := tokenCache{answers: map[tokenHash]tokenAnswer{}}
	now := time.Unix(0, 0)
	put := func(i int, ttl time.Duration) {
		cache.put(sha256.Sum256(fmt.Append(nil, i)), tokenAnswer{viewer: access.Viewer{UserID: fmt.Sprint(i)}, expires: now.Add(ttl)}, now)
	}
	kept := func(from, to int) (n int) {
		for i := from; i < to; i++ {
			if answer, ok := cache.get(sha256.Sum256(fmt.Append(nil, i)), now); ok && answer.viewer.UserID == fmt.Sprint(i) {
				n++
			}
		}
		return n
	}
	for i := range maxCachedTokens {
		put(i, time.Duration(i%2+1)*time.Minute)
	}
	if got := kept(0, maxCachedTokens); got != maxCachedTokens {
		t.Errorf("%d answers are kept, want all %d", got, maxCachedTokens)
	}
	now = now.Add(time.Minute)
	if got := kept(0, maxCachedTokens); got != maxCachedTokens/2 {
		t.Errorf("%d answers after a minute, want the half that lives longer", got)
	}
	put(maxCachedTokens, time.Minute)
	if got := kept(0, maxCachedTokens+1); got != maxCachedTokens/2+1 || len(cache.answers) != got {
		t.Errorf("%d answers of %d after one more, want %d", got, len(cache.answers), maxCachedTokens/2+1)
	}
	for i := range maxCachedTokens {
		put(2*maxCachedTokens+i, time.Minute)
	}
	if got := kept(3*maxCachedTokens-1, 3*maxCachedTokens); len(cache.answers) != maxCachedTokens || got != 1 {
		t.Errorf("%d answers, the latest among them: %d", len(cache.answers), got)
	}
}
