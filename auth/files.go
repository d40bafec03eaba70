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

// TokenFile is the tokens of a file. The file can be reloaded while they are in
// use.
type TokenFile struct {
	path   string
	tokens atomic.Pointer[[]Token]
}

// OpenTokenFile returns the tokens of a file in the format of ReadTokens.
func OpenTokenFile(path string) (*TokenFile, error) {
	f := &TokenFile{path: path}
	_, err := f.Reload()
	return f, err
}

// Find is a Source: it returns the viewer of a token of the file.
func (f *TokenFile) Find(_ context.Context, text string) (access.Viewer, error) {
	return find(*f.tokens.Load(), text)
}

// Reload reads the file again, and describes the changes in words; empty means
// no change. If it fails, the previous tokens stay in use.
func (f *TokenFile) Reload() (changed string, err error) {
	read, err := ReadTokens(f.path)
	if err != nil {
		return "", err
	}
	before := f.tokens.Swap(&read)
	if before == nil {
		return "", nil
	}
	former := make(map[[sha256.Size]byte]Token, len(*before))
	for _, token := range *before {
		former[token.SHA256] = token
	}
	added, other := 0, 0
	for _, token := range read {
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
		return "", nil
	}
	return fmt.Sprintf("tokens: %d added, %d removed, %d with a changed user, project, roles or end", added,
		len(former), other), nil
}

// isLike reports whether two tokens have the same user, rights and end.
func (t Token) isLike(other Token) bool {
	return t.Viewer.Equal(other.Viewer) && t.Expires.Equal(other.Expires)
}

// PolicyFile is the policy of a file. The file can be reloaded while it is in
// use.
type PolicyFile struct {
	path    string
	current atomic.Pointer[access.Policy]
}

// OpenPolicyFile returns the policy of a file in the format of ReadPolicy.
func OpenPolicyFile(path string) (*PolicyFile, error) {
	f := &PolicyFile{path: path}
	_, err := f.Reload()
	return f, err
}

// Policy returns the policy of the last successful read.
func (f *PolicyFile) Policy() *access.Policy { return f.current.Load() }

// Reload reads the file again, and returns in words the rules and fields with
// changed roles; empty means no change. If it fails, the previous policy stays
// in use.
func (f *PolicyFile) Reload() (changed string, err error) {
	read, err := ReadPolicy(f.path)
	if err != nil {
		return "", err
	}
	before := f.current.Swap(read)
	if before == nil {
		return "", nil
	}
	if names := read.Differences(before); len(names) > 0 {
		return "rules: " + strings.Join(names, ", "), nil
	}
	return "", nil
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
	err = yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(&file)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the policy %s: %w", path, err)
	}
	policy, err := access.NewPolicy(file.Rules)
	if err != nil {
		return nil, fmt.Errorf("the policy %s: %w", path, err)
	}
	return policy, nil
}
