package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/wholefile"
	"github.com/cadastre-dev/cadastre/problem"
)

// Token is a static token and its viewer.
type Token struct {
	// SHA256 is the hash of the token; the token itself is not stored.
	SHA256 [sha256.Size]byte
	Viewer access.Viewer
	// Expires is the end of the token; the zero time means that it has none.
	Expires time.Time
}

// ID returns the beginning of the hash, which lists show in place of the token.
func (t Token) ID() string { return hex.EncodeToString(t.SHA256[:6]) }

// NewToken returns a token for this string.
func NewToken(text string, viewer access.Viewer) Token {
	return Token{SHA256: sha256.Sum256([]byte(text)), Viewer: viewer}
}

// TokensOf returns a token for each key of a map, with its viewer.
func TokensOf(viewers map[string]access.Viewer) []Token {
	var tokens []Token
	for text, viewer := range viewers {
		tokens = append(tokens, NewToken(text, viewer))
	}
	return tokens
}

// Tokens returns a source for these tokens. It always compares all hashes, each
// in constant time, so that its time does not depend on the token.
func Tokens(tokens []Token) Source {
	tokens = slices.Clone(tokens)
	return func(_ context.Context, text string) (access.Viewer, error) { return find(tokens, text) }
}

func find(tokens []Token, text string) (access.Viewer, error) {
	given := sha256.Sum256([]byte(text))
	found := -1
	for i := range tokens {
		if subtle.ConstantTimeCompare(given[:], tokens[i].SHA256[:]) == 1 {
			found = i
		}
	}
	if found < 0 || !tokens[found].Expires.IsZero() && !time.Now().Before(tokens[found].Expires) {
		return access.Viewer{}, errUnknown()
	}
	return tokens[found].Viewer, nil
}

// tokenEntry is an entry of a token file.
type tokenEntry struct {
	Token       string     `yaml:"token,omitempty"`
	TokenSHA256 string     `yaml:"tokenSha256,omitempty"`
	User        string     `yaml:"user"`
	Project     string     `yaml:"project"`
	Roles       []string   `yaml:"roles,flow"`
	Expires     *time.Time `yaml:"expires,omitempty"`
}

// ReadTokens returns the tokens of a YAML file. The file has one key, `tokens`,
// with a list of `{token | tokenSha256, user, project, roles, expires}`.
// tokenSha256 is the SHA-256 of the token in hexadecimal, for files without
// secrets. roles are one or more of admin, member, reader, service. After
// expires, a time of RFC 3339, the token is unknown; it may be absent. Errors
// name the file, the entry and the field, never a token.
func ReadTokens(path string) ([]Token, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the token file: %w", err)
	}
	return parseTokens(path, text)
}

// parseTokens returns the tokens of a file with this text.
func parseTokens(path string, text []byte) ([]Token, error) {
	var file struct {
		Tokens []tokenEntry `yaml:"tokens"`
	}
	if err := decode(text, &file); err != nil {
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
		if first, ok := seen[token.SHA256]; ok {
			return nil, fmt.Errorf("token file %s: tokens[%d]: duplicate of the token in tokens[%d]", path, i, first)
		}
		seen[token.SHA256] = i
		tokens[i] = token
	}
	return tokens, nil
}

// withoutSource returns the message of a YAML error without the quoted lines,
// which may hold a token.
func withoutSource(err error) string {
	var syntax yaml.Error
	switch {
	case errors.Is(err, errDocuments):
		return err.Error()
	case !errors.As(err, &syntax):
		return "must be a mapping with the single key `tokens`"
	}
	message, _, _ := strings.Cut(strings.TrimSpace(syntax.GetMessage()), "\n")
	if at := syntax.GetToken(); at != nil && at.Position != nil {
		return fmt.Sprintf("line %d, column %d: %s", at.Position.Line, at.Position.Column, message)
	}
	return message
}

// read returns the token of an entry, or the wrong field and the error.
func (e tokenEntry) read() (token Token, field string, err error) {
	token.Viewer = access.Viewer{UserID: e.User, ProjectID: e.Project, Roles: e.Roles}
	if token.SHA256, field, err = e.hash(); err != nil {
		return token, field, err
	}
	for _, id := range []struct{ field, text string }{{"user", e.User}, {"project", e.Project}} {
		if id.text == "" {
			return token, id.field, errors.New("missing")
		}
		if err := checkID(id.text); err != nil {
			return token, id.field, err
		}
	}
	if len(e.Roles) == 0 {
		return token, "roles", errors.New("missing: name one or more of admin, member, reader, service")
	}
	for i, role := range e.Roles {
		if err := checkRole(role); err != nil {
			return token, fmt.Sprintf("roles[%d]", i), err
		}
	}
	if e.Expires != nil {
		if token.Expires = *e.Expires; token.Expires.IsZero() { // the parser of YAML does not know the form
			return token, "expires", errors.New("must be a time such as 2027-01-31T12:00:00Z")
		}
	}
	return token, "", nil
}

