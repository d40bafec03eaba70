package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/cadastre-dev/cadastre/access"
)

// Token is a static token and whom it belongs to.
type Token struct {
	// SHA256 is the hash of the token; the token itself is not kept.
	SHA256 [sha256.Size]byte
	Viewer access.Viewer
}

// NewToken makes a token from its text.
func NewToken(text string, viewer access.Viewer) Token {
	return Token{SHA256: sha256.Sum256([]byte(text)), Viewer: viewer}
}

// Tokens is a source that knows these tokens. Hashes are compared in constant
// time, and all of them every time, so that timing tells nothing.
func Tokens(tokens []Token) Source {
	tokens = slices.Clone(tokens)
	return func(_ context.Context, text string) (access.Viewer, error) {
		given := sha256.Sum256([]byte(text))
		found := -1
		for i := range tokens {
			if subtle.ConstantTimeCompare(given[:], tokens[i].SHA256[:]) == 1 {
				found = i
			}
		}
		if found < 0 {
			return access.Viewer{}, errUnknown()
		}
		return tokens[found].Viewer, nil
	}
}

// tokenEntry is an entry of a token file.
type tokenEntry struct {
	Token       string   `yaml:"token"`
	TokenSHA256 string   `yaml:"tokenSha256"`
	User        string   `yaml:"user"`
	Project     string   `yaml:"project"`
	Roles       []string `yaml:"roles"`
}

// ReadTokens reads a token file: YAML, a mapping with the one key `tokens`, a list
// of `{token | tokenSha256, user, project, roles}`. tokenSha256 is the SHA-256 of
// the token in hexadecimal, for files that should not hold secrets; roles are
// one or more of admin, member, reader, service. Errors name the file, the entry
// and the field, never a token.
func ReadTokens(path string) ([]Token, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the token file: %w", err)
	}
	var file struct {
		Tokens []tokenEntry `yaml:"tokens"`
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("token file %s: %s", path, withoutSource(err))
	}
	if len(file.Tokens) == 0 {
		return nil, fmt.Errorf("token file %s: tokens: the list is missing or empty", path)
	}
	tokens := make([]Token, len(file.Tokens))
	seen := map[[sha256.Size]byte]int{}
	for i, entry := range file.Tokens {
		token, field, err := entry.read()
		if err != nil {
			return nil, fmt.Errorf("token file %s: tokens[%d].%s: %w", path, i, field, err)
		}
		if first, twice := seen[token.SHA256]; twice {
			return nil, fmt.Errorf("token file %s: tokens[%d]: the same token as tokens[%d]", path, i, first)
		}
		seen[token.SHA256] = i
		tokens[i] = token
	}
	return tokens, nil
}

// withoutSource is a YAML error without the lines it is about, which may hold a
// token.
func withoutSource(err error) string {
	var syntax yaml.Error
	if !errors.As(err, &syntax) {
		return "not a mapping with the one key `tokens`"
	}
	if position := syntax.GetToken(); position != nil && position.Position != nil {
		return fmt.Sprintf("line %d, column %d: %s", position.Position.Line, position.Position.Column, firstLine(syntax.GetMessage()))
	}
	return firstLine(syntax.GetMessage())
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// read gives the token of an entry, or the field that is wrong.
func (e tokenEntry) read() (token Token, field string, err error) {
	switch {
	case e.Token == "" && e.TokenSHA256 == "":
		return token, "token", errors.New("missing: give token or tokenSha256")
	case e.Token != "" && e.TokenSHA256 != "":
		return token, "tokenSha256", errors.New("give either token or tokenSha256, not both")
	case e.Token != "" && (strings.TrimSpace(e.Token) != e.Token || len(e.Token) > maxTokenBytes):
		return token, "token", fmt.Errorf("a token has no space around it and at most %d bytes", maxTokenBytes)
	case e.User == "":
		return token, "user", errors.New("missing")
	case e.Project == "":
		return token, "project", errors.New("missing")
	case len(e.Roles) == 0:
		return token, "roles", errors.New("missing: give one or more of admin, member, reader, service")
	}
	if err := checkID(e.User); err != nil {
		return token, "user", err
	}
	if err := checkID(e.Project); err != nil {
		return token, "project", err
	}
	for i, role := range e.Roles {
		if !slices.Contains([]string{access.RoleAdmin, access.RoleMember, access.RoleReader, access.RoleService}, role) {
			return token, fmt.Sprintf("roles[%d]", i), fmt.Errorf("%q is none of admin, member, reader, service", role)
		}
	}
	token = NewToken(e.Token, access.Viewer{UserID: e.User, ProjectID: e.Project, Roles: e.Roles})
	if e.TokenSHA256 != "" {
		hash, err := hex.DecodeString(e.TokenSHA256)
		if err != nil || len(hash) != sha256.Size {
			return token, "tokenSha256", errors.New("not the 64 hexadecimal digits of a SHA-256")
		}
		token.SHA256 = [sha256.Size]byte(hash)
	}
	return token, "", nil
}
