package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"golang.org/x/term"

	"github.com/cadastre-dev/cadastre/internal/wholefile"
)

// savedContext is a server, and how to get a token for it.
type savedContext struct {
	Server string `yaml:"server"`
	Token  string `yaml:"token,omitempty"`
	Cloud  string `yaml:"cloud,omitempty"` // of clouds.yaml, instead of a token
	CACert string `yaml:"caCert,omitempty"`
}

// contexts are the saved servers of a user.
type contexts struct {
	Current  string                  `yaml:"current,omitempty"`
	Contexts map[string]savedContext `yaml:"contexts,omitempty"`
}

// contextsFile returns the path of the contexts file: CADASTRE_CONFIG, or a
// file in the user's configuration folder.
func contextsFile() (string, error) {
	if path := os.Getenv("CADASTRE_CONFIG"); path != "" {
		return path, nil
	}
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "cadastre", "contexts.yaml"), nil
}

// loadContexts returns the contexts of the user. There are none without the
// file or without a home folder.
func loadContexts() (contexts, error) {
	var saved contexts
	path, err := contextsFile()
	if err != nil { // such as a service without a home
		return saved, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return saved, nil
	}
	if err != nil {
		return saved, err
	}
	if err := yaml.UnmarshalWithOptions(text, &saved, yaml.Strict()); err != nil {
		// The error omits the lines of the file, because they hold tokens.
		return saved, fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, false))
	}
	return saved, nil
}

// save writes the contexts with access for the owner only. It replaces the
// whole file.
func (c contexts) save() error {
	path, err := contextsFile()
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return wholefile.Replace(path, text, 0o600)
}

// named returns the context with this name. For an empty name it returns the
// current context, or an empty one if there is none.
func (c contexts) named(name string) (savedContext, error) {
	if name == "" {
		return c.Contexts[c.Current], nil
	}
	of, ok := c.Contexts[name]
	if !ok {
		return of, usagef("--context: the context %q does not exist; `cadastre login %s` creates it", name, name)
	}
	return of, nil
}

// rows returns the contexts with these names, or all, sorted by name and
// without their secrets.
func (c contexts) rows(names ...string) []any {
	rows := []any{}
	for _, name := range slices.Sorted(maps.Keys(c.Contexts)) {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		credentials := "token"
		if cloud := c.Contexts[name].Cloud; cloud != "" {
			credentials = "cloud " + cloud
		}
		rows = append(rows, map[string]any{"name": name, "server": c.Contexts[name].Server, "credentials": credentials,
			"current": name == c.Current})
	}
	return rows
}

// manageContexts lists contexts, selects one, or deletes some. An unknown name
// is an error.
func manageContexts(c *call) error {
	all, err := loadContexts()
	if err != nil {
		return err
	}
	names := c.given["name"]
	for _, name := range names {
		if _, ok := all.Contexts[name]; !ok {
			return missing("context", name)
		}
	}
	if c.verb.name == "use" {
		all.Current = names[0]
	}
	rows := all.rows(names...)
	if c.verb.name == "delete" {
		for _, name := range names {
			delete(all.Contexts, name)
		}
		if slices.Contains(names, all.Current) {
			all.Current = ""
		}
	}
	if c.verb.name != "list" {
		if err := all.save(); err != nil {
			return err
		}
	}
	return c.list(c.columns(), rows)
}

// login asks the server who the viewer is, and saves the server as a context,
// with the token or with the cloud that issues it.
func login(c *call) error {
	name, cloud := c.text("name"), c.text("os-cloud")
	if context := c.text("context"); context != "" {
		return usagef("--context selects an existing context; to create one, write cadastre login %s", context)
	}
	where := c.server
	where.token, where.caCert, where.credentials = c.text("token"), c.text("ca-cert"), nil
	saved := savedContext{Server: where.address, CACert: where.caCert}
	switch {
	case where.token != "":
	case cloud != "":
		where.credentials, saved.Cloud = cloudToken(cloud), cloud
	default:
		token, err := c.askToken()
		if err != nil {
			return err
		}
		where.token = token
	}
	saved.Token = where.token
	c.server, c.api = where, &asking{run: c}
	viewer, err := c.query("ReadViewer", map[string]any{})
	if err != nil {
		return err
	}
	all, err := loadContexts()
	if err != nil {
		return err
	}
	if all.Contexts == nil {
		all.Contexts = map[string]savedContext{}
	}
	all.Contexts[name], all.Current = saved, name
	if err := all.save(); err != nil {
		return err
	}
	c.notef("logged in at %s; the context is %s\n", where.address, name)
	return c.one(c.columns(), viewer)
}

// askToken reads a token from standard input, on a terminal without echo.
func (c *call) askToken() (string, error) {
	text := ""
	if file, ok := c.program.Stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		c.notef("Token: ")
		shown, err := term.GetState(int(file.Fd()))
		if err != nil {
			return "", err
		}
		typed, err := orInterrupt(c.ctx, func() ([]byte, error) { return term.ReadPassword(int(file.Fd())) })
		c.notef("\n")
		if err != nil {
			return "", errors.Join(err, term.Restore(int(file.Fd()), shown))
		}
		text = string(typed)
	} else {
		text, _ = bufio.NewReader(c.input()).ReadString('\n')
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", usagef("no token was given: use --token or --os-cloud, or write it to the standard input")
	}
	return text, nil
}
