package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/rest"
	"github.com/cadastre-dev/cadastre/rest/image"
	"github.com/cadastre-dev/cadastre/rest/placement"
	"github.com/cadastre-dev/cadastre/rest/reservation"
	"github.com/cadastre-dev/cadastre/rest/share"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/web"
)

// configuration is the result of the flags of `serve`. All flags are checked,
// and the files that they name are read. Nothing is created yet.
type configuration struct {
	options     cli.ServeOptions
	loopback    bool // whether the server listens on a loopback address
	web         web.Options
	certificate *web.Certificate // nil is plain HTTP
	tokens      *auth.TokenFile  // nil without --tokens
	policy      *auth.PolicyFile // nil without --policy
	follower    *cloudFollower   // nil without --sync
}

// configureUntil is configure until a context ends. A file that is a pipe is read
// only after another program has opened it.
func configureUntil(ctx context.Context, options cli.ServeOptions) (*configuration, error) {
	var c *configuration
	done := make(chan error, 1)
	go func() {
		var err error
		c, err = configure(options)
		done <- err
	}()
	select {
	case err := <-done:
		return c, err
	case <-ctx.Done():
		return &configuration{options: options}, ctx.Err()
	}
}

// configure checks all flags of `serve` and returns the configuration. Its
// error names all problems.
func configure(options cli.ServeOptions) (*configuration, error) {
	c := &configuration{}
	var errs []error
	check := func(flag string, err error) {
		if err != nil && flag != "" {
			err = fmt.Errorf("%s: %w", options.Named(flag), err)
		}
		errs = append(errs, err)
	}
	var err error
	c.loopback, err = checkAddresses(options)
	check("", err)
	c.options, err = decide(options, c.loopback)
	check("", err)
	check("database", store.CheckURL(options.Database))
	check("database-read", store.CheckFurtherURL(options.Database, options.DatabaseRead))
	check("database-listen", store.CheckFurtherURL(options.Database, options.DatabaseListen))
	c.web, err = webOptions(c.options)
	check("", err)
	if options.TLSCert != "" && options.TLSKey != "" {
		c.certificate, err = web.ReadCertificate(options.TLSCert, options.TLSKey)
		check("tls-cert", err)
	}
	if options.Policy != "" {
		c.policy, err = auth.OpenPolicyFile(options.Policy)
		check("policy", err)
	}
	if options.Tokens != "" {
		c.tokens, err = auth.OpenTokenFile(options.Tokens)
		check("tokens", err)
	}
	sources, err := tokenSources(options, c.tokens)
	check("", err)
	c.follower, err = newFollower(options)
	check("sync", err)
	check("", checkHistory(options))
	if c.follower != nil {
		sources = append([]auth.Source{c.follower.source()}, sources...)
	}
	c.web.Authenticate = authentication(auth.New(sources...), c.policy)
	if err := errors.Join(errs...); err != nil {
		return c, cli.UsageError(err)
	}
	return c, nil
}

// checkAddresses checks the addresses to listen on, and reports whether the
// API's address is a loopback address.
func checkAddresses(options cli.ServeOptions) (loopback bool, err error) {
	listen, err := net.ResolveTCPAddr("tcp", options.Listen)
	if options.Listen == "" { // ResolveTCPAddr takes it for any port
		err = errors.New("no address")
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %w", options.Named("listen"), options.Listen, err)
	}
	errs := []error{err}
	for _, aside := range []struct {
		flag, address string
		loopback      bool
	}{{"metrics-listen", options.MetricsListen, false}, {"pprof-listen", options.PprofListen, true}} {
		if aside.address == "" {
			continue
		}
		address, err := net.ResolveTCPAddr("tcp", aside.address)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s %s: %w", options.Named(aside.flag), aside.address, err))
		case aside.loopback && !isLoopback(address):
			errs = append(errs,
				fmt.Errorf("%s: %s is not a loopback address", options.Named(aside.flag), aside.address))
		}
	}
	return isLoopback(listen), errors.Join(errs...)
}

// profiled fills in a missing profile and a missing schema access.
func profiled(options cli.ServeOptions, loopback bool) cli.ServeOptions {
	profile := web.Locked
	if loopback && !options.Console {
		profile = web.Open
	}
	options.Profile = cmp.Or(options.Profile, string(profile))
	if options.Console && options.Profile == string(web.Locked) {
		options.SchemaAccess = cmp.Or(options.SchemaAccess, string(web.SchemaForNobody))
	}
	options.SchemaAccess = cmp.Or(options.SchemaAccess, string(web.Profile(options.Profile).SchemaAccess()))
	return options
}

