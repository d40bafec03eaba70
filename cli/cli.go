// Package cli is the command line: its grammar, and the commands that are
// clients of a server. The program passes in the functions that run a server or
// work on its database.
//
// commands.txt has all commands. Most commands have no code: parameters.go
// makes their flags from an operation of the package client and the
// descriptions of the schema, and call.go sends the operation and shows the
// columns of the noun. For the other commands, commands.go lists functions.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
)

// Program describes the program to the command line.
type Program struct {
	Version string
	// Commit is the commit of the build; empty if it is unknown.
	Commit string
	SDL    string
	// Stdin is the standard input; nil is empty.
	Stdin io.Reader
	// Serve runs a server until the context ends.
	Serve func(ctx context.Context, options ServeOptions) error
	// Check returns the options in effect of a server, without starting it, and
	// all problems with them; nil checks nothing.
	Check func(options ServeOptions) (ServeOptions, error)
	// Dump writes a database and returns a summary.
	Dump func(ctx context.Context, database string, to io.Writer) (string, error)
	// Restore loads a dump and returns a summary.
	Restore func(ctx context.Context, database string, from io.Reader) (string, error)
	// Migrations returns the migrations of the program as rows with version, name
	// and applied. With apply it applies the missing ones first.
	Migrations func(ctx context.Context, database string, apply bool) ([]map[string]any, error)
	// Doctor reports rows of a database that break an invariant. It returns a
	// summary and the severity of the worst finding, 0 without findings.
	Doctor func(ctx context.Context, database string,
		report func(finding map[string]any) error) (checked string, worst int, err error)
}

// inWords returns the version and the commit.
func (p Program) inWords() string {
	return fmt.Sprintf("cadastre %s (commit %s)", p.Version, cmp.Or(p.Commit, "unknown"))
}

// input returns the standard input. Reads fail once the context ends.
func (c *call) input() io.Reader { return interruptible{c.ctx, c.program.Stdin} }

// interruptible is a reader whose reads fail when a context ends.
type interruptible struct {
	ctx context.Context
	in  io.Reader
}

// Read reads into a separate buffer, because an interrupted read continues.
func (i interruptible) Read(p []byte) (int, error) {
	read, err := orInterrupt(i.ctx, func() ([]byte, error) {
		buffer := make([]byte, len(p))
		n, err := i.in.Read(buffer)
		return buffer[:n], err
	})
	return copy(p, read), err
}

// orInterrupt returns the result of a blocking call, or the error of a context
// that ends first.
func orInterrupt[V any](ctx context.Context, call func() (V, error)) (value V, err error) {
	done := make(chan struct{})
	var result V
	var failed error
	go func() {
		defer close(done)
		result, failed = call()
	}()
	select {
	case <-ctx.Done():
		return value, context.Cause(ctx)
	case <-done:
		return result, failed
	}
}

// Run runs the command that the arguments name. The caller must print the
// returned error and exit with its ExitStatus.
func Run(ctx context.Context, program Program, args []string, stdout, stderr io.Writer) error {
	program.Stdin = cmp.Or[io.Reader](program.Stdin, strings.NewReader(""))
	run := &call{ctx: ctx, program: program, stdout: stdout, stderr: stderr}
	if len(args) > 0 && args[0] == completing {
		return run.complete(args[1:])
	}
	l := parse(args)
	l.fillIn()
	run.line = l
	switch isUnknown := l.of == nil && l.wrong != nil; {
	case l.asks == "version":
		return run.printf("%s\n", program.inWords())
	case l.asks == "help" && !isUnknown:
		return run.printHelp(l)
	case l.serve != nil:
		return run.serve()
	}
	if err := l.finish(); err != nil {
		return usagef("%w; see `cadastre --help`", err)
	}
	return run.execute()
}
