package web_test

import (
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
)

const makeTrait = `mutation { createTrait(input: {name: "CUSTOM_ONCE"}) { trait { name } } }`

// TestAMutationIsMadeOnceForAKey sends a mutation twice, with bare keys and
// with structured field strings.
func TestAMutationIsMadeOnceForAKey(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first := s.query(makeTrait, "Idempotency-Key", `"a-\"key\\"`)
	for _, key := range []string{`"a-\"key\\"`, `a-"key\`, "  a-\"key\\ "} {
		if again := s.query(makeTrait, "Idempotency-Key", key); first.code() != "" ||
			again.body != first.body || again.status != http.StatusOK {
			t.Errorf("with the key %s: %s, was %s", key, again.body, first.body)
		}
	}
	if other := s.query(makeTrait, "Idempotency-Key", "another"); other.code() != "ALREADY_EXISTS" {
		t.Errorf("with another key: %s", other.body)
	}
	if reused := s.query(strings.Replace(makeTrait, "ONCE", "TWICE", 1), "Idempotency-Key",
		`a-"key\`); reused.code() != "BAD_USER_INPUT" || !strings.Contains(reused.body, `"field":"Idempotency-Key"`) ||
		strings.Contains(reused.body, `"data"`) {
		t.Errorf("another mutation with the key: %s", reused.body)
	}
}

// TestKeysThatAreNone checks the refusals of invalid keys, and that queries
// ignore the header.
func TestKeysThatAreNone(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, key := range []string{" ", `""`, `"open`, `"a"b`, `"\a"`, "a b", "ü", "a\tb", strings.Repeat("k", 256)} {
		if got := s.query(makeTrait, "Idempotency-Key", key); got.code() != "BAD_USER_INPUT" ||
			!strings.Contains(got.body, `"field":"Idempotency-Key"`) {
			t.Errorf("the key %q: %s", key, got.body)
		}
		if got := s.query(`{ viewer { id } }`, "Idempotency-Key", key); got.code() != "" {
			t.Errorf("a query with the key %q: %s", key, got.body)
		}
	}
	if got := s.query(makeTrait, "Idempotency-Key", strings.Repeat("k", 255)); got.code() != "" {
		t.Errorf("a long key: %s", got.body)
	}
}

// TestKeysAreReadBeforeTheGates sends an invalid key while the viewer is at its
// share. The server refuses the key without waiting for a place.
func TestKeysAreReadBeforeTheGates(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	release := s.holdWrites()
	var running sync.WaitGroup
	for range s.store.Places().Statements/2 + 1 {
		running.Go(func() { s.query(waiting) })
	}
	if !patience.Until(t, 10*time.Second, func() bool { return s.metric("cadastre_statements_waiting ") > 0 }) {
		t.Error("nothing waits")
	}
	if got := s.query(makeTrait, "Idempotency-Key", "a b"); got.code() != "BAD_USER_INPUT" {
		t.Errorf("while others run: %d %s", got.status, got.body)
	}
	release()
	running.Wait()
}

// TestARequestUnderWayIsAConflict repeats a mutation while the first one waits.
func TestARequestUnderWayIsAConflict(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	release := s.holdWrites()
	first := make(chan answer, 1)
	go func() { first <- s.query(waiting, "Idempotency-Key", "k", "X-Request-Id", "first") }()
	s.await(waits)
	if got := s.query(waiting, "Idempotency-Key", "k"); got.status != http.StatusConflict ||
		got.code() != "CONCURRENT_UPDATE" || got.header.Get("Retry-After") != "1" {
		t.Errorf("while it waits: %d %v %s", got.status, got.header, got.body)
	}
	release()
	want := receive(t, first)
	if got := s.query(waiting, "Idempotency-Key", "k"); got.body != want.body || got.code() != "" {
		t.Errorf("afterwards: %s, was %s", got.body, want.body)
	}
}

// TestReadyzSaysWhatIsWrong moves the database file away. /readyz reports it
// without the path, writes are refused, and the server recovers when the file
// is back.
func TestReadyzSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	away := s.file + ".away"
	if err := os.Rename(s.file, away); err != nil {
		t.Fatal(err)
	}
	if got := s.send(http.MethodGet, "/readyz", ""); got.status != http.StatusServiceUnavailable ||
		got.body != "not ready: the database file was removed or replaced\n" {
		t.Errorf("/readyz: %d %q", got.status, got.body)
	}
	if got := s.query(makeTrait); got.code() != "UNAVAILABLE" || !strings.Contains(got.body, `"retryAfter":10`) ||
		strings.Contains(got.body, s.file) {
		t.Errorf("a mutation: %s", got.body)
	}
	if got := s.query(makeTrait, "Idempotency-Key", "k"); got.code() != "UNAVAILABLE" {
		t.Errorf("a mutation with a key: %s", got.body)
	}
	if err := os.Rename(away, s.file); err != nil {
		t.Fatal(err)
	}
	if got := s.send(http.MethodGet, "/readyz", ""); got.status != http.StatusOK {
		t.Errorf("/readyz afterwards: %d %q", got.status, got.body)
	}
	if got := s.query(makeTrait); got.code() != "" {
		t.Errorf("a mutation afterwards: %s", got.body)
	}
}
