package auth_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/problem"
)

func TestReadTokensNamesFileEntryAndField(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"no list":    {"tokens: []", "tokens: the list is missing or empty"},
		"empty file": {"", "tokens: the list is missing or empty"},
		"unknown key": {"tokens:\n  - {token: top-secret, user: u, project: p, roles: [admin], rolls: 1}",
			`unknown field "rolls"`},
		"second root":   {"tokens: []\nusers: []", `unknown field "users"`},
		"not a mapping": {"- token: top-secret", "line 1"},
		"broken":        {"tokens: [{token: top-secret", "line 1"},
		"no token":      {"tokens:\n  - {user: u, project: p, roles: [admin]}", "tokens[0].token: missing"},
		"both": {"tokens:\n  - {token: top-secret, tokenSha256: ab, user: u, project: p, roles: [admin]}",
			"tokens[0].tokenSha256: is mutually exclusive"},
		"bad hash": {"tokens:\n  - {tokenSha256: abcd, user: u, project: p, roles: [admin]}",
			"tokens[0].tokenSha256: must be a SHA-256"},
		"space": {"tokens:\n  - {token: \"top-secret \", user: u, project: p, roles: [admin]}",
			"tokens[0].token: must not begin or end with white space"},
		"long token": {"tokens:\n  - {token: " + strings.Repeat("top-secret", 2000) +
			", user: u, project: p, roles: [admin]}", "tokens[0].token: must have at most 16384 bytes"},
		"long user": {"tokens:\n  - {token: top-secret, user: " + strings.Repeat("u", 256) +
			", project: p, roles: [admin]}", "tokens[0].user: "},
		"odd project": {"tokens:\n  - {token: top-secret, user: u, project: \"a\\0b\", roles: [admin]}",
			"tokens[0].project: "},
		"no user":    {"tokens:\n  - {token: top-secret, project: p, roles: [admin]}", "tokens[0].user: missing"},
		"no project": {"tokens:\n  - {token: top-secret, user: u, roles: [admin]}", "tokens[0].project: missing"},
		"no roles":   {"tokens:\n  - {token: top-secret, user: u, project: p}", "tokens[0].roles: missing"},
		"unknown role": {"tokens:\n  - {token: top-secret, user: u, project: p, roles: [reader, root]}",
			`tokens[0].roles[1]: unknown role "root"`},
		"token twice": {"tokens:\n  - {token: top-secret, user: u, project: p, roles: [reader]}\n  - {token: top-secret, user: v, project: p, roles: [reader]}", "tokens[1]: duplicate of the token in tokens[0]"},
		"odd end": {"tokens:\n  - {token: top-secret, user: u, project: p, roles: [reader], expires: 31.12.2026}",
			"tokens[0].expires: must be a time"},
		"empty end": {"tokens:\n  - {token: top-secret, user: u, project: p, roles: [reader], expires: \"\"}",
			"tokens[0].expires: must be a time"},
		"two documents": {"tokens:\n  - {token: top-secret, user: u, project: p, roles: [reader]}\n---\ntokens: []",
			"has more than one YAML document"},
		"roles no list":  {"tokens:\n  - {token: top-secret, user: u, project: p, roles: {a: b}}", "line 2"},
		"tokens no list": {"tokens: 5", "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, test.text)
			_, err := auth.ReadTokens(path)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want the file and %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "top-secret") {
				t.Errorf("the error discloses a token: %v", err)
			}
		})
	}
}

func TestAuthenticateKnowsATokenByEitherHeader(t *testing.T) {
	t.Parallel()
	tokens, err := auth.ReadTokens(write(t, `
tokens:
  - {token: plain, user: ada, project: operations, roles: [admin]}
  - tokenSha256: 1a06df824ed741b53c785079a6347f00eec5af82f9850775409ca69dff4068a6
    user: hal
    project: demo
    roles: [reader]
`))
	if err != nil {
		t.Fatal(err)
	}
	second := auth.NewToken("second", access.Viewer{UserID: "sue", ProjectID: "demo", Roles: []string{"reader"}})
	authenticator := auth.New(auth.Tokens(tokens), auth.Tokens([]auth.Token{second}))
	for name, test := range map[string]struct {
		header http.Header
		user   string
	}{
		"bearer":              {http.Header{"Authorization": {"Bearer plain"}}, "ada"},
		"bearer in lower":     {http.Header{"Authorization": {"bearer plain"}}, "ada"},
		"x-auth-token":        {http.Header{"X-Auth-Token": {"plain"}}, "ada"},
		"by its hash":         {http.Header{"X-Auth-Token": {"hashed"}}, "hal"},
		"second source":       {http.Header{"X-Auth-Token": {"second"}}, "sue"},
		"both the same":       {http.Header{"X-Auth-Token": {"plain"}, "Authorization": {"Bearer plain"}}, "ada"},
		"both different":      {http.Header{"X-Auth-Token": {"hashed"}, "Authorization": {"Bearer plain"}}, ""},
		"two bearers":         {http.Header{"Authorization": {"Bearer plain", "Bearer hashed"}}, ""},
		"basic":               {http.Header{"Authorization": {"Basic plain"}}, ""},
		"basic and a token":   {http.Header{"Authorization": {"Basic plain"}, "X-Auth-Token": {"plain"}}, ""},
		"none":                {http.Header{}, ""},
		"empty":               {http.Header{"X-Auth-Token": {""}}, ""},
		"unknown":             {http.Header{"X-Auth-Token": {"Plain"}}, ""},
		"the hash as a token": {http.Header{"X-Auth-Token": {"1a06df824ed741b53c785079a6347f00eec5af82f9850775409ca69dff4068a6"}}, ""},
		"long":                {http.Header{"X-Auth-Token": {strings.Repeat("x", 1<<20)}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			viewer, err := authenticator.Authenticate(context.Background(), test.header)
			if viewer.UserID != test.user || (err == nil) != (test.user != "") {
				t.Errorf("got %v, %v, want %q", viewer, err, test.user)
			}
			if err != nil && !errors.Is(err, problem.ErrUnauthenticated) {
				t.Errorf("%v is not ErrUnauthenticated", err)
			}
		})
	}
}

func TestAuthenticateIsUnavailableOnlyWhenNoOtherSourceKnows(t *testing.T) {
	t.Parallel()
	down := func(context.Context, string) (access.Viewer, error) {
		return access.Viewer{}, errors.New("connection refused")
	}
	known := auth.Tokens([]auth.Token{auth.NewToken("known", access.Viewer{UserID: "kim"})})
	authenticator := auth.New(down, known)
	viewer, err := authenticator.Authenticate(context.Background(), http.Header{"X-Auth-Token": {"known"}})
	if err != nil || viewer.UserID != "kim" {
		t.Errorf("got %v, %v", viewer, err)
	}
	_, err = authenticator.Authenticate(context.Background(), http.Header{"X-Auth-Token": {"other"}})
	if !errors.Is(err, problem.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	_, err = authenticator.Authenticate(context.Background(), http.Header{"X-Auth-Token": {"from JSON\n of a socket"}})
	if !errors.Is(err, problem.ErrUnauthenticated) {
		t.Errorf("got %v, want ErrUnauthenticated", err)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
