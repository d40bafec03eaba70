// Cadastre is one GraphQL API server for the four registers of a cloud:
// metadata definitions, resources with their metadata, capabilities, and
// placement.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/schema"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/web"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "cadastre:", err)
		os.Exit(1)
	}
}

// run is the program: it runs the command that the arguments name until it is
// done or the context ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	program := cli.Program{
		Version: version(),
		SDL:     schema.SDL(),
		Stdin:   os.Stdin,
		Serve: func(ctx context.Context, options cli.ServeOptions) error {
			return serve(ctx, options, stdout, stderr)
		},
	}
	return cli.Run(ctx, program, args, stdout, stderr)
}

// version returns that of the module, or the revision that was built.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return "development"
}

// serve runs a server until the context ends.
func serve(ctx context.Context, options cli.ServeOptions, stdout, stderr io.Writer) error {
	log := newLog(options.LogFormat, stderr)
	useMemory(log)
	listener, err := net.Listen("tcp", options.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", options.Listen, err)
	}
	defer func() { _ = listener.Close() }() // closed already after serving
	if options, err = decide(options, isLoopback(listener.Addr())); err != nil {
		return err
	}
	settings, err := webOptions(options)
	if err != nil {
		return err
	}
	if settings.Authenticate, err = authentication(options); err != nil {
		return err
	}
	s, err := store.Open(ctx, storeOptions(options, log))
	if err != nil {
		return err
	}
	settings.Executor = graph.NewExecutor(&graph.Resolver{Store: s}, log)
	settings.Metrics, settings.Ready, settings.Log = metricsOf(s), s.Ready, log
	if options.Demo {
		err = startDemo(ctx, s, stdout, "http://"+listener.Addr().String())
	}
	if err == nil {
		err = serveHTTP(ctx, listener, settings, options)
	}
	return errors.Join(err, s.Close())
}

// startDemo fills the store and prints how to use the demo.
func startDemo(ctx context.Context, s *store.Store, stdout io.Writer, address string) error {
	if err := demo.Fill(ctx, s); err != nil {
		return fmt.Errorf("fill the demo cloud: %w", err)
	}
	_, _ = io.WriteString(stdout, demo.Greeting(address)) // nobody may be reading
	return nil
}

// serveHTTP serves the API, and the metrics where they have an address of their
// own, until the context ends.
func serveHTTP(ctx context.Context, listener net.Listener, settings web.Options, options cli.ServeOptions) error {
	stopMetrics, err := serveAside(ctx, aside{flag: "--metrics-listen", address: options.MetricsListen, what: "measuring",
		handler: web.NewMetricsHandler(settings.Metrics)}, settings.Log)
	if err != nil {
		return err
	}
	stopProfiles, err := serveAside(ctx, aside{flag: "--pprof-listen", address: options.PprofListen, what: "profiling",
		handler: profiles(), loopback: true}, settings.Log)
	if err != nil {
		return errors.Join(err, stopMetrics())
	}
	database, _, _ := strings.Cut(options.Database, "://") // the rest holds a secret
	settings.Log.Info("serving", "address", listener.Addr().String(), "database", database)
	err = web.Serve(ctx, listener, web.New(settings), web.ServeOptions{CertFile: options.TLSCert, KeyFile: options.TLSKey, Log: settings.Log})
	return errors.Join(err, stopProfiles(), stopMetrics())
}

// aside is what is served on an address of its own.
type aside struct {
	flag, address string
	what          string // for the log
	handler       http.Handler
	loopback      bool // whether only a loopback address will do
}

// serveAside serves something on an address of its own, if there is one, until
// stop is called.
func serveAside(ctx context.Context, a aside, log *slog.Logger) (stop func() error, err error) {
	if a.address == "" {
		return func() error { return nil }, nil
	}
	listener, err := net.Listen("tcp", a.address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.flag, err)
	}
	if a.loopback && !isLoopback(listener.Addr()) {
		return nil, errors.Join(fmt.Errorf("%s: %s is not a loopback address", a.flag, a.address), listener.Close())
	}
	log.Info(a.what, "address", listener.Addr().String())
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the last requests are measured, too
	served := make(chan error, 1)
	go func() { served <- web.Serve(ctx, listener, a.handler, web.ServeOptions{Log: log}) }()
	return func() error {
		cancel()
		return <-served
	}, nil
}

// profiles returns the handler of the profiles of the process: CPU, heap and
// the others of net/http/pprof.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	return mux
}

// metricsOf returns what the store measures of itself.
func metricsOf(s *store.Store) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "cadastre_placement_world_age_seconds",
		Help: "Time since the placement world in memory was last known to be complete.",
	}, func() float64 { return s.WorldAge().Seconds() }))
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "cadastre_sql_statements_total",
		Help: "SQL statements sent for requests, those excluded that only control transactions.",
	}, func() float64 { return float64(s.Statements()) }))
	return registry
}
