package local

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/cadastre-dev/cadastre/bench/measured"
)

// Main runs a program with its arguments. An interrupt by the user ends its
// context. If the program returns an error, Main exits with status 1.
func Main(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Lab is a temporary folder with a server program and, once it is started, a
// PostgreSQL.
type Lab struct {
	Folder  string
	Program string   // of the servers
	Cluster *Cluster // nil without PostgreSQL

	progress io.Writer
}

// NewLab makes a folder that PostgreSQL's user may traverse. Without a program it
// builds the server of this tree. Say writes to progress.
func NewLab(ctx context.Context, name, program string, progress io.Writer) (*Lab, error) {
	folder, err := os.MkdirTemp("", name)
	if err != nil {
		return nil, err
	}
	l := &Lab{Folder: folder, Program: program, progress: progress}
	err = os.Chmod(folder, 0o711)
	if program == "" && err == nil {
		l.Program = filepath.Join(folder, "cadastre")
		err = build(ctx, l.Program, "CGO_ENABLED=0")
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Say writes a line of progress. It ignores errors.
func (l *Lab) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(l.progress, format+"\n", args...)
}

// StartCluster starts a PostgreSQL with settings such as "shared_buffers=512MB".
func (l *Lab) StartCluster(ctx context.Context, settings ...string) (err error) {
	l.Cluster, err = startCluster(ctx, l.Folder, settings...)
	return err
}

// NewDatabase returns the URL of a new database. It creates a PostgreSQL
// database in the cluster. The first server creates a SQLite database.
func (l *Lab) NewDatabase(ctx context.Context, kind, name string) (url string, err error) {
	if kind == measured.SQLite {
		return "sqlite://" + filepath.Join(l.Folder, name+".db"), nil
	}
	return l.Cluster.URL(name), Run(ctx, l.Cluster.URL("postgres"), "CREATE DATABASE "+name)
}

// Close stops the cluster and removes the folder.
func (l *Lab) Close() error {
	var err error
	if l.Cluster != nil {
		err = l.Cluster.Stop()
	}
	return errors.Join(err, os.RemoveAll(l.Folder))
}

// module is the module of the server.
const module = "github.com/cadastre-dev/cadastre"

// build builds the server of this tree in the server's module, with environment
// variables. Releases are built without cgo.
func build(ctx context.Context, path string, variables ...string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return fmt.Errorf("find the server's module: %w", err)
	}
	command := exec.CommandContext(ctx, "go", "build", "-o", path, ".")
	command.Dir, command.Env = strings.TrimSpace(string(root)), append(os.Environ(), variables...)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return nil
}

// Choice selects names with two regular expressions. A nil Only selects all
// names. A nil Skipped skips none.
type Choice struct{ Only, Skipped *regexp.Regexp }

// AddFlags adds the flags of the choice: one with the given name, and -skip.
// Their usage messages mention things.
func (c *Choice) AddFlags(flags *flag.FlagSet, name, things string) {
	add := func(name, verb string, into **regexp.Regexp) {
		flags.Func(name, verb+" "+things+" whose names match a regular `EXPRESSION`", func(text string) (err error) {
			*into, err = regexp.Compile(text)
			return err
		})
	}
	add(name, "choose", &c.Only)
	add("skip", "skip", &c.Skipped)
}

// Has reports whether a name is chosen.
func (c Choice) Has(name string) bool {
	return (c.Only == nil || c.Only.MatchString(name)) && (c.Skipped == nil || !c.Skipped.MatchString(name))
}

// List returns the function of a flag whose value is distinct names from all,
// separated by commas, or the word none.
func List(into *[]string, all []string) func(string) error {
	return func(text string) error {
		if *into = nil; text == "none" {
			return nil
		}
		for name := range strings.SplitSeq(text, ",") {
			if !slices.Contains(all, name) || slices.Contains(*into, name) {
				return fmt.Errorf("want some of %s", strings.Join(all, ", "))
			}
			*into = append(*into, name)
		}
		return nil
	}
}
