package cli

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
)

// howToReload is a note about changes of a token file.
const howToReload = "A running server reads the file again after a SIGHUP.\n"

// addToken adds a token to a token file and shows the token, which cannot be
// shown again.
func addToken(c *call) error {
	var expires time.Time
	if days := c.number("days"); days > 0 {
		expires = time.Now().UTC().Truncate(time.Second).AddDate(0, 0, days)
	}
	viewer := access.Viewer{UserID: c.text("user"), ProjectID: c.text("project"), Roles: c.given["role"]}
	text, added, err := auth.AddToken(c.text("tokens"), viewer, expires)
	if errors.Is(err, problem.ErrInvalidInput) {
		return usagef("--%w", err) // the fields user and project are flags
	}
	if err != nil {
		return err
	}
	if err := c.printf("%s\n", text); err != nil {
		return err
	}
	c.notef("Keep the token: the file %s has only its hash, with the id %s. %s",
		c.text("tokens"), added.ID(), howToReload)
	return nil
}

// listTokens shows the id, viewer and expiry of each token of a file.
func listTokens(c *call) error {
	tokens, err := auth.ReadTokens(c.text("tokens"))
	if err != nil {
		return err
	}
	return c.list(c.columns(), lists.Map(tokens, tokenRow))
}

func tokenRow(token auth.Token) any {
	row := map[string]any{"id": token.ID(), "user": token.Viewer.UserID, "project": token.Viewer.ProjectID,
		"roles": lists.Map(token.Viewer.Roles, func(role string) any { return role }), "expires": nil}
	if !token.Expires.IsZero() {
		row["expires"] = token.Expires.Format(time.RFC3339)
	}
	return row
}

// revokeToken removes a token from a token file.
func revokeToken(c *call) error {
	path, id := c.text("tokens"), strings.ToLower(c.argument(true))
	tokens, err := auth.ReadTokens(path)
	if err != nil {
		return err
	}
	others := func(token auth.Token) bool { return !strings.HasPrefix(hex.EncodeToString(token.SHA256[:]), id) }
	found := slices.DeleteFunc(tokens, others)
	switch len(found) {
	case 0:
		return missing("token", id)
	case 1:
	default:
		return usagef("the id %q is the beginning of %s: write more of it", id, counted(len(found), "token"))
	}
	if err := c.confirm("revoke", "Revoke the token %s of %s?", found[0].ID(), found[0].Viewer.UserID); err != nil {
		return err
	}
	if err := auth.RevokeToken(path, found[0]); err != nil {
		return err
	}
	c.notef("The token %s of %s is revoked. %s", found[0].ID(), found[0].Viewer.UserID, howToReload)
	return nil
}
