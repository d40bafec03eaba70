package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/cadastre-dev/cadastre/cli"
)

// reloadable is a file of a setting that the server can reload while it runs.
type reloadable struct {
	flag, path string
	// reload reads the file and describes the changes in words; empty means no
	// change. On an error the previous content stays in use.
	reload func() (changed string, err error)
}

// reloadables returns the files of a server in the order of the settings.
func (c *configuration) reloadables(options cli.ServeOptions) []reloadable {
	var files []reloadable
	if c.tokens != nil {
		files = append(files, reloadable{options.Named("tokens"), options.Tokens, c.tokens.Reload})
	}
	if c.policy != nil {
		files = append(files, reloadable{options.Named("policy"), options.Policy, c.policy.Reload})
	}
	if c.web.Trusted != nil {
		files = append(files,
			reloadable{options.Named("trusted-documents"), options.TrustedDocuments, c.web.Trusted.Reload})
	}
	if c.certificate != nil {
		files = append(files, reloadable{options.Named("tls-cert"), options.TLSCert, c.certificate.Reload})
	}
	return files
}

// hangups returns a channel of the SIGHUPs that the process gets. From then on
// no SIGHUP ends the process, even while the server starts or stops, because
// the program never resets the signal.
func hangups() <-chan os.Signal {
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGHUP)
	return received
}

// reloadOn reloads the files at each signal, until the context ends.
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

// reloadAll reloads each file on its own, and logs the changes.
func reloadAll(files []reloadable, log *slog.Logger) {
	if len(files) == 0 {
		log.Info("nothing to reload: no setting names a file")
	}
	for _, file := range files {
		changed, err := file.read()
		switch {
		case err != nil:
			log.Error("cannot reload a file; its previous content stays in use", "flag", file.flag, "file", file.path,
				"error", err)
		case changed == "":
			log.Info("reloaded, nothing changed", "flag", file.flag, "file", file.path)
		default:
			log.Info("reloaded", "flag", file.flag, "file", file.path, "changed", changed)
		}
	}
}

// read calls reload, unless the file is a pipe. It turns a panic into an error,
// so no content of a file ends the process.
func (f reloadable) read() (changed string, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	if info, err := os.Stat(f.path); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		return "", errors.New("is a pipe, which can be read only once") // reading it again would not end
	}
	return f.reload()
}
