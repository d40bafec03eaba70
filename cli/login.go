package cli

import (
	"bufio"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/cadastre-dev/cadastre/client"
)

type loginCommand struct {
	common
	Name string `arg:"" optional:"" default:"default" of:"context" help:"The name of the context."`
}

// Run asks the server who the token is of, and keeps both for later commands.
func (c *loginCommand) Run(run *session) error {
	if c.Context != "" {
		return usagef("--context: name the context that is to be made after login: cadastre login %s", c.Context)
	}
	where := server{address: run.server.address, token: c.Token, caCert: c.CACert, timeout: c.Timeout, retries: c.Retries}
	saved := savedContext{Server: where.address, CACert: c.CACert}
	switch {
	case c.Token != "":
	case c.OSCloud != "":
		where.credentials, saved.Cloud = cloudToken(c.OSCloud), c.OSCloud
	default:
		token, err := askToken(run)
		if err != nil {
			return err
		}
		where.token = token
	}
	saved.Token = where.token
	run.server, run.api = where, &asking{run: run}
	answer, err := client.ReadViewer(run.ctx, run.api)
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
	all.Contexts[c.Name], all.Current = saved, c.Name
	if err := all.save(); err != nil {
		return err
	}
	run.notef("logged in at %s; the context is %s\n", where.address, c.Name)
	return one(run, viewerColumns(), answer.Viewer)
}

// askToken reads a token from the standard input: on a terminal without showing
// it.
func askToken(run *session) (string, error) {
	text := ""
	if file, ok := run.program.Stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		run.notef("Token: ")
		typed, err := term.ReadPassword(int(file.Fd()))
		run.notef("\n")
		if err != nil {
			return "", err
		}
		text = string(typed)
	} else if run.program.Stdin != nil {
		text, _ = bufio.NewReader(run.program.Stdin).ReadString('\n')
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", usagef("there is no token: write it to the standard input, or use --token or --os-cloud")
	}
	return text, nil
}

type whoamiCommand struct{ common }

// viewerColumns are the columns of who asks.
func viewerColumns() []column { return columnsOf("userId projectId roles +rules") }

func (c *whoamiCommand) Run(run *session) error {
	answer, err := client.ReadViewer(run.ctx, run.api)
	if err != nil {
		return err
	}
	return one(run, viewerColumns(), answer.Viewer)
}

// local are the flags of commands that show things and ask no server.
type local struct{ output }

// AfterApply prepares the session. The command line calls it.
func (l *local) AfterApply(run *session) error {
	run.setForm(l.output)
	return nil
}

// contextRow is a context without its secret.
type contextRow struct {
	Name        string `json:"name"`
	Server      string `json:"server"`
	Credentials string `json:"credentials"`
	Current     bool   `json:"current"`
}

// rows returns the contexts of some names, by name; all without any.
func (c contexts) rows(names ...string) (rows []contextRow) {
	for _, name := range slices.Sorted(maps.Keys(c.Contexts)) {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		of := c.Contexts[name]
		credentials := "token"
		if of.Cloud != "" {
			credentials = "cloud " + of.Cloud
		}
		rows = append(rows, contextRow{name, of.Server, credentials, name == c.Current})
	}
	return rows
}

func contextColumns() []column { return columnsOf("name server credentials current") }

type contextListCommand struct{ local }

func (c *contextListCommand) Run(run *session) error {
	all, err := loadContexts()
	if err != nil {
		return err
	}
	return list(run, contextColumns(), all.rows())
}

type contextUseCommand struct {
	local
	Name string `arg:"" of:"context" help:"The name of the context."`
}

func (c *contextUseCommand) Run(run *session) error {
	all, err := loadContexts()
	if err != nil {
		return err
	}
	if _, ok := all.Contexts[c.Name]; !ok {
		return missing("context", c.Name)
	}
	all.Current = c.Name
	if err := all.save(); err != nil {
		return err
	}
	return list(run, contextColumns(), all.rows(c.Name))
}

type contextDeleteCommand struct {
	local
	Names []string `arg:"" name:"name" of:"context" help:"The names of contexts."`
}

func (c *contextDeleteCommand) Run(run *session) error {
	all, err := loadContexts()
	if err != nil {
		return err
	}
	for _, name := range c.Names {
		if _, ok := all.Contexts[name]; !ok {
			return missing("context", name)
		}
	}
	deleted := all.rows(c.Names...)
	for _, name := range c.Names {
		delete(all.Contexts, name)
		if all.Current == name {
			all.Current = ""
		}
	}
	if err := all.save(); err != nil {
		return err
	}
	return list(run, contextColumns(), deleted)
}

// setForm sets the form of the answer.
func (s *session) setForm(form output) {
	s.out = form
	if form.Output == "" {
		s.out.Output, s.isDefaultForm = "table", true
	}
}
