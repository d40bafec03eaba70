package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// How long keys are used, and how soon the issuer is asked again.
const (
	keysFreshTime = 10 * time.Minute // then they are fetched again
	keysStaleTime = time.Hour        // so long they are good while that fails
	retryTime     = 10 * time.Second // so soon, at the earliest, the issuer is asked again
	keysBytes     = 1 << 20
)

// keys are the keys of an issuer. A key that the issuer took back is forgotten
// with the next fetch, and a stranger who invents key ids cannot make the server
// fetch at every request.
type keys struct {
	url    string
	client *http.Client
	now    func() time.Time

	mu      sync.Mutex
	set     []jose.JSONWebKey
	fetched time.Time
	tried   time.Time
	failed  error
}

// VerifySignature gives the payload of a token that one of the keys signed. The
// algorithm was held against those taken before this is called.
func (k *keys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSigned(token, []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	})
	if err != nil {
		return nil, fmt.Errorf("read the token: %w", err)
	}
	if len(signed.Signatures) != 1 {
		return nil, errors.New("the token has not one signature")
	}
	for _, refetch := range []bool{false, true} {
		set, err := k.current(ctx, refetch)
		if err != nil {
			return nil, err
		}
		for i := range set {
			if id := signed.Signatures[0].Header.KeyID; id != "" && set[i].KeyID != id || set[i].Use == "enc" {
				continue
			}
			if payload, err := signed.Verify(&set[i]); err == nil {
				return payload, nil
			}
		}
	}
	return nil, errors.New("no key of the issuer signed the token")
}

// current gives the keys, fetched again when they are old, or when that is wanted
// and the last time is long enough ago.
func (k *keys) current(ctx context.Context, refetch bool) ([]jose.JSONWebKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	age := now.Sub(k.fetched)
	if (refetch || k.set == nil || age > keysFreshTime) && now.Sub(k.tried) >= retryTime {
		k.tried = now
		var set []jose.JSONWebKey
		if set, k.failed = k.fetch(ctx); k.failed == nil {
			k.set, k.fetched = set, now
			return set, nil
		}
	}
	if k.set == nil || now.Sub(k.fetched) > keysStaleTime {
		return nil, unavailable(k.failed)
	}
	return k.set, nil
}

func (k *keys) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, k.url, nil)
	if err != nil {
		return nil, fmt.Errorf("fetch the keys of the issuer: %w", err)
	}
	response, err := k.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("fetch the keys of the issuer: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch the keys of the issuer: %s", response.Status)
	}
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, keysBytes)).Decode(&document); err != nil {
		return nil, fmt.Errorf("read the keys of the issuer: %w", err)
	}
	set := []jose.JSONWebKey{}
	for _, text := range document.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(text, &key) == nil && key.Valid() && key.IsPublic() { // of other kinds there may be more
			set = append(set, key)
		}
	}
	return set, nil
}
