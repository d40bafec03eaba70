package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// The times and sizes of a connection. A client that is slow to say what it
// wants, or to take the answer, holds a connection no longer than this.
const (
	headerTime  = 5 * time.Second
	readTime    = 15 * time.Second
	writeTime   = 60 * time.Second
	idleTime    = 60 * time.Second
	headerBytes = 32 << 10
)

// ServeOptions say how a handler is served.
type ServeOptions struct {
	// GracePeriod is how long requests that are being answered may go on once the
	// server is to stop; 0 is 10 s.
	GracePeriod time.Duration
	// CertFile and KeyFile are a certificate chain and its key in PEM; both empty
	// is plain HTTP. They are read anew when the files change, at most once a
	// minute.
	CertFile, KeyFile string
	// Log gets what goes wrong with connections; nil is slog.Default().
	Log *slog.Logger
}

// Serve serves the handler on the listener until the context ends. Then it takes
// no more connections and lets the requests that are being answered end; those
// that take longer than the grace period are cut off, and that is an error.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, options ServeOptions) error {
	if options.GracePeriod == 0 {
		options.GracePeriod = 10 * time.Second
	}
	if options.Log == nil {
		options.Log = slog.Default()
	}
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerBytes,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(options.Log.Handler(), slog.LevelDebug),
	}
	if options.CertFile != "" || options.KeyFile != "" {
		pair := &keyPair{certFile: options.CertFile, keyFile: options.KeyFile, log: options.Log}
		if _, err := pair.certificate(nil); err != nil {
			return errors.Join(err, listener.Close())
		}
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.certificate}
	}
	served := make(chan error, 1)
	go func() {
		if server.TLSConfig != nil {
			served <- server.ServeTLS(listener, "", "")
		} else {
			served <- server.Serve(listener)
		}
	}()
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), options.GracePeriod)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		cut()
		return errors.Join(fmt.Errorf("requests were still being answered after %v and were cut off: %w", options.GracePeriod, err), server.Close())
	}
	return nil
}
