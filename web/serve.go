package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// headerBytes bounds the headers of a request.
const headerBytes = 32 << 10

// ServeOptions configure Serve.
type ServeOptions struct {
	// GracePeriod is how long requests in progress may continue once the server
	// begins to stop; 0 is 10 s.
	GracePeriod time.Duration
	// HeaderTime is how long a client may take to send the headers of a request; 0
	// is 5 s.
	HeaderTime time.Duration
	// ReadTime is how long a client may take to send the whole request; 0 is 15
	// s.
	ReadTime time.Duration
	// WriteTime is how long the answer may take from the end of the headers
	// until the client has it; 0 is 60 s.
	WriteTime time.Duration
	// IdleTime is how long a connection is kept without a request; 0 is 60 s.
	IdleTime time.Duration
	// Certificate is the server's certificate; nil means plain HTTP.
	Certificate *Certificate
	// AllowedOrigins are the origins whose pages may send requests. A server on a
	// loopback address answers only requests to their hosts, to localhost and to
	// loopback addresses; it answers others with 421.
	AllowedOrigins []string
	// Log gets errors of connections; nil is slog.Default().
	Log *slog.Logger
}

// Serve serves the handler on the listener until the context ends. Then it
// accepts no more connections and waits for the requests in progress. After the
// grace period it cuts off the remaining requests and returns an error.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, options ServeOptions) error {
	if options.Log == nil {
		options.Log = slog.Default()
	}
	grace := cmp.Or(options.GracePeriod, 10*time.Second)
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	open := &openStreams{stopping: ctx.Done()}
	requests = context.WithValue(requests, openStreamsKey{}, open)
	server := &http.Server{
		Handler:           named(handler, listener.Addr(), options.AllowedOrigins),
		ReadHeaderTimeout: cmp.Or(options.HeaderTime, 5*time.Second),
		ReadTimeout:       cmp.Or(options.ReadTime, 15*time.Second),
		WriteTimeout:      cmp.Or(options.WriteTime, 60*time.Second),
		IdleTimeout:       cmp.Or(options.IdleTime, 60*time.Second),
		MaxHeaderBytes:    headerBytes,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(options.Log.Handler(), slog.LevelDebug),
	}
	if options.Certificate != nil {
		server.TLSConfig = options.Certificate.config(options.Log)
	}
	listener = bounded{listener}
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
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(draining); err != nil {
		cut()
		return errors.Join(fmt.Errorf("requests were still being answered after %v and were cut off: %w", grace, err),
			server.Close())
	}
	return open.wait(draining)
}

// sendBytes bounds the answer data that the system buffers for a client that
// does not read. The default of the system is megabytes for each connection.
const sendBytes = 256 << 10

// bounded is a listener whose connections buffer at most sendBytes.
type bounded struct{ net.Listener }

// Accept returns the next connection.
func (l bounded) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBytes) // the system keeps its default otherwise
	}
	return connection, err
}
