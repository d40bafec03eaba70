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
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/cli"
	"github.com/cadastre-dev/cadastre/demo"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/web"
)

// decide returns the options of `serve` with every choice made that depends on
// more than one flag, or on whether the server listens on a loopback address.
// It returns an error for flags that do not go together.
func decide(options cli.ServeOptions, loopback bool) (cli.ServeOptions, error) {
	if options.Demo {
		if !loopback { // everyone knows the tokens of a demo
			return options, fmt.Errorf("a demo cannot listen on %s: its tokens are public, so it needs a loopback address", options.Listen)
		}
		options.CapabilityDiscovery = string(resource.DiscoveryEveryone)
	}
	if !options.Demo && options.Tokens == "" && options.OIDC.Issuer == "" && options.Keystone.URL == "" {
		return options, errors.New("no source of tokens: name a token file with --tokens, an issuer with --oidc-issuer or an identity service with --keystone-url, or try a demo cloud with --demo")
	}
	profile := web.Locked
	if loopback {
		profile = web.Open
	}
	options.Profile = cmp.Or(options.Profile, string(profile))
	if (options.TLSCert == "") != (options.TLSKey == "") {
		return options, errors.New("--tls-cert and --tls-key go together")
	}
	if options.TrustedOnly && options.TrustedDocuments == "" {
		return options, errors.New("--trusted-only needs --trusted-documents")
	}
	return options, nil
}

func isLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

func storeOptions(options cli.ServeOptions, log *slog.Logger) store.Options {
	return store.Options{
		URL: options.Database, Unprepared: options.NoPreparedStatements, Log: log, RequestID: graph.RequestID,
		AuditRetention: options.AuditRetention,
		Resources: store.ResourceOptions{
			CapabilityDiscovery:         resource.CapabilityDiscovery(options.CapabilityDiscovery),
			CapabilityDefaultVisibility: access.Visibility(strings.ToUpper(options.CapabilityDefaultVisibility)),
			CapabilityRegistration:      resource.CapabilityRegistration(options.CapabilityRegistration),
			ProtectedMetadataKeys:       options.ProtectedMetadataKeys,
			Limits: &resource.Limits{
				MetadataItems: options.MaxMetadataItems,
				Writes:        resource.WriteRate{PerMinute: options.WriteRate, Burst: options.WriteBurst},
			},
		},
		Definitions: store.DefinitionOptions{
			OwnerWrites: options.NamespaceOwnerWrites, NamespacesPerProject: options.NamespacesPerProject,
			PropertiesPerNamespace: options.PropertiesPerNamespace, DefinitionSize: options.DefinitionBytes,
		},
	}
}

// webOptions returns what the flags say of HTTP. It reads the trusted
// documents.
func webOptions(options cli.ServeOptions) (web.Options, error) {
	settings := web.Options{
		Version: version(), Profile: web.Profile(options.Profile), Limits: web.Limits(options.Limits),
		SlowOperation:  options.SlowOperation,
		AllowedOrigins: options.AllowedOrigins, TrustedOnly: options.TrustedOnly,
		MetricsElsewhere: options.MetricsListen != "",
	}
	if options.Demo {
		settings.DemoToken = demo.AdminToken
	}
	for _, origin := range options.AllowedOrigins {
		if err := web.CheckOrigin(origin); err != nil {
			return settings, fmt.Errorf("--allowed-origins: %w", err)
		}
	}
	for _, network := range options.TrustedProxy {
		prefix, err := netip.ParsePrefix(network)
		if err != nil {
			return settings, fmt.Errorf("--trusted-proxy: %q is not a network; write it as 10.0.0.0/8", network)
		}
		settings.TrustedProxies = append(settings.TrustedProxies, prefix.Masked())
	}
	var err error
	if options.TrustedDocuments != "" {
		settings.Trusted, err = web.ReadTrustedDocuments(options.TrustedDocuments)
	}
	return settings, err
}

// authentication returns the function that finds the viewer behind the headers
// of a request, under the operator's policy. It reads the files of tokens and
// policy.
func authentication(options cli.ServeOptions) (func(context.Context, http.Header) (access.Viewer, error), error) {
	sources, err := tokenSources(options)
	if err != nil {
		return nil, err
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
		return viewer.WithPolicy(policy), err
	}, nil
}

// tokenSources returns the sources of tokens, in the order in which they are
// asked: those of a demo and of the file, an issuer, an identity service.
func tokenSources(options cli.ServeOptions) ([]auth.Source, error) {
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
	sources := []auth.Source{auth.Tokens(tokens)}
	if options.OIDC.Issuer != "" {
		source, err := auth.OIDC(auth.OIDCOptions(options.OIDC), time.Now)
		if err != nil {
			return nil, fmt.Errorf("--oidc-issuer: %w", err)
		}
		sources = append(sources, source)
	}
	if options.Keystone.URL != "" {
		source, err := auth.Keystone(auth.KeystoneOptions(options.Keystone), time.Now)
		if err != nil {
			return nil, fmt.Errorf("--keystone-url: %w", err)
		}
		sources = append(sources, source)
	}
	return sources, nil
}

func newLog(format string, to io.Writer) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(to, nil))
	}
	return slog.New(slog.NewTextHandler(to, nil))
}
