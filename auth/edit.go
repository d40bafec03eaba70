package auth

import (
	"crypto/rand"
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