// decide fills in the options of `serve` that depend on several flags, or on
// whether the server listens on a loopback address. Its error names all flags
// that conflict.
func decide(options cli.ServeOptions, loopback bool) (cli.ServeOptions, error) {
	var errs []error
	if options.Demo {
		options.OpenStackAPI = services
		if !loopback { // everyone knows the tokens of a demo
			errs = append(errs,
				fmt.Errorf("a demo cannot listen on %s: its tokens are public, so it needs a loopback address",
					options.Listen))
		}
		options.CapabilityDiscovery = string(resource.DiscoveryEveryone)
	}
	if !options.Demo && options.Tokens == "" && options.OIDC.Issuer == "" && options.Keystone.URL == "" {
		errs = append(errs,
			errors.New("no source of tokens: name a token file with --tokens, an issuer with --oidc-issuer or an identity service with --keystone-url, or try a demo cloud with --demo"))
	}
	options = profiled(options, loopback)
	if options.MCP == "" && (options.Demo || options.Profile == string(web.Open)) {
		options.MCP = "on"
	}
	if options.MCP = cmp.Or(options.MCP, "off"); options.MCPWrite && options.MCP == "off" {
		errs = append(errs, fmt.Errorf("%s requires %s on", options.Named("mcp-write"), options.Named("mcp")))
	}
	return options, errors.Join(append(errs, conflicts(options)...)...)
}

// conflicts returns an error for each option that is used without another one
// that it requires, and for each unknown service.
func conflicts(options cli.ServeOptions) (errs []error) {
	if (options.TLSCert == "") != (options.TLSKey == "") {
		errs = append(errs, fmt.Errorf("%s and %s must be set together", options.Named("tls-cert"),
			options.Named("tls-key")))
	}
	requires := func(isUsed bool, flag string, isMet bool, others ...string) {
		if isUsed && !isMet {
			named := strings.Join(lists.Map(others, options.Named), " or ")
			errs = append(errs, fmt.Errorf("%s requires %s", options.Named(flag), named))
		}
	}
	requires(options.TrustedOnly, "trusted-only", options.TrustedDocuments != "" ||
		options.Console, "trusted-documents", "console")
	requires(options.ConsoleClientID != "", "console-client-id", options.OIDC.Issuer != "", "oidc-issuer")
	requires(options.SyncRegions != nil, "sync-regions", options.Sync != "", "sync")
	requires(options.SyncProject != "", "sync-project", options.Sync != "", "sync")
	for _, service := range options.OpenStackAPI {
		if !slices.Contains(services, service) {
			errs = append(errs, fmt.Errorf("%s: there is no API of %q, only of %s", options.Named("openstack-api"),
				service, strings.Join(services, ", ")))
		}
	}
	return errs
}

// services are the OpenStack services whose APIs a server can have.
var services = []string{"placement", "image", "share", "reservation"}

// doors returns the OpenStack-compatible APIs that the options name.
func doors(options cli.ServeOptions, s *store.Store, log *slog.Logger) (all []*rest.Door) {
	asReference := options.OpenStackAPICompat == "reference"
	for _, service := range options.OpenStackAPI {
		switch service {
		case "placement":
			all = append(all, placement.New(s, asReference, log))
		case "image":
			all = append(all, image.New(s, asReference, log))
		case "share":
			all = append(all, share.New(s, log))
		case "reservation":
			all = append(all, reservation.New(s, log))
		}
	}
	return all
}

func isLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp != nil && tcp.IP.IsLoopback()
}

// storeOptions returns the options of the store, for a process with a memory
// limit in bytes, 0 for none.
func storeOptions(options cli.ServeOptions, memory int64, log *slog.Logger) store.Options {
	return store.Options{
		URL: options.Database, ListenURL: options.DatabaseListen, ReadURL: options.DatabaseRead,
		Unprepared: options.NoPreparedStatements, Connections: options.DatabaseConnections,
		CacheBytes: cacheBytes(memory), Log: log, RequestID: graph.RequestID,
		AuditRetention: options.AuditRetention, AuditAllocations: options.AuditAllocations,
		StatementTime: cmp.Or(options.Limits.OperationTime, -1),
		Resources: store.ResourceOptions{
			CapabilityDiscovery:         resource.CapabilityDiscovery(options.CapabilityDiscovery),
			CapabilityDefaultVisibility: access.Visibility(strings.ToUpper(options.CapabilityDefaultVisibility)),
			CapabilityRegistration:      resource.CapabilityRegistration(options.CapabilityRegistration),
			ProtectedMetadataKeys:       options.ProtectedMetadataKeys,
			Limits:                      &resource.Limits{MetadataItems: options.MaxMetadataItems},
		},
		Definitions: store.DefinitionOptions{
			OwnerWrites: options.NamespaceOwnerWrites, NamespacesPerProject: options.NamespacesPerProject,
			PropertiesPerNamespace: options.PropertiesPerNamespace, DefinitionSize: options.DefinitionBytes,
		},
	}
}

