package main

import (
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/cli"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	withTokens := cli.ServeOptions{Tokens: "tokens.yaml", CapabilityDiscovery: "admin"}
	with := func(change func(*cli.ServeOptions)) cli.ServeOptions {
		options := withTokens
		change(&options)
		return options
	}
	for name, of := range map[string]struct {
		options   cli.ServeOptions
		elsewhere bool   // not on a loopback address
		want      string // profile and discovery, or a part of the error
	}{
		"on loopback": {options: withTokens, want: "open admin"},
		"elsewhere":   {options: withTokens, elsewhere: true, want: "locked admin"},
		"locked on loopback": {options: with(func(o *cli.ServeOptions) { o.Profile = "locked" }),
			want: "locked admin"},
		"open elsewhere": {options: with(func(o *cli.ServeOptions) { o.Profile = "open" }),
			elsewhere: true, want: "open admin"},
		"a demo": {options: cli.ServeOptions{Demo: true, CapabilityDiscovery: "admin"},
			want: "open everyone"},
		"a locked demo": {options: cli.ServeOptions{Demo: true, Profile: "locked"}, want: "locked everyone"},
		"a demo elsewhere": {options: cli.ServeOptions{Demo: true, Listen: "0.0.0.0:80"}, elsewhere: true,
			want: "a demo cannot listen on 0.0.0.0:80"},
		"nobody":    {want: "no source of tokens"},
		"an issuer": {options: cli.ServeOptions{OIDC: cli.OIDC{Issuer: "https://issuer"}}, want: "open "},
		"an identity service": {options: cli.ServeOptions{Keystone: cli.Keystone{URL: "https://keystone"}},
			want: "open "},
		"a certificate": {options: with(func(o *cli.ServeOptions) { o.TLSCert = "cert" }),
			want: "--tls-cert and --tls-key must be set together"},
		"a key": {options: with(func(o *cli.ServeOptions) { o.TLSKey = "key" }),
			want: "--tls-cert and --tls-key must be set together"},
		"a certificate and key": {options: with(func(o *cli.ServeOptions) { o.TLSCert, o.TLSKey = "cert", "key" }),
			want: "open admin"},
		"tools that write alone": {options: with(func(o *cli.ServeOptions) { o.MCPWrite, o.Profile = true, "locked" }),
			want: "--mcp-write requires --mcp on"},
		"no trusted documents": {options: with(func(o *cli.ServeOptions) { o.TrustedOnly = true }),
			want: "--trusted-only requires --trusted-documents"},
		"the console": {options: with(func(o *cli.ServeOptions) { o.Console = true }), want: "locked admin"},
		"an open console": {options: with(func(o *cli.ServeOptions) { o.Console, o.Profile = true, "open" }),
			want: "open admin"},
		"the console alone": {options: with(func(o *cli.ServeOptions) { o.Console, o.TrustedOnly = true, true }),
			want: "locked admin"},
		"a client of no issuer": {options: with(func(o *cli.ServeOptions) { o.ConsoleClientID = "console" }),
			want: "--console-client-id requires --oidc-issuer"},
		"only trusted documents": {options: with(func(o *cli.ServeOptions) {
			o.TrustedOnly, o.TrustedDocuments = true, "list"
		}), want: "open admin"},
	} {
		decided, err := decide(of.options, !of.elsewhere)
		got := decided.Profile + " " + decided.CapabilityDiscovery
		if open := decided.SchemaAccess == "anyone"; open != (decided.Profile == "open") {
			t.Errorf("%s: the schema is for %q", name, decided.SchemaAccess)
		}
		if hidden := decided.SchemaAccess == "nobody"; hidden != (of.options.Console && decided.Profile == "locked") {
			t.Errorf("%s: the schema is for %q", name, decided.SchemaAccess)
		}
		if on := decided.MCP == "on"; on != (decided.Profile == "open" || of.options.Demo) {
			t.Errorf("%s: tools for agents are %q", name, decided.MCP)
		}
		if err != nil {
			got = err.Error()
		}
		if got != of.want && (err == nil || !strings.Contains(got, of.want)) {
			t.Errorf("%s: got %q, want %q", name, got, of.want)
		}
	}
}
