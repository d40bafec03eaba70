// Cadastre is one GraphQL API server for the four registers of a cloud: metadata
// definitions, resources with their metadata, capabilities, and placement.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/resource"
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

// run is the program: it does what the arguments say until it is done or the
// context ends.
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

// version is that of the module, or of the revision that was built.
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
	authenticate, err := authentication(options)
	if err != nil {
		return err
	}
	listener, err := listen(options)
	if err != nil {
		return err
	}
	defer listener.Close()
	s, err := store.Open(ctx, storeOptions(options, log))
	if err != nil {
		return err
	}
	err = serveStore(ctx, s, listener, authenticate, options, log, stdout)
	return errors.Join(err, s.Close())
}

// storeOptions opens the demo's discovery of capabilities to everyone.
func storeOptions(options cli.ServeOptions, log *slog.Logger) store.Options {
	settings := store.Options{
		URL: options.Database, Log: log, RequestID: graph.RequestID,
		AuditRetention:              options.AuditRetention,
		CapabilityDiscovery:         resource.CapabilityDiscovery(options.CapabilityDiscovery),
		CapabilityDefaultVisibility: access.Visibility(strings.ToUpper(options.CapabilityDefaultVisibility)),
		CapabilityRegistration:      resource.CapabilityRegistration(options.CapabilityRegistration),
		ProtectedMetadataKeys:       options.ProtectedMetadataKeys,
		ResourceLimits: &resource.Limits{
			MetadataItems: options.MaxMetadataItems,
			Writes:        resource.WriteRate{PerMinute: options.WriteRate, Burst: options.WriteBurst},
		},
		Definitions: store.DefinitionOptions{
			OwnerWrites: options.NamespaceOwnerWrites, NamespacesPerProject: options.NamespacesPerProject,
			PropertiesPerNamespace: options.PropertiesPerNamespace, DefinitionSize: options.DefinitionBytes,
		},
	}
	if options.Demo {
		settings.CapabilityDiscovery = resource.DiscoveryEveryone
	}
	return settings
}

func serveStore(ctx context.Context, s *store.Store, listener net.Listener, authenticate authenticate, options cli.ServeOptions, log *slog.Logger, stdout io.Writer) error {
	settings, err := webOptions(options, listener)
	if err != nil {
		return err
	}
	settings.Metrics = metricsOf(s)
	settings.Executor = graph.NewExecutor(&graph.Resolver{Store: s}, log)
	settings.Authenticate, settings.Ready, settings.Log = authenticate, s.Ready, log
	if options.Demo {
		if err := demo.Fill(ctx, s); err != nil {
			return fmt.Errorf("fill the demo cloud: %w", err)
		}
		settings.DemoToken = demo.AdminToken
		demo.Greet(stdout, "http://"+listener.Addr().String())
	}
	stopMetrics, err := serveMetrics(ctx, options.MetricsListen, settings.Metrics, log)
	if err != nil {
		return err
	}
	log.Info("serving", "address", listener.Addr().String(), "database", databaseKind(options.Database))
	err = web.Serve(ctx, listener, web.New(settings), web.ServeOptions{CertFile: options.TLSCert, KeyFile: options.TLSKey, Log: log})
	return errors.Join(err, stopMetrics())
}

// serveMetrics serves the measurements on an address of their own, if there is
// one, until it is told to stop.
func serveMetrics(ctx context.Context, address string, metrics *prometheus.Registry, log *slog.Logger) (stop func() error, err error) {
	if address == "" {
		return func() error { return nil }, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics-listen: %w", err)
	}
	log.Info("measuring", "address", listener.Addr().String())
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the last requests are measured, too
	served := make(chan error, 1)
	go func() { served <- web.Serve(ctx, listener, web.NewMetrics(metrics), web.ServeOptions{Log: log}) }()
	return func() error {
		cancel()
		return <-served
	}, nil
}

// metricsOf is what the store tells of itself on /metrics.
func metricsOf(s *store.Store) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "cadastre_placement_world_age_seconds",
		Help: "Time since the placement world in memory was last known to be complete.",
	}, func() float64 { return s.WorldAge().Seconds() }))
	return registry
}

