package auth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/goccy/go-yaml"

	"github.com/cadastre-dev/cadastre/access"
)

// readFile is the content of a file, which can be reloaded while it is in use.
type readFile[T any] struct {
	path    string
	read    func(path string) (T, error)
	changes func(before, now T) string // in words
	current atomic.Pointer[T]
}

// Reload reads the file again, and describes the changes in words; empty means
// no change. If it fails, the previous content stays in use.
func (f *readFile[T]) Reload() (changed string, err error) {
	now, err := f.read(f.path)
	if err != nil {
		return "", err
	}
	before := f.current.Swap(&now)
	if before == nil {
		return "", nil
	}
	return f.changes(*before, now), nil
}

// TokenFile is the tokens of a file.
type TokenFile struct{ readFile[[]Token] }

// OpenTokenFile returns the tokens of a file in the format of ReadTokens.
func OpenTokenFile(path string) (*TokenFile, error) {
	f := &TokenFile{readFile[[]Token]{path: path, read: ReadTokens, changes: changedTokens}}
	_, err := f.Reload()
	return f, err
}

// Find is a Source: it returns the viewer of a token of the file.
func (f *TokenFile) Find(_ context.Context, text string) (access.Viewer, error) {
	return find(*f.current.Load(), text)
}

// changedTokens returns in words how many tokens were added, removed or
// changed, "" for none.
func changedTokens(before, now []Token) string {
	former := make(map[[sha256.Size]byte]Token, len(before))
	for _, token := range before {
		former[token.SHA256] = token
	}
	added, other := 0, 0
	for _, token := range now {
		earlier, ok := former[token.SHA256]
		delete(former, token.SHA256)
		switch {
		case !ok:
			added++
		case !earlier.isLike(token):
			other++
		}
	}
	if added+other+len(former) == 0 {
		return ""
	}
	return fmt.Sprintf("tokens: %d added, %d removed, %d with a changed user, project, roles or expiry", added,
		len(former), other)
}

// isLike reports whether two tokens have the same viewer and expiry.
func (t Token) isLike(other Token) bool {
	return t.Viewer.Equal(other.Viewer) && t.Expires.Equal(other.Expires)
}

// PolicyFile is the policy of a file.
type PolicyFile struct{ readFile[*access.Policy] }

// OpenPolicyFile returns the policy of a file in the format of ReadPolicy.
func OpenPolicyFile(path string) (*PolicyFile, error) {
	f := &PolicyFile{readFile[*access.Policy]{path: path, read: ReadPolicy, changes: changedRules}}
	_, err := f.Reload()
	return f, err
}

// Policy returns the policy of the last successful read.
func (f *PolicyFile) Policy() *access.Policy { return *f.current.Load() }

// changedRules names the rules and fields with changed roles; "" means no
// change.
func changedRules(before, now *access.Policy) string {
	if names := now.Differences(before); len(names) > 0 {
		return "rules: " + strings.Join(names, ", ")
	}
	return ""
}

// ReadPolicy returns the policy of a YAML file. The file has one key, `rules`,
// which maps rules or fields of Query and Mutation to lists of roles. Errors
// name the file and every unknown entry.
func ReadPolicy(path string) (*access.Policy, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	var file struct {
		Rules map[string][]string `yaml:"rules"`
	}
	if err := decode(text, &file); err != nil {
		return nil, fmt.Errorf("read the policy %s: %w", path, err)
	}
	policy, err := access.NewPolicy(file.Rules)
	if err != nil {
		return nil, fmt.Errorf("the policy %s: %w", path, err)
	}
	return policy, nil
}

// errDocuments refuses files whose second document would not be read.
var errDocuments = errors.New("has more than one YAML document")

// decode decodes the one YAML document of a file and refuses unknown keys. An
// empty file leaves into unchanged.
func decode(text []byte, into any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
	err := decoder.Decode(into)
	if err == nil && !errors.Is(decoder.Decode(new(any)), io.EOF) {
		return errDocuments
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