// hash returns the hash of an entry's token, or the wrong field and the error.
func (e tokenEntry) hash() (hash [sha256.Size]byte, field string, err error) {
	switch {
	case e.Token == "" && e.TokenSHA256 == "":
		return hash, "token", errors.New("missing: write token or tokenSha256")
	case e.Token != "" && e.TokenSHA256 != "":
		return hash, "tokenSha256", errors.New("is mutually exclusive with token")
	case strings.TrimSpace(e.Token) != e.Token:
		return hash, "token", errors.New("must not begin or end with white space")
	case len(e.Token) > maxTokenBytes:
		return hash, "token", fmt.Errorf("must have at most %d bytes", maxTokenBytes)
	case e.Token != "":
		return sha256.Sum256([]byte(e.Token)), "", nil
	}
	bytes, err := hex.DecodeString(e.TokenSHA256)
	if err != nil || len(bytes) != sha256.Size {
		return hash, "tokenSha256", errors.New("must be a SHA-256 as 64 hexadecimal digits")
	}
	return [sha256.Size]byte(bytes), "", nil
}

// AddToken adds a new random token to a token file and returns it. The file
// holds only its hash. A missing file is created with access for its owner
// only. Comments and other entries stay.
func AddToken(path string, viewer access.Viewer, expires time.Time) (text string, token Token, err error) {
	text = rand.Text()
	token = NewToken(text, viewer)
	token.Expires = expires
	entry := tokenEntry{TokenSHA256: hex.EncodeToString(token.SHA256[:]), User: viewer.UserID,
		Project: viewer.ProjectID, Roles: viewer.Roles}
	if !expires.IsZero() {
		entry.Expires = &expires
	}
	if _, field, err := entry.read(); err != nil {
		return "", token, problem.Invalid(field, "%s", err)
	}
	list, err := yaml.Marshal([]tokenEntry{entry})
	if err != nil {
		return "", token, fmt.Errorf("write a token: %w", err)
	}
	add := func(tokens []Token, entries *ast.SequenceNode) ([]Token, error) {
		file, err := parser.ParseBytes(list, 0)
		if err == nil {
			entries.Merge(file.Docs[0].Body.(*ast.SequenceNode))
			if entries.IsFlowStyle {
				entries.SetIsFlowStyle(true)
			}
		}
		return append(tokens, token), err
	}
	return text, token, alone(path, func(path string) error {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return writeTokens(path, append([]byte("tokens:\n"), list...), []Token{token}, 0o600)
		}
		return editTokens(path, add)
	})
}

// alone changes a token file while no other caller of alone does. It follows
// symbolic links: a link stays a link, and has the lock of its target.
func alone(path string, change func(path string) error) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return wholefile.Alone(path, func() error { return change(path) })
}

// RevokeToken removes a token from a token file. It fails if the file no longer
// has this token with the same viewer and expiry, or has no other token,
// because a server refuses a file without tokens.
func RevokeToken(path string, revoked Token) error {
	revoke := func(tokens []Token, entries *ast.SequenceNode) ([]Token, error) {
		at := slices.IndexFunc(tokens, revoked.equal)
		switch {
		case at < 0:
			return nil, fmt.Errorf("%s has changed meanwhile: it no longer has the token %s", path, revoked.ID())
		case len(tokens) == 1:
			return nil, fmt.Errorf("%s has no other token, and a server refuses an empty file: add a token first", path)
		}
		entries.Values = slices.Delete(entries.Values, at, at+1)
		if len(entries.ValueHeadComments) > at {
			entries.ValueHeadComments = slices.Delete(entries.ValueHeadComments, at, at+1)
		}
		return slices.Delete(tokens, at, at+1), nil
	}
	return alone(path, func(path string) error { return editTokens(path, revoke) })
}

// editTokens edits the entries of a token file. change returns the tokens that
// the new file must have, otherwise editTokens fails and keeps the old file.
func editTokens(path string, change func([]Token, *ast.SequenceNode) ([]Token, error)) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the token file: %w", err)
	}
	tokens, err := parseTokens(path, text)
	if err != nil {
		return err
	}
	file, err := parser.ParseBytes(text, parser.ParseComments)
	if err != nil {
		return fmt.Errorf("token file %s: %s", path, withoutSource(err))
	}
	at, err := yaml.PathString("$.tokens")
	if err != nil {
		return err
	}
	node, err := at.FilterFile(file)
	if err != nil {
		return fmt.Errorf("token file %s: %s", path, withoutSource(err))
	}
	entries, ok := node.(*ast.SequenceNode)
	if !ok {
		return fmt.Errorf("token file %s: tokens: must be a list", path)
	}
	wanted, err := change(slices.Clone(tokens), entries)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read the token file: %w", err)
	}
	return writeTokens(path, []byte(strings.TrimSpace(file.String())+"\n"), wanted, info.Mode().Perm())
}

// equal reports whether all fields of two tokens are equal.
func (t Token) equal(other Token) bool { return t.SHA256 == other.SHA256 && t.isLike(other) }

// writeTokens replaces a token file. If the tokens in the new text are not the
// wanted ones, it fails and keeps the old file.
func writeTokens(path string, text []byte, wanted []Token, mode fs.FileMode) error {
	if got, err := parseTokens(path, text); err != nil || !slices.EqualFunc(got, wanted, Token.equal) {
		return fmt.Errorf("token file %s: its form cannot be written by a program; edit it by hand", path)
	}
	if err := wholefile.Replace(path, text, mode); err != nil {
		return fmt.Errorf("write the token file: %w", err)
	}
	return nil
}
