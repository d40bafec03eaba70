package web

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/graph"
)

// manifestInterval is the time between checks of the manifest file.
const manifestInterval = 10 * time.Second

// TrustedDocuments are the documents of a manifest, by their SHA-256.
type TrustedDocuments struct {
	byHash *watchedFile[map[string]string]
}

// ReadTrustedDocuments reads a manifest of documents in JSON. It is either an
// object from the SHA-256 of each document, in hexadecimal, to its text (as
// graphql-codegen writes it), or Apollo's `{"format":
// "apollo-persisted-query-manifest", "operations": [{"id", "body"}]}`. A hash
// that does not match its document is an error. TrustedDocuments reads the file
// again when it changes. If it cannot, it logs the error and keeps the previous
// documents.
func ReadTrustedDocuments(path string) (*TrustedDocuments, error) {
	byHash, err := watchFile(path, manifestInterval, readManifest)
	if err != nil {
		return nil, fmt.Errorf("read the trusted documents: %w", err)
	}
	return &TrustedDocuments{byHash}, nil
}

func readManifest(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseManifest(text)
}

func parseManifest(text []byte) (map[string]string, error) {
	var apollo struct {
		Format     string `json:"format"`
		Operations []struct {
			ID   string `json:"id"`
			Body string `json:"body"`
		} `json:"operations"`
	}
	byHash := map[string]string{}
	if err := json.Unmarshal(text, &apollo); err == nil && apollo.Format != "" {
		if apollo.Format != "apollo-persisted-query-manifest" {
			return nil, fmt.Errorf("unknown format %q", apollo.Format)
		}
		for _, operation := range apollo.Operations {
			byHash[operation.ID] = operation.Body
		}
	} else if err := json.Unmarshal(text, &byHash); err != nil {
		return nil, fmt.Errorf("not an object from hashes to documents: %w", err)
	}
	if len(byHash) == 0 {
		return nil, fmt.Errorf("no documents")
	}
	out := make(map[string]string, len(byHash))
	for hash, document := range byHash {
		hash = bareHash(hash)
		if hash != hashOf(document) {
			return nil, fmt.Errorf("%.80q is not the SHA-256 of its document, which is %s", hash, hashOf(document))
		}
		out[hash] = document
	}
	return out, nil
}

// Reload reads the manifest again, even if it did not change, and describes the
// changes in words; empty means no change. If the manifest cannot be read, the
// previous documents stay in use.
func (t *TrustedDocuments) Reload() (changed string, err error) {
	before, now, err := t.byHash.reload()
	if err != nil {
		return "", err
	}
	added, removed := countMissing(now, before), countMissing(before, now)
	if added+removed == 0 {
		return "", nil
	}
	return fmt.Sprintf("documents: %d added, %d removed", added, removed), nil
}

// countMissing returns how many hashes only the first of two maps has.
func countMissing(of, in map[string]string) int {
	missing := 0
	for hash := range of {
		if _, ok := in[hash]; !ok {
			missing++
		}
	}
	return missing
}

func (t *TrustedDocuments) get(hash string, log *slog.Logger) (string, bool) {
	if t == nil {
		return "", false
	}
	document, ok := t.byHash.content(log)[hash]
	return document, ok
}

func hashOf(document string) string {
	sum := sha256.Sum256([]byte(document))
	return hex.EncodeToString(sum[:])
}

// bareHash returns a hash in lower case, without the name of its algorithm.
func bareHash(hash string) string { return strings.ToLower(strings.TrimPrefix(hash, "sha256:")) }

// source is the text of a request's document.
type source struct {
	text    string
	trusted bool
	// register is the hash under which a valid text will be kept; empty for
	// none.
	register string
	// persisted is whether a locked server runs the document by GET: it is the
	// server's own, or the server had it under the hash in the request. The
	// console's documents are excluded.
	persisted bool
}

// resolve returns the document of a request. This is its text, or the persisted
// document with the hash in documentId or in
// extensions.persistedQuery.sha256Hash.
func (t *transport) resolve(request *request) (source, *refusal) {
	if request.own {
		return source{text: request.query, trusted: true, persisted: true}, nil
	}
	hash, refused := request.hash()
	if refused != nil {
		return source{}, refused
	}
	if hash == "" {
		if request.query == "" {
			return source{}, bad("the request has neither a query nor the hash of a persisted query")
		}
		_, trusted := t.trusted(hashOf(request.query))
		if t.TrustedOnly && !trusted {
			return source{}, onlyTrusted()
		}
		return source{text: request.query, trusted: trusted}, nil
	}
	if request.query != "" && hashOf(request.query) != hash {
		return source{}, bad("the hash is not the SHA-256 of the query")
	}
	if from, ok := t.trusted(hash); ok {
		return from, nil
	}
	if t.TrustedOnly {
		return source{}, onlyTrusted()
	}
	if text, ok := t.persisted.Get(hash); ok {
		return source{text: text, persisted: true}, nil
	}
	if request.query == "" {
		// clients compare this string
		return source{}, &refusal{code: graph.CodePersistedQueryNotFound, message: "PersistedQueryNotFound"}
	}
	return source{text: request.query, register: hash}, nil
}

// trusted returns the trusted document with a hash. The console sends its
// documents by POST, so a GET of one is refused like any other text.
func (t *transport) trusted(hash string) (source, bool) {
	if text, ok := t.Trusted.get(hash, t.Log); ok {
		return source{text: text, trusted: true, persisted: true}, true
	}
	if t.servesConsole() {
		if text, ok := consoleDocuments()[hash]; ok {
			return source{text: text, trusted: true}, true
		}
	}
	return source{}, false
}

func onlyTrusted() *refusal {
	return &refusal{code: graph.CodePersistedQueryIsRequired,
		message: "the document is not trusted, and this server accepts only trusted documents"}
}

// hash returns the hash by which a request names its document; empty for none.
func (r *request) hash() (string, *refusal) {
	named := r.documentID
	if persisted, ok := r.extensions["persistedQuery"]; ok {
		hash, ok := persistedHash(persisted)
		if !ok {
			return "", bad(`extensions.persistedQuery is not of the form {"version": 1, "sha256Hash": "..."}`)
		}
		if named != "" && bareHash(named) != bareHash(hash) {
			return "", bad("documentId and extensions.persistedQuery name different documents")
		}
		named = hash
	}
	if named == "" {
		return "", nil
	}
	hash := bareHash(named)
	if raw, err := hex.DecodeString(hash); err != nil || len(raw) != sha256.Size {
		return "", bad("the hash of the document is not a SHA-256 of 64 hexadecimal digits")
	}
	return hash, nil
}

// persistedHash returns the hash in extensions.persistedQuery. It returns false
// if the extension has another form.
func persistedHash(extension any) (hash string, ok bool) {
	members, _ := extension.(map[string]any)
	version, _ := members["version"].(json.Number)
	hash, ok = members["sha256Hash"].(string)
	return hash, ok && version == "1"
}
