package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// issuer is an OpenID Connect issuer on loopback. Once it hangs, requests for
// its keys get no answer.
type issuer struct {
	*httptest.Server
	key   *ecdsa.PrivateKey
	hangs atomic.Bool
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{key: newSigningKey(t)}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, document any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(document)
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, r *http.Request) {
		if i.hangs.Load() {
			<-r.Context().Done()
			return
		}
		answer(w,
			jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(),
				KeyID: "known", Algorithm: "ES256", Use: "sig"}}})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func newSigningKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// token returns a token of the issuer for an administrator.
func (i *issuer) token(t *testing.T, keyID string, key *ecdsa.PrivateKey) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key},
		(&jose.SignerOptions{}).WithHeader("kid", keyID))
	if err != nil {
		t.Fatal(err)
	}
	claims, err := json.Marshal(map[string]any{"iss": i.URL, "aud": "cadastre", "sub": "ada", "project": "demo",
		"roles": []string{"admin"}, "exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestAnIssuerThatHangsIsUnavailable sends a token of an unknown key while the
// issuer hangs. The server cannot know whether the token is valid, so the
// status is 503. It is 401 only until the server asks the issuer again, 10
// seconds after the last time. Tokens of known keys stay valid.
func TestAnIssuerThatHangsIsUnavailable(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	server, _ := boot(t, configured(t, unlimited), "--database", storetest.EmptySQLite(t), "--oidc-issuer",
		i.URL, "--oidc-audience", "cadastre")
	known, unknown := i.token(t, "known", i.key), i.token(t, "rotated", newSigningKey(t))
	if status, answer := ask(t, server.address, known, `{ viewer { userId } }`); status != http.StatusOK ||
		!strings.Contains(answer, `"ada"`) {
		t.Fatalf("a known key: %d %s", status, answer)
	}
	i.hangs.Store(true)
	var status int
	var answer string
	asked := patience.Until(t, time.Minute, func() bool {
		time.Sleep(100 * time.Millisecond)
		status, answer = ask(t, server.address, unknown, `{ viewer { userId } }`)
		return status != http.StatusUnauthorized
	})
	if !asked || status != http.StatusServiceUnavailable ||
		!strings.Contains(answer, `"UNAVAILABLE"`) || strings.Contains(answer, i.URL) {
		t.Errorf("an unknown key while the issuer hangs: %d %s", status, answer)
	}
	if status, answer = ask(t, server.address, unknown,
		`{ viewer { userId } }`); status != http.StatusServiceUnavailable {
		t.Errorf("an unknown key directly after: %d %s", status, answer)
	}
	if status, answer := ask(t, server.address, known, `{ viewer { userId } }`); status != http.StatusOK {
		t.Errorf("a known key while the issuer hangs: %d %s", status, answer)
	}
}
