package auth_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/problem"
)

// TestTokensAreAddedAndRevoked changes files of random forms at random. A model
// has the viewer of each token; comments stay.
func TestTokensAreAddedAndRevoked(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		path := filepath.Join(t.TempDir(), "tokens.yaml")
		texts, users := []string{}, map[string]string{}
		if round%3 > 0 {
			texts = []string{"first", "second"}
			users["first"], users["second"] = "ada", "rae"
			forms := []string{
				"# all\ntokens:\n# kept 0\n- token: first # kept 1\n  user: ada\n  project: p\n  roles: [admin]\n" +
					"- {token: second, user: rae, project: p, roles: [reader]} # kept 2\n",
				"tokens: # kept 0\n    - user: ada\n      token: \"first\"\n      # kept 1\n      project: 'p'\n      roles:\n" +
					"        - admin\n    - token: second\n      user: rae\n      project: p\n      roles: [reader]\n\n# kept 2\n",
				"tokens: [{token: first, user: ada, project: p, roles: [admin]}, {token: second, user: rae, project: p, " +
					"roles: [reader]}] # kept 0\n",
			}
			if err := os.WriteFile(path, []byte(forms[random.IntN(len(forms))]), 0o640); err != nil {
				t.Fatal(err)
			}
		}
		added := 0
		for range 12 {
			if len(texts) > 0 && random.IntN(2) == 0 {
				texts = revokeOne(t, random, path, texts, users)
				continue
			}
			added++
			user := fmt.Sprint("user", added)
			viewer := access.Viewer{UserID: user, ProjectID: "p", Roles: []string{"reader", "member"}}
			text, _, err := auth.AddToken(path, viewer, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
			users[text] = user
			checkTokens(t, path, texts, users)
		}
	}
}

// revokeOne revokes a random token, except the last one.
func revokeOne(t *testing.T, random *rand.Rand, path string, texts []string, users map[string]string) []string {
	t.Helper()
	one := random.IntN(len(texts))
	tokens, err := auth.ReadTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	token := tokens[slices.IndexFunc(tokens, func(of auth.Token) bool {
		return of.SHA256 == auth.NewToken(texts[one], access.Viewer{}).SHA256
	})]
	err = auth.RevokeToken(path, token)
	if len(texts) == 1 {
		if err == nil || !strings.Contains(err.Error(), "no other token") {
			t.Fatalf("the last token: %v", err)
		}
		return texts
	}
	if err != nil {
		t.Fatal(err)
	}
	delete(users, texts[one])
	texts = slices.Delete(texts, one, one+1)
	checkTokens(t, path, texts, users)
	return texts
}

// checkTokens checks that a file knows these tokens and no other one.
func checkTokens(t *testing.T, path string, texts []string, users map[string]string) {
	t.Helper()
	file, err := auth.OpenTokenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.ReadTokens(path)
	if err != nil || len(tokens) != len(texts) {
		t.Fatalf("%d tokens and %v, want %d", len(tokens), err, len(texts))
	}
	for _, text := range texts {
		if viewer, err := file.Find(context.Background(), text); err != nil || viewer.UserID != users[text] {
			t.Fatalf("%s is %s, %v, want %s", text, viewer.UserID, err, users[text])
		}
	}
}

func TestEditsKeepCommentsModesAndLinks(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path, link := filepath.Join(folder, "real.yaml"), filepath.Join(folder, "link.yaml")
	const before = "# of the cloud\ntokens:\n  # ada's\n  - token: first # hers\n    user: ada\n    project: p\n    roles: [admin]\n# end\n"
	if err := errors.Join(os.WriteFile(path, []byte(before), 0o640), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	_, _, err := auth.AddToken(link, access.Viewer{UserID: "rae", ProjectID: "p", Roles: []string{"reader"}},
		time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, comment := range []string{"# of the cloud", "# ada's", "# hers", "# end", "token: first"} {
		if !strings.Contains(string(after), comment) {
			t.Errorf("%q is lost:\n%s", comment, after)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode became %v, %v", info.Mode(), err)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 2 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// TestConcurrentEditsAreKept adds tokens to one file at the same time, and revokes
// another one.
func TestConcurrentEditsAreKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	viewer := access.Viewer{UserID: "ada", ProjectID: "p", Roles: []string{"reader"}}
	_, old, err := auth.AddToken(path, viewer, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var edits sync.WaitGroup
	edits.Go(func() {
		if err := auth.RevokeToken(path, old); err != nil && !strings.Contains(err.Error(), "no other token") {
			t.Error(err)
		}
	})
	for range 8 {
		edits.Go(func() {
			if _, _, err := auth.AddToken(path, viewer, time.Time{}); err != nil {
				t.Error(err)
			}
		})
	}
	edits.Wait()
	if tokens, err := auth.ReadTokens(path); err != nil || len(tokens) < 8 {
		t.Errorf("%d tokens, %v, want 8 or 9", len(tokens), err)
	}
}

func TestATokenEnds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	viewer := access.Viewer{UserID: "ada", ProjectID: "p", Roles: []string{"admin"}}
	ended, _, errEnded := auth.AddToken(path, viewer, time.Now().Add(-time.Second))
	valid, _, errValid := auth.AddToken(path, viewer, time.Now().Add(time.Hour))
	file, err := auth.OpenTokenFile(path)
	if err := errors.Join(errEnded, errValid, err); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Find(context.Background(), ended); !errors.Is(err, problem.ErrUnauthenticated) {
		t.Errorf("an ended token: %v", err)
	}
	if _, err := file.Find(context.Background(), valid); err != nil {
		t.Error(err)
	}
	_, _, err = auth.AddToken(path, access.Viewer{UserID: "u", ProjectID: "p", Roles: []string{"root"}}, time.Time{})
	if !errors.Is(err, problem.ErrInvalidInput) || !strings.Contains(err.Error(), "roles[0]") {
		t.Errorf("an unknown role: %v", err)
	}
	viewer.UserID = "\t" // the writer of YAML does not quote it
	path += "-new"
	if _, _, err := auth.AddToken(path, viewer, time.Time{}); err == nil {
		_, err = auth.ReadTokens(path)
		t.Errorf("a user that the file cannot have: %v", err)
	}
}
