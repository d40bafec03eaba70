package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/problem"
)

// identity imitates OpenStack's identity service.
type identity struct {
	*httptest.Server
	clock *clock

	mu       sync.Mutex
	own      string // the token of the asking server
	signIns  int
	asked    map[string]int
	down     bool
	ended    bool            // the own token, until the next sign-in
	refuses  bool            // every sign-in
	takes    time.Duration   // each sign-in
	revokes  map[string]bool // tokens of users
	lifetime time.Duration
}

func newIdentity(t *testing.T, clock *clock) *identity {
	t.Helper()
	k := &identity{clock: clock, asked: map[string]int{}, revokes: map[string]bool{}, lifetime: time.Hour}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v3/auth/tokens", k.signIn)
	mux.HandleFunc("GET /v3/auth/tokens", k.validate)
	k.Server = httptest.NewServer(mux)
	t.Cleanup(k.Close)
	return k
}

func (k *identity) signIn(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	k.clock.turn(k.takes)
	if k.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if strings.Contains(string(body), `"password":"swordfish"`) &&
		strings.Contains(string(body), `"project":{"domain":{"name":"cloud"},"name":"operations"}`) {
		w.Header().Set("X-Subject-Token", "ada/operations/admin")
		w.WriteHeader(http.StatusCreated)
		k.document(w, "ada", "operations", "admin")
		return
	}
	k.signIns++
	if k.refuses || !strings.Contains(string(body), `"password":"secret"`) ||
		!strings.Contains(string(body), `"name":"service"`) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	k.ended, k.own = false, "own-"+strings.Repeat("i", k.signIns)
	w.Header().Set("X-Subject-Token", k.own)
	w.WriteHeader(http.StatusCreated)
	k.document(w, "cadastre", "service", "service")
}

func (k *identity) validate(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	subject := r.Header.Get("X-Subject-Token")
	switch {
	case k.down:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case r.Header.Get("X-Auth-Token") != k.own || k.ended:
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error": {"code": 401, "message": "The request about `+subject+
			` requires authentication.", "title": "Unauthorized"}}`)
		return
	}
	if len(subject) > 4<<10 {
		w.WriteHeader(http.StatusRequestHeaderFieldsTooLarge)
		return
	}
	k.asked[subject]++
	user, rest, ok := strings.Cut(subject, "/")
	if !ok || k.revokes[subject] {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error": {"code": 404, "message": "Could not find token: `+
			subject+`.", "title": "Not Found"}}`)
		return
	}
	project, roles, _ := strings.Cut(rest, "/")
	w.Header().Set("X-Subject-Token", subject)
	k.document(w, user, project, strings.Split(roles, ",")...)
}

// document writes a token in the service's format; an empty project is omitted.
func (k *identity) document(w http.ResponseWriter, user, project string, roles ...string) {
	domain := map[string]string{"id": "default", "name": "Default"}
	var named []any
	for _, role := range roles {
		named = append(named, map[string]string{"id": "id-of-" + role, "name": role})
	}
	token := map[string]any{
		"methods": []string{"password"}, "audit_ids": []string{"3T2dc1CGQxyJsHdDu1xkcw"},
		"is_domain": false, "catalog": []any{},
		"user": map[string]any{"domain": domain, "id": user,
			"name": "the name of " + user, "password_expires_at": nil},
		"roles":      named,
		"issued_at":  k.clock.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
		"expires_at": k.clock.Now().Add(k.lifetime).UTC().Format("2006-01-02T15:04:05.000000Z"),
	}
	if project != "" {
		token["project"] = map[string]any{"domain": domain, "id": project, "name": "the name of " + project}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"token": token})
}

// set changes the service while it runs.
func (k *identity) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

func (k *identity) times(token string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked[token]
}

