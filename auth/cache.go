package auth

import (
	"crypto/sha256"
	"maps"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/access"
)

// maxCachedTokens bounds a tokenCache.
const maxCachedTokens = 10_000

// tokenHash stands for a token, which is not kept itself.
type tokenHash [sha256.Size]byte

// tokenAnswer is what the identity service answered about a token, and until
// when the answer is used.
type tokenAnswer struct {
	viewer  access.Viewer
	err     error
	expires time.Time
}

// tokenCache keeps answers about tokens, each until it expires. The caches of
// libraries would bring a clock and goroutines of their own, while this one
// must follow the caller's clock to the very moment a token ends; a bounded map
// is all that it takes.
type tokenCache struct {
	mu      sync.Mutex
	answers map[tokenHash]tokenAnswer
}

// get returns the answer about a token, unless it has expired.
func (c *tokenCache) get(hash tokenHash, now time.Time) (tokenAnswer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer, ok := c.answers[hash]
	return answer, ok && now.Before(answer.expires)
}

// put keeps an answer. In a full cache it takes the place of those that have
// expired, or else of any other.
func (c *tokenCache) put(hash tokenHash, answer tokenAnswer, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.answers) >= maxCachedTokens {
		maps.DeleteFunc(c.answers, func(_ tokenHash, old tokenAnswer) bool { return !now.Before(old.expires) })
	}
	for old := range c.answers {
		if len(c.answers) < maxCachedTokens {
			break
		}
		delete(c.answers, old)
	}
	c.answers[hash] = answer
}
