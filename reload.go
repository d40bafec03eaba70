package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/cadastre-dev/cadastre/cli"
)

// reloadable is a file that a setting names and that can be read again while the
// server runs.
type reloadable struct {
	flag, path string
	// reload returns what changed, in words; nothing is empty. Its error is about
	// a file that cannot be read, whose former content stays in use.
	reload func() (changed string, err error)
}

// reloadables returns the files of a server, in the order of the settings.
func (c *configuration) reloadables(options cli.ServeOptions) []reloadable {
	var files []reloadable
	if c.tokens != nil {
		files = append(files, reloadable{options.Named("tokens"), options.Tokens, c.tokens.Reload})
	}
	if c.policy != nil {
		files = append(files, reloadable{options.Named("policy"), options.Policy, c.policy.Reload})
	}
	if c.web.Trusted != nil {
		files = append(files, reloadable{options.Named("trusted-documents"), options.TrustedDocuments, c.web.Trusted.Reload})
	}
	if c.certificate != nil {
		files = append(files, reloadable{options.Named("tls-cert"), options.TLSCert, c.certificate.Reload})
	}
	return files
}

// hangups returns a channel of the SIGHUPs that the process gets. From then on
// none of them ends it, not even while the server starts or stops: nobody takes
// the channel back.
func hangups() <-chan os.Signal {
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGHUP)
	return received
}

// reloadOn reads the files again at each signal, until the context ends.
func reloadOn(ctx context.Context, received <-chan os.Signal, files []reloadable, log *slog.Logger) {
	for {
		select {
		case <-received:
			reloadAll(files, log)
		case <-ctx.Done():
			return
		}
	}
}

// reloadAll reads the files again, each by itself, and logs what changed.
func reloadAll(files []reloadable, log *slog.Logger) {
	if len(files) == 0 {
		log.Info("nothing to reload: no setting names a file")
	}
	for _, file := range files {
		changed, err := file.read()
		switch {
		case err != nil:
			log.Error("a file could not be reloaded; its former content stays in use", "flag", file.flag, "file", file.path, "error", err)
		case changed == "":
			log.Info("reloaded, nothing changed", "flag", file.flag, "file", file.path)
		default:
			log.Info("reloaded", "flag", file.flag, "file", file.path, "changed", changed)
		}
	}
}

// read is reload, where a panic is an error: no content of a file ends the
// process.
func (f reloadable) read() (changed string, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("reading it failed: %v", panicked)
		}
	}()
	return f.reload()
}
