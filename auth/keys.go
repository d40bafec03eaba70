package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// How long keys are used, and how often the issuer is asked.
const (
	keysFreshTime   = 10 * time.Minute // older keys are fetched again
	keysStaleTime   = time.Hour        // how long they are used if the fetch fails
	issuerRetryTime = 10 * time.Second // minimum time between two attempts
)

// asymmetric are the acceptable algorithms: a service that can check their
// signatures cannot forge them.
var asymmetric = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// keys are the keys of an issuer. The next fetch drops the keys that the issuer
// revoked. Clients that invent key ids cause at most one fetch per
// issuerRetryTime.
type keys struct {
	url    string
	client *http.Client
	now    func() time.Time

	fetching sync.Mutex // held for a fetch, before mu

	mu      sync.Mutex
	set     []jose.JSONWebKey
	fetched time.Time
	tried   time.Time
	failed  error // of the last fetch
}

// errNoKeys means that the keys could not be fetched, so that it is unknown
// whether a key of the issuer signed the token.
var errNoKeys = errors.New("the keys of the issuer are not available")

// VerifySignature returns the payload of a token that one of the keys signed.
// The error wraps errNoKeys if no known key signed it and the issuer cannot be
// asked for others. The verifier checks the algorithm before it calls this.
func (k *keys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSignedCompact(token, asymmetric)
	if err != nil {
		return nil, fmt.Errorf("read the token: %w", err)
	}
	if len(signed.Signatures) != 1 {
		return nil, fmt.Errorf("the token must have one signature, has %d", len(signed.Signatures))
	}
	for _, refetch := range []bool{false, true} {
		set, err := k.current(ctx, refetch)
		for i := range set {
			if id := signed.Signatures[0].Header.KeyID; id != "" && set[i].KeyID != id || set[i].Use == "enc" {
				continue
			}
			if payload, err := signed.Verify(&set[i]); err == nil {
				return payload, nil
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNoKeys, err)
		}
	}
	return nil, errors.New("no key of the issuer signed the token")
}

// current returns the keys. It fetches them if they are old or refetch is set,
// but not within issuerRetryTime of the last attempt. Without keys younger than
// keysStaleTime it returns only the error of the last fetch. If refetch is set
// and the last fetch failed, it returns the keys and the error. A fetch delays
// only the callers that need it.
func (k *keys) current(ctx context.Context, refetch bool) ([]jose.JSONWebKey, error) {
	if k.wantsFetch(refetch) {
		k.fetching.Lock()
		defer k.fetching.Unlock()
		if k.wantsFetch(refetch) { // no other caller fetched them meanwhile
			started := k.now()
			set, err := k.fetch(ctx)
			k.mu.Lock()
			if k.tried, k.failed = started, err; err == nil {
				k.set, k.fetched = set, started
			}
			k.mu.Unlock()
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.set == nil || k.now().Sub(k.fetched) > keysStaleTime:
		return nil, k.failed
	case refetch:
		return k.set, k.failed
	}
	return k.set, nil
}

func (k *keys) wantsFetch(refetch bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	return (refetch || k.set == nil || now.Sub(k.fetched) > keysFreshTime) && now.Sub(k.tried) >= issuerRetryTime
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
	if err := json.NewDecoder(response.Body).Decode(&document); err != nil {
		return nil, fmt.Errorf("read the keys of the issuer: %w", err)
	}
	if document.Keys == nil {
		return nil, errors.New("read the keys of the issuer: the answer has no list of keys")
	}
	set := []jose.JSONWebKey{}
	for _, text := range document.Keys {
		var key jose.JSONWebKey
		// the issuer may have keys of other kinds
		if json.Unmarshal(text, &key) == nil && key.Valid() && key.IsPublic() {
			set = append(set, key)
		}
	}
	return set, nil
}