// webLimits returns the default limits with the values of settings, by name.
func webLimits(settings cli.Limits) web.Limits {
	limits, from := web.DefaultLimits(), reflect.ValueOf(settings)
	for i := range from.NumField() {
		reflect.ValueOf(&limits).Elem().FieldByName(from.Type().Field(i).Name).Set(from.Field(i))
	}
	return limits
}

// webOptions returns the options of the HTTP server. It reads the trusted
// documents.
func webOptions(options cli.ServeOptions) (web.Options, error) {
	settings := web.Options{
		Version: version(), Profile: web.Profile(options.Profile),
		SchemaAccess: web.SchemaAccess(options.SchemaAccess), Limits: webLimits(options.Limits),
		SlowOperation:  options.SlowOperation,
		AllowedOrigins: options.AllowedOrigins, TrustedOnly: options.TrustedOnly,
		MetricsElsewhere: options.MetricsListen != "", Console: options.Console,
	}
	if options.ConsoleClientID != "" {
		settings.SignIn.OIDC = &web.OIDCClient{Issuer: options.OIDC.Issuer, ClientID: options.ConsoleClientID,
			Scope: strings.Join(options.ConsoleScopes, " "), Audience: options.OIDC.Audience}
	}
	if options.Keystone.URL != "" {
		signIn := auth.KeystoneSignIn(options.Keystone.URL)
		settings.SignIn.Keystone = func(ctx context.Context, with web.Password) (string, time.Time, error) {
			return signIn(ctx, auth.Password(with))
		}
	}
	switch {
	case options.MCP == "on" && options.MCPWrite:
		settings.Tools = web.ReadWriteTools
	case options.MCP == "on":
		settings.Tools = web.ReadingTools
	}
	if options.Demo {
		settings.DemoRoles = []web.DemoRole{{Name: "admin", Token: demo.AdminToken},
			{Name: "member", Token: demo.MemberToken}, {Name: "reader", Token: demo.ReaderToken}}
	}
	var errs []error
	for _, origin := range options.AllowedOrigins {
		if err := web.CheckOrigin(origin); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", options.Named("allowed-origins"), err))
		}
	}
	for _, network := range options.TrustedProxy {
		prefix, err := netip.ParsePrefix(network)
		if err != nil || prefix.Addr().Is4In6() { // addresses are compared unmapped
			errs = append(errs,
				fmt.Errorf("%s: %q is not a network such as 10.0.0.0/8", options.Named("trusted-proxy"), network))
		}
		settings.TrustedProxies = append(settings.TrustedProxies, prefix.Masked())
	}
	if options.TrustedDocuments != "" {
		var err error
		if settings.Trusted, err = web.ReadTrustedDocuments(options.TrustedDocuments); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", options.Named("trusted-documents"), err))
		}
	}
	return settings, errors.Join(errs...)
}

// authentication returns the function that finds the viewer of a request by its
// headers. It applies the operator's current policy.
func authentication(authenticator *auth.Authenticator,
	policy *auth.PolicyFile) func(context.Context, http.Header) (access.Viewer, error) {
	return func(ctx context.Context, header http.Header) (access.Viewer, error) {
		viewer, err := authenticator.Authenticate(ctx, header)
		if policy != nil {
			viewer = viewer.WithPolicy(policy.Policy())
		}
		return viewer, err
	}
}

// tokenSources returns the sources of tokens in the order of their use: a demo,
// a token file, an issuer, an identity service.
func tokenSources(options cli.ServeOptions, file *auth.TokenFile) ([]auth.Source, error) {
	var sources []auth.Source
	if options.Demo {
		sources = append(sources, auth.Tokens(auth.TokensOf(demo.Viewers())))
	}
	if file != nil {
		sources = append(sources, file.Find)
	}
	var errs []error
	add := func(flag string, source auth.Source, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", options.Named(flag), err))
		}
		sources = append(sources, source)
	}
	if options.OIDC.Issuer != "" {
		source, err := auth.OIDC(auth.OIDCOptions(options.OIDC), time.Now)
		add("oidc-issuer", source, err)
	}
	if options.Keystone.URL != "" {
		source, err := auth.Keystone(auth.KeystoneOptions(options.Keystone), time.Now)
		add("keystone-url", source, err)
	}
	return sources, errors.Join(errs...)
}

func newLog(format string, to io.Writer) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(to, nil))
	}
	return slog.New(slog.NewTextHandler(to, nil))
}