func (k *identity) source(t *testing.T) auth.Source {
	t.Helper()
	source, err := auth.Keystone(auth.KeystoneOptions{URL: k.URL + "/v3", User: "cadastre",
		Password: "secret", Project: "service"}, k.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func TestKeystoneReturnsTheViewerOfAToken(t *testing.T) {
	t.Parallel()
	k := newIdentity(t, &clock{at: time.Now()})
	source := k.source(t)
	for token, want := range map[string]string{
		"ada/operations/admin":         "ada operations [admin]",
		"mel/demo/member,reader,_x_":   "mel demo [member reader]",
		"rae/demo/Reader,reader":       "rae demo [reader]",
		"eve/demo/Admin":               "eve demo []", // names are compared exactly
		"bot/service/service":          "bot service [service]",
		"sys//admin":                   "sys  [admin]", // not for a project, of the whole cloud
		"nil//member":                  "",
		"odd/demo/":                    "odd demo []",
		"unknown":                      "",
		strings.Repeat("long", 2<<10):  "",
		"unknown-too\r\nX-Injected: 1": "",
	} {
		viewer, err := source(context.Background(), token)
		if want == "" {
			if err == nil || errors.Is(err, problem.ErrUnavailable) && !strings.Contains(token, "\n") {
				t.Errorf("%q: %v, %v", token, viewer, err)
			}
			continue
		}
		if got := viewer.UserID + " " + viewer.ProjectID + " [" + strings.Join(viewer.Roles, " ") + "]"; err != nil ||
			got != want {
			t.Errorf("%q: got %s, %v, want %s", token, got, err, want)
		}
	}
	if k.signIns != 1 {
		t.Errorf("%d sign-ins", k.signIns)
	}
}

func TestKeystoneAnswersAreCachedForAMinuteAndNeverPastTheEnd(t *testing.T) {
	t.Parallel()
	k := newIdentity(t, &clock{at: time.Now()})
	source := k.source(t)
	const long, short, gone = "ada/demo/member", "sue/demo/member", "unknown"
	is := func(token string, want error, times int, when string) {
		t.Helper()
		if _, err := source(context.Background(), token); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", when, err, want)
		}
		if got := k.times(token); got != times {
			t.Errorf("%s: asked %d times, want %d", when, got, times)
		}
	}
	is(long, nil, 1, "first")
	k.set(func() { k.lifetime = 20 * time.Second })
	is(short, nil, 1, "a short one")
	is(gone, problem.ErrUnauthenticated, 1, "an unknown one")
	is(gone, problem.ErrUnauthenticated, 1, "an unknown one again")
	k.clock.turn(6 * time.Second)
	is(gone, problem.ErrUnauthenticated, 2, "an unknown one after five seconds")
	k.clock.turn(15 * time.Second)
	k.set(func() { k.lifetime = -time.Second })
	is(short, problem.ErrUnauthenticated, 2, "a short one after its end")
	is(long, nil, 1, "a long one after twenty seconds")
	k.set(func() { k.lifetime, k.revokes[long] = time.Hour, true })
	is(long, nil, 1, "one that was revoked just now")
	k.clock.turn(40 * time.Second)
	is(long, problem.ErrUnauthenticated, 2, "one that was revoked")
}

func TestKeystoneDownLetsNobodyIn(t *testing.T) {
	t.Parallel()
	k := newIdentity(t, &clock{at: time.Now()})
	source := k.source(t)
	is := func(token string, want error, when string) {
		t.Helper()
		if _, err := source(context.Background(), token); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", when, err, want)
		}
	}
	k.set(func() { k.down = true })
	is("ada/demo/member", problem.ErrUnavailable, "down from the start")
	k.set(func() { k.down = false })
	is("bob/demo/member", problem.ErrUnavailable, "directly after")
	k.clock.turn(5 * time.Second)
	is("ada/demo/member", nil, "five seconds after")
	k.set(func() { k.down = true })
	is("ada/demo/member", nil, "one that is cached, while it is down")
	is("cyd/demo/member", problem.ErrUnavailable, "a new one, while it is down")
	k.set(func() { k.down = false })
	k.clock.turn(time.Minute)
	is("cyd/demo/member", nil, "a new one, later")
	k.set(func() { k.ended = true })
	k.clock.turn(time.Minute)
	is("cyd/demo/member", nil, "with a token of the server's own that has ended")
	if k.signIns != 2 {
		t.Errorf("%d sign-ins, want 2", k.signIns)
	}
}

