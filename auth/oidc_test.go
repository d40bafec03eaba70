package auth_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/problem"
)

// signer is an OpenID Connect issuer on loopback with its own keys.
type signer struct {
	*httptest.Server
	mu      sync.Mutex
	keys    map[string]*ecdsa.PrivateKey
	fetches int
	down    bool
	keyless bool // its answers have no keys
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	s := &signer{keys: map[string]*ecdsa.PrivateKey{"one": newKey(t)}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		s.answer(w, map[string]any{"issuer": s.URL, "jwks_uri": s.URL + "/keys",
			"authorization_endpoint": s.URL, "token_endpoint": s.URL})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		set := []any{map[string]string{"kty": "OKP", "crv": "Ed448", "x": "AAAA"}}
		s.mu.Lock()
		s.fetches++
		if s.keyless {
			s.mu.Unlock()
			s.answer(w, map[string]any{"error": "try again"})
			return
		}
		for _, id := range slices.Sorted(maps.Keys(s.keys)) {
			set = append(set, jose.JSONWebKey{Key: s.keys[id].Public(), KeyID: id, Algorithm: "ES256", Use: "sig"})
		}
		s.mu.Unlock()
		s.answer(w, map[string]any{"keys": set})
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *signer) answer(w http.ResponseWriter, document any) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down {
		http.Error(w, "down", http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document)
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// token signs the claims that are not nil.
func token(t *testing.T, algorithm jose.SignatureAlgorithm, id string, key any, claims map[string]any) string {
	t.Helper()
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	options := (&jose.SignerOptions{}).WithType("JWT")
	if id != "" {
		options = options.WithHeader("kid", id)
	}
	signing, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signing.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// clock is a clock that tests set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) turn(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(by)
}

func TestOIDCTakesTokensOfItsIssuerOnly(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	source, err := auth.OIDC(auth.OIDCOptions{
		Issuer: s.URL, Audience: "cadastre", ProjectClaim: "cloud.project", RolesClaim: "realm_access.roles",
		Roles: map[string]string{"cloud-admin": "admin", "team": "member"},
	}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	claims := func(changes map[string]any) map[string]any {
		out := map[string]any{
			"iss": s.URL, "aud": []string{"other", "cadastre"}, "sub": "ada",
			"exp": now.Add(time.Hour).Unix(), "iat": now.Unix(),
			"cloud":        map[string]any{"project": "demo"},
			"realm_access": map[string]any{"roles": []any{"team", "unknown", "admin", "TEAM"}},
		}
		maps.Copy(out, changes)
		return out
	}
	key := s.keys["one"]
	good := token(t, jose.ES256, "one", key, claims(nil))
	parts := strings.Split(good, ".")
	for name, test := range map[string]struct {
		token string
		roles []string // nil when refused
	}{
		"good":      {good, []string{"member"}},
		"no key id": {token(t, jose.ES256, "", key, claims(nil)), []string{"member"}},
		"roles as a text": {token(t, jose.ES256, "one", key,
			claims(map[string]any{"realm_access": map[string]any{"roles": "team cloud-admin"}})),
			[]string{"admin", "member"}},
		"no roles": {token(t, jose.ES256, "one", key, claims(map[string]any{"realm_access": nil})),
			[]string{}},
		"expired": {token(t, jose.ES256, "one", key,
			claims(map[string]any{"exp": now.Add(-time.Minute).Unix()})), nil},
		"never expires": {token(t, jose.ES256, "one", key, claims(map[string]any{"exp": nil})), nil},
		"not yet": {token(t, jose.ES256, "one", key,
			claims(map[string]any{"nbf": now.Add(time.Hour).Unix()})), nil},
		"another audience": {token(t, jose.ES256, "one", key, claims(map[string]any{"aud": "other"})), nil},
		"no audience":      {token(t, jose.ES256, "one", key, claims(map[string]any{"aud": nil})), nil},
		"another issuer": {token(t, jose.ES256, "one", key,
			claims(map[string]any{"iss": "https://other.example.org"})), nil},
		"another key":       {token(t, jose.ES256, "one", newKey(t), claims(nil)), nil},
		"an unknown key id": {token(t, jose.ES256, "two", newKey(t), claims(nil)), nil},
		"symmetric":         {token(t, jose.HS256, "one", []byte(strings.Repeat("k", 32)), claims(nil)), nil},
		"none":              {"eyJhbGciOiJub25lIn0." + parts[1] + ".", nil},
		"another payload": {parts[0] + "." +
			strings.Split(token(t, jose.ES256, "one", key, claims(map[string]any{"sub": "eve"})), ".")[1] + "." +
			parts[2], nil},
		"no subject":          {token(t, jose.ES256, "one", key, claims(map[string]any{"sub": nil})), nil},
		"a number as subject": {token(t, jose.ES256, "one", key, claims(map[string]any{"sub": 5})), nil},
		"a long subject": {token(t, jose.ES256, "one", key,
			claims(map[string]any{"sub": strings.Repeat("s", 256)})), nil},
		"U+0000 as subject": {token(t, jose.ES256, "one", key, claims(map[string]any{"sub": "a\x00b"})), nil},
		"a long project": {token(t, jose.ES256, "one", key,
			claims(map[string]any{"cloud": map[string]any{"project": strings.Repeat("p", 256)}})), nil},
		"no project":      {token(t, jose.ES256, "one", key, claims(map[string]any{"cloud": nil})), nil},
		"no token at all": {"x.y.z", nil},
		"two dots":        {"..", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			viewer, err := source(context.Background(), test.token)
			if (err == nil) != (test.roles != nil) {
				t.Fatalf("got %v, %v", viewer, err)
			}
			if err != nil {
				if !errors.Is(err, problem.ErrUnauthenticated) {
					t.Errorf("%v is not ErrUnauthenticated", err)
				}
				return
			}
			if viewer.UserID != "ada" || viewer.ProjectID != "demo" || !slices.Equal(viewer.Roles, test.roles) {
				t.Errorf("got %v", viewer)
			}
		})
	}
}

func TestOIDCFollowsTheKeysOfItsIssuer(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	clock := &clock{at: time.Now()}
	source, err := auth.OIDC(auth.OIDCOptions{Issuer: s.URL, Audience: "cadastre"}, clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(id string, key *ecdsa.PrivateKey) string {
		return token(t, jose.ES256, id, key, map[string]any{
			"iss": s.URL, "aud": "cadastre", "sub": "ada", "project": "demo", "roles": []string{"reader"},
			"exp": clock.Now().Add(24 * time.Hour).Unix(),
		})
	}
	is := func(want error, token, when string) {
		t.Helper()
		if _, err := source(context.Background(), token); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", when, err, want)
		}
	}
	s.down = true
	one, two := s.keys["one"], newKey(t)
	is(problem.ErrUnavailable, signed("one", one), "before the issuer answers")
	s.down = false
	is(problem.ErrUnavailable, signed("one", one), "directly after")
	clock.turn(10 * time.Second)
	is(nil, signed("one", one), "ten seconds after")
	is(problem.ErrUnauthenticated, signed("two", two), "a key that is not there yet")
	s.mu.Lock()
	s.keys["two"] = two
	fetches := s.fetches
	s.mu.Unlock()
	for range 50 {
		is(problem.ErrUnauthenticated, signed("three", two), "keys that are invented")
	}
	if s.fetches != fetches {
		t.Errorf("%d fetches for invented keys", s.fetches-fetches)
	}
	clock.turn(10 * time.Second)
	is(nil, signed("two", two), "a key that is new")
	s.mu.Lock()
	delete(s.keys, "one")
	s.mu.Unlock()
	is(nil, signed("one", one), "a key that was taken back just now")
	clock.turn(11 * time.Minute)
	is(problem.ErrUnauthenticated, signed("one", one), "a key that was taken back")
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	clock.turn(30 * time.Minute)
	is(nil, signed("two", two), "while the issuer is down")
	is(problem.ErrUnavailable, signed("three", newKey(t)), "an unknown key while the issuer is down")
	is(problem.ErrUnavailable, signed("three", newKey(t)), "an unknown key directly after")
	s.mu.Lock()
	s.down, s.keyless = false, true
	s.mu.Unlock()
	clock.turn(10 * time.Second)
	is(nil, signed("two", two), "while the issuer answers without keys")
	clock.turn(time.Hour)
	is(problem.ErrUnavailable, signed("two", two), "while it is down for long")
}

// TestAnIssuerThatHangsDelaysNoKnownKey has the issuer hang on the fetch for an
// unknown key. Meanwhile the source still checks tokens of known keys.
func TestAnIssuerThatHangsDelaysNoKnownKey(t *testing.T) {
	t.Parallel()
	s := newSigner(t)
	clock := &clock{at: time.Now()}
	source, err := auth.OIDC(auth.OIDCOptions{Issuer: s.URL, Audience: "cadastre"}, clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(id string, key *ecdsa.PrivateKey, role string) string {
		return token(t, jose.ES256, id, key, map[string]any{
			"iss": s.URL, "aud": "cadastre", "sub": "ada", "project": "demo", "roles": []string{role},
			"exp": clock.Now().Add(time.Hour).Unix(),
		})
	}
	known := signed("one", s.keys["one"], "Admin")
	viewer, err := source(t.Context(), known)
	if err != nil || len(viewer.Roles) > 0 {
		t.Fatalf("got %v, %v: Admin is not the role admin", viewer, err)
	}
	clock.turn(10 * time.Second)
	s.mu.Lock() // the issuer does not answer until this is unlocked
	hanging := make(chan error, 1)
	go func() {
		_, err := source(context.WithoutCancel(t.Context()), signed("two", newKey(t), "admin"))
		hanging <- err
	}()
	for range 20 {
		time.Sleep(10 * time.Millisecond) // the fetch begins meanwhile
		if _, err := source(t.Context(), known); err != nil {
			t.Error(err)
		}
		select {
		case err := <-hanging:
			t.Fatalf("the unknown key was answered: %v", err)
		default:
		}
	}
	s.down = true
	s.mu.Unlock()
	if err := <-hanging; !errors.Is(err, problem.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

func TestOIDCRefusesSettingsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]auth.OIDCOptions{
		"no issuer":        {Audience: "a"},
		"no URL":           {Issuer: "issuer", Audience: "a"},
		"no audience":      {Issuer: "https://issuer"},
		"symmetric":        {Issuer: "https://issuer", Audience: "a", Algorithms: []string{"RS256", "HS256"}},
		"none":             {Issuer: "https://issuer", Audience: "a", Algorithms: []string{"none"}},
		"an unknown role":  {Issuer: "https://issuer", Audience: "a", Roles: map[string]string{"x": "root"}},
		"a scheme of mail": {Issuer: "mailto:issuer", Audience: "a"},
	} {
		if _, err := auth.OIDC(options, time.Now); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