// webOptions are what the flags say of HTTP. Outside loopback a server is locked
// unless it is told otherwise.
func webOptions(options cli.ServeOptions, listener net.Listener) (web.Options, error) {
	settings := web.Options{
		Version: version(), Profile: web.Profile(options.Profile), Limits: web.Limits(options.Limits),
		AllowedOrigins: options.AllowedOrigins, TrustedOnly: options.TrustedOnly,
		MetricsElsewhere: options.MetricsListen != "",
	}
	if settings.Profile == "" {
		settings.Profile = web.Locked
		if isLoopback(listener.Addr()) {
			settings.Profile = web.Open
		}
	}
	for _, origin := range options.AllowedOrigins {
		if err := web.CheckOrigin(origin); err != nil {
			return settings, fmt.Errorf("--allowed-origins: %w", err)
		}
	}
	for _, network := range options.TrustedProxy {
		prefix, err := netip.ParsePrefix(network)
		if err != nil {
			return settings, fmt.Errorf("--trusted-proxy: %q is no network: write it as 10.0.0.0/8", network)
		}
		settings.TrustedProxies = append(settings.TrustedProxies, prefix.Masked())
	}
	if (options.TLSCert == "") != (options.TLSKey == "") {
		return settings, errors.New("--tls-cert and --tls-key go together")
	}
	if options.TrustedDocuments == "" {
		if options.TrustedOnly {
			return settings, errors.New("--trusted-only needs --trusted-documents")
		}
		return settings, nil
	}
	var err error
	settings.Trusted, err = web.ReadTrustedDocuments(options.TrustedDocuments)
	return settings, err
}

// authenticate gives the viewer behind the headers of a request.
type authenticate func(ctx context.Context, header http.Header) (access.Viewer, error)

// authentication knows the tokens of the file, in a demo those of the demo, and
// those of the identity services that are named, and puts every viewer under the
// operator's policy.
func authentication(options cli.ServeOptions) (authenticate, error) {
	sources, err := sources(options)
	if err != nil {
		return nil, err
	}
	if len(sources) == 0 {
		return nil, errors.New("nobody could use this server: name a file of tokens with --tokens, an issuer with --oidc-issuer or an identity service with --keystone-url, or try a demo cloud with --demo")
	}
	var policy *access.Policy
	if options.Policy != "" {
		if policy, err = auth.ReadPolicy(options.Policy); err != nil {
			return nil, err
		}
	}
	authenticator := auth.New(sources...)
	return func(ctx context.Context, header http.Header) (access.Viewer, error) {
		viewer, err := authenticator.Authenticate(ctx, header)
		return viewer.Under(policy), err
	}, nil
}

// sources are those that know tokens, the nearest first.
func sources(options cli.ServeOptions) ([]auth.Source, error) {
	var sources []auth.Source
	var tokens []auth.Token
	if options.Demo {
		for token, viewer := range demo.Viewers() {
			tokens = append(tokens, auth.NewToken(token, viewer))
		}
	}
	if options.Tokens != "" {
		read, err := auth.ReadTokens(options.Tokens)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, read...)
	}
	if len(tokens) > 0 {
		sources = append(sources, auth.Tokens(tokens))
	}
	if o := options.OIDC; o.Issuer != "" {
		source, err := auth.OIDC(auth.OIDCOptions{
			Issuer: o.Issuer, Audience: o.Audience, Algorithms: o.Algorithms,
			UserClaim: o.UserClaim, ProjectClaim: o.ProjectClaim, RolesClaim: o.RolesClaim, Roles: o.Roles,
		})
		if err != nil {
			return nil, fmt.Errorf("--oidc-issuer: %w", err)
		}
		sources = append(sources, source)
	}
	if k := options.Keystone; k.URL != "" {
		source, err := auth.Keystone(auth.KeystoneOptions{
			URL: k.URL, UserName: k.User, UserDomain: k.UserDomain, Password: k.Password, Project: k.Project, ProjectDomain: k.ProjectDomain,
			ApplicationCredentialID: k.CredentialID, ApplicationCredentialSecret: k.CredentialSecret, Roles: k.Roles, CacheTTL: k.CacheTTL,
		})
		if err != nil {
			return nil, fmt.Errorf("--keystone-url: %w", err)
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// listen opens the address. A demo's tokens are known to everyone, so it listens
// on loopback only.
func listen(options cli.ServeOptions) (net.Listener, error) {
	listener, err := net.Listen("tcp", options.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", options.Listen, err)
	}
	if options.Demo && !isLoopback(listener.Addr()) {
		_ = listener.Close()
		return nil, fmt.Errorf("a demo, whose tokens everyone knows, listens on a loopback address only, not on %s", options.Listen)
	}
	return listener, nil
}

func isLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

func newLog(format string, to io.Writer) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(to, nil))
	}
	return slog.New(slog.NewTextHandler(to, nil))
}

// databaseKind is the part of a database URL that holds no secret.
func databaseKind(url string) string {
	kind, _, _ := strings.Cut(url, "://")
	return kind
}