func TestKeystoneThatRefusesTheServerIsAskedRarely(t *testing.T) {
	t.Parallel()
	k := newIdentity(t, &clock{at: time.Now()})
	source := k.source(t)
	is := func(token string, signIns int, when string) {
		t.Helper()
		_, err := source(t.Context(), token)
		refusal := new(problem.Refusal)
		if !errors.As(err, &refusal) || strings.Contains(refusal.Cause().Error(), token) {
			t.Errorf("%s: %v, because of %v", when, err, refusal.Cause())
		}
		if !errors.Is(err, problem.ErrUnavailable) || k.signIns != signIns {
			t.Errorf("%s: %v after %d sign-ins, want %d", when, err, k.signIns, signIns)
		}
	}
	k.set(func() { k.refuses, k.takes = true, failureTime })
	is("ada/demo/member", 1, "a slow refusal")
	is("bob/demo/member", 1, "directly after")
	k.clock.turn(failureTime)
	k.set(func() { k.refuses, k.takes = false, 0 })
	if _, err := source(t.Context(), "ada/demo/member"); err != nil {
		t.Fatal(err)
	}
	k.clock.turn(failureTime)
	k.set(func() { k.refuses, k.ended = true, true })
	is("cyd/demo/member", 3, "a refusal after the own token has ended")
	is("dan/demo/member", 3, "directly after")
}

// failureTime is how long a failure is cached.
const failureTime = 5 * time.Second

func TestLongAnswersAreNotRead(t *testing.T) {
	t.Parallel()
	const long = 64 << 20
	written := make(chan int, 8)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent := 0
		for n, err := 0, error(nil); sent < long && err == nil; sent += n {
			n, err = w.Write(make([]byte, 1<<20))
		}
		written <- sent
	}))
	t.Cleanup(server.Close)
	k := &identity{Server: server, clock: &clock{at: time.Now()}}
	if _, err := k.source(t)(t.Context(), "ada/demo/member"); !errors.Is(err, problem.ErrUnavailable) {
		t.Error(err)
	}
	if sent := <-written; sent >= long {
		t.Errorf("%d bytes of an answer were read", sent)
	}
}

func TestKeystoneIsAskedOnceForManyAtOnce(t *testing.T) {
	t.Parallel()
	k := newIdentity(t, &clock{at: time.Now()})
	source := k.source(t)
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			if _, err := source(context.Background(), "ada/demo/member"); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := k.times("ada/demo/member"); got != 1 {
		t.Errorf("asked %d times", got)
	}
}

func TestKeystoneRefusesSettingsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]auth.KeystoneOptions{
		"no address":      {User: "u", Password: "p", Project: "s"},
		"no account":      {URL: "https://keystone/v3"},
		"half an account": {URL: "https://keystone/v3", User: "u", Password: "p"},
		"both accounts": {URL: "https://keystone/v3", User: "u", Password: "p", Project: "s",
			CredentialID: "i", CredentialSecret: "s"},
		"an unknown role": {URL: "https://keystone/v3", User: "u", Password: "p", Project: "s",
			Roles: map[string]string{"x": "root"}},
	} {
		if _, err := auth.Keystone(options, time.Now); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestSigningInAtKeystone signs in with a password, and gives the token to the
// source.
func TestSigningInAtKeystone(t *testing.T) {
	t.Parallel()
	k := newIdentity(t, &clock{at: time.Now()})
	signIn := auth.KeystoneSignIn(k.URL + "/v3")
	right := auth.Password{User: "ada", Password: "swordfish", Project: "operations", Domain: "cloud"}
	token, expires, err := signIn(t.Context(), right)
	if err != nil || time.Until(expires) < 59*time.Minute {
		t.Fatalf("%q until %v, %v", token, expires, err)
	}
	if viewer, err := k.source(t)(t.Context(), token); err != nil ||
		viewer.UserID != "ada" || viewer.ProjectID != "operations" {
		t.Errorf("the token is of %v, %v", viewer, err)
	}
	wrong := right
	wrong.Password = "guess"
	if _, _, err := signIn(t.Context(), wrong); !errors.Is(err, problem.ErrUnauthenticated) {
		t.Errorf("a wrong password: %v", err)
	}
	k.set(func() { k.down = true })
	if _, _, err := signIn(t.Context(), right); !errors.Is(err, problem.ErrUnavailable) ||
		strings.Contains(err.Error(), "swordfish") {
		t.Errorf("a service that is down: %v", err)
	}
}
