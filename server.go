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
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/schema"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/upkeep"
	"github.com/cadastre-dev/cadastre/web"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "cadastre:", err)
		os.Exit(cli.ExitStatus(err))
	}
}

// run runs the command that the arguments name, until it is done or the context
// ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	program := cli.Program{
		Version: version(),
		Commit:  commit(),
		SDL:     schema.SDL(),
		Stdin:   os.Stdin,
		Serve: func(ctx context.Context, options cli.ServeOptions) error {
			return serve(ctx, options, stdout, stderr)
		},
		Check: func(options cli.ServeOptions) (cli.ServeOptions, error) {
			c, err := configureUntil(ctx, options)
			return c.options, err
		},
		Dump: func(ctx context.Context, database string, to io.Writer) (string, error) {
			return inWords(upkeep.Dump(ctx, database, version(), to))
		},
		Restore: func(ctx context.Context, database string, from io.Reader) (string, error) {
			return inWords(upkeep.Restore(ctx, database, from))
		},
		Migrations: func(ctx context.Context, database string, apply bool) ([]map[string]any, error) {
			all, err := upkeep.Migrations(ctx, database, apply)
			return lists.Map(all, func(one sqldb.Migration) map[string]any {
				return map[string]any{"version": one.Version, "name": one.Name, "applied": one.Applied}
			}), err
		},
		Doctor: checkDatabase,
	}
	return cli.Run(ctx, program, args, stdout, stderr)
}

// inWords returns the summary of a dump or a restore.
func inWords(result upkeep.Result, err error) (string, error) {
	return fmt.Sprintf("%d rows, sha256 %s", result.Rows, result.SHA256), err
}

// checkDatabase calls report with each finding about a database. It returns the
// number of checked rows in words, and the worst kind of finding, 0 for none.
func checkDatabase(ctx context.Context, database string,
	report func(map[string]any) error) (checked string, worst int, err error) {
	result, err := upkeep.Check(ctx, database, func(one upkeep.Finding) error {
		return report(map[string]any{"kind": one.Kind.String(), "check": one.Check, "table": one.Table,
			"id": one.ID, "is": one.Is, "mend": one.Mend})
	})
	return fmt.Sprintf("%d rows", result.Rows), int(result.Worst), err
}

// release is the version that `make release` builds; empty in other builds.
var release string

// version returns the version of the release or the module, or the revision of
// the build.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	if revision := commitOf(info.Settings); revision != "" {
		return revision
	}
	return "development"
}

// commit returns the commit of the build, and whether files had changed since.
// It is empty if the program was not built from a repository.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return commitOf(info.Settings)
}

func commitOf(settings []debug.BuildSetting) string {
	revision, changed := "", ""
	for _, setting := range settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			changed = ", changed since"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + changed
}

// serve runs a server until the context ends. It first checks all flags, then
// opens its listeners, and only then opens the database.
func serve(ctx context.Context, options cli.ServeOptions, stdout, stderr io.Writer) error {
	received := hangups()
	log := newLog(options.LogFormat, stderr)
	memory := useMemory(log)
	c, err := configureUntil(ctx, options)
	if err != nil {
		return err
	}
	options = c.options
	reloading, stop := context.WithCancel(ctx)
	defer stop()
	go reloadOn(reloading, received, c.reloadables(options), log)
	returnMemory(reloading, returnEvery)
	listeners, err := listen(c)
	if err != nil {
		return err
	}
	defer listeners.close()
	stopTracing, err := startTracing(ctx, log)
	if err != nil {
		return err
	}
	defer stopTracing()
	s, err := store.Open(ctx, storeOptions(options, memory, log))
	if err != nil {
		return err
	}
	c.web.Executor = graph.NewExecutor(&graph.Resolver{Store: s}, log)
	c.web.Doors = doors(options, s, log)
	c.web.Memory = memory
	c.web.Metrics, c.web.Ready, c.web.Log = metricsOf(s, log), s.Ready, log
	c.web.Cloud = newCloudMetrics(s, log)
	if options.Demo {
		err = startDemo(ctx, s, stdout, "http://"+listeners.api.Addr().String())
	}
	if err == nil {
		stopHistory := recordHistory(s, options.HistoryFlavors)
		err = serveHTTP(ctx, listeners, c)
		stopHistory()
	}
	return errors.Join(err, s.Close())
}

// listeners are the open listeners of a server.
type listeners struct {
	api, metrics, profiles net.Listener // the last two are nil without their flags
}

// listen opens all listeners of a server, or none.
func listen(c *configuration) (*listeners, error) {
	l := &listeners{}
	for _, of := range []struct {
		flag, address string
		into          *net.Listener
	}{
		{"listen", c.options.Listen, &l.api},
		{"metrics-listen", c.options.MetricsListen, &l.metrics},
		{"pprof-listen", c.options.PprofListen, &l.profiles},
	} {
		if of.address == "" {
			continue
		}
		listener, err := net.Listen("tcp", of.address)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("%s %s: %w", c.options.Named(of.flag), of.address, err)
		}
		*of.into = listener
	}
	return l, nil
}

// close closes the listeners. Listeners that served are closed already.
func (l *listeners) close() {
	for _, listener := range []net.Listener{l.api, l.metrics, l.profiles} {
		if listener != nil {
			_ = listener.Close()
		}
	}
}

// startDemo fills the store and prints how to use the demo.
func startDemo(ctx context.Context, s *store.Store, stdout io.Writer, address string) error {
	if err := demo.Fill(ctx, s); err != nil {
		return fmt.Errorf("fill the demo cloud: %w", err)
	}
	_, _ = io.WriteString(stdout, demo.Greeting(address)) // fails if stdout is closed
	return nil
}

// serveHTTP serves the API until the context ends, and also metrics and
// profiles if they have separate addresses. It follows the cloud of --sync.
func serveHTTP(ctx context.Context, listeners *listeners, c *configuration) error {
	log := c.web.Log
	stopMetrics := serveAside(ctx, listeners.metrics, "measuring",
		web.NewMetricsHandler(c.web.Metrics, c.web.Cloud), log)
	stopProfiles := serveAside(ctx, listeners.profiles, "profiling", profiles(), log)
	database, _, _ := strings.Cut(c.options.Database, "://") // the rest holds a secret
	log.Info("serving", "address", listeners.api.Addr().String(), "database", database, "profile", c.options.Profile)
	api := web.New(c.web)
	stopFollowing := c.follower.start(ctx, api, c.web)
	err := web.Serve(ctx, listeners.api, api,
		web.ServeOptions{Certificate: c.certificate, AllowedOrigins: c.web.AllowedOrigins, Log: log})
	return errors.Join(err, stopFollowing(), stopProfiles(), stopMetrics())
}

// serveAside serves a handler on its own listener until the caller calls stop.
// Without a listener it does nothing.
func serveAside(ctx context.Context, listener net.Listener, what string, handler http.Handler, log *slog.Logger) (
	stop func() error,
) {
	if listener == nil {
		return func() error { return nil }
	}
	log.Info(what, "address", listener.Addr().String())
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // so that the last requests are measured, too
	served := make(chan error, 1)
	go func() { served <- web.Serve(ctx, listener, handler, web.ServeOptions{Log: log}) }()
	return func() error {
		cancel()
		return <-served
	}
}

// profiles returns the handler for the profiles of the process, at the paths of
// net/http/pprof, without cmdline, symbol and trace.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	return mux
}

func metricsOf(s *store.Store, log *slog.Logger) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&syncMetrics{store: s, log: log})
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "cadastre_placement_world_age_seconds",
		Help: "Time since the placement world in memory was last known to be complete.",
	}, func() float64 { return s.WorldAge().Seconds() }))
	count := func(name, help string, of func() int64) {
		opts := prometheus.CounterOpts{Name: "cadastre_" + name, Help: help}
		registry.MustRegister(prometheus.NewCounterFunc(opts, func() float64 { return float64(of()) }))
	}
	count("sql_statements_total", "SQL statements sent for requests, excluding transaction control.", s.Statements)
	count("places_chosen_again_total", "Choices of place that were repeated because other claims were faster.",
		s.ChosenAgain)
	for name, pool := range s.Pools() {
		registry.MustRegister(collectors.NewDBStatsCollector(pool, name))
	}
	registry.MustRegister(standbyMetrics(s)...)
	return registry
}
