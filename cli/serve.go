package cli

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
)

// ServeOptions are the settings of `cadastre serve`. Each is a key of the file of
// --config, a file with the flag's name in $CREDENTIALS_DIRECTORY, and an
// environment variable: CADASTRE_ and the flag's name in capitals, `-` as `_`. It
// is also a flag, unless it has the tag key or is a limit. The tags min and max
// bound a number; without them it is 0 or more. --print-config hides settings with
// the tag secret.
type ServeOptions struct {
	sources map[string]string // sources of values by flag; see Named

	Listen               string `default:"127.0.0.1:8080" help:"Address to listen on."`
	Database             string `default:"sqlite://cadastre.db" help:"Database: sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/NAME?sslmode=MODE; MODE is require by default; use disable for a server without TLS."`
	DatabaseConnections  int    `default:"32" min:"4" help:"Database connections for requests; three more follow other servers."`
	DatabaseListen       string `key:"" placeholder:"URL" help:"The same PostgreSQL database for notifications of other servers, past a pooler that gives each transaction another connection."`
	DatabaseRead         string `key:"" placeholder:"URL" help:"Standbys of the PostgreSQL database, as hosts of a URL. Queries read there what a standby already has."`
	NoPreparedStatements bool   `key:"" help:"Use no prepared statements of PostgreSQL, for poolers that assign a connection to each transaction."`
	Tokens               string `type:"path" help:"YAML file of tokens, with the user, project and roles of each."`
	Policy               string `type:"path" help:"YAML file of rules that override who may do what."`
	Demo                 bool   `help:"Fill an empty database with a demo cloud and accept the tokens demo-admin, demo-member and demo-reader; loopback addresses only."`

	NamespaceOwnerWrites   bool `help:"Let project members, not only administrators, write the namespaces of their project."`
	NamespacesPerProject   int  `key:"" default:"1000" min:"1" help:"Maximum number of namespaces that a project may own."`
	PropertiesPerNamespace int  `key:"" default:"1000" min:"1" max:"1000" help:"Maximum number of properties of a namespace, including those of objects; at most 1000."`
	DefinitionBytes        int  `key:"" default:"65536" min:"1" max:"65536" help:"Maximum size of a property definition in bytes; at most 65536."`

	CapabilityDiscovery         string   `enum:"admin,everyone" default:"admin" help:"Who may discover public capabilities: ${enum}. A demo uses everyone."`
	CapabilityDefaultVisibility string   `key:"" enum:"private,public" default:"private" help:"Visibility of capabilities that are registered on first use: ${enum}."`
	CapabilityRegistration      string   `key:"" enum:"on-use,explicit" default:"on-use" help:"How capability names are registered: on first use, or explicitly before it: ${enum}."`
	ProtectedMetadataKeys       []string `placeholder:"KEY" help:"Metadata keys that only administrators and services may write, on every resource."`
	MaxMetadataItems            int      `key:"" default:"128" help:"Maximum number of metadata items of a resource; 0 means no limit."`

	AuditRetention   time.Duration `default:"2160h" min:"1ms" help:"How long audit events and changes are kept."`
	AuditAllocations bool          `help:"Record the allocations of each consumer before and after a claim in the audit log, not only its uuid."`

	HistoryFlavors []string `key:"" help:"Names of flavors, at most 50: the capacity history has how many more of each fit."`

	Profile          string   `enum:",open,locked" default:"" help:"What the server discloses: open (IDE, console, any query by GET) or locked. The default is open on a loopback address, otherwise locked."`
	SchemaAccess     string   `enum:",anyone,viewers,admins,nobody" default:"" help:"Who may read the schema, at /schema.graphql and by introspection: anyone, viewers (callers with a valid token), admins or nobody. Introspection always needs a token. The default is anyone in the open profile, viewers in the locked one, and nobody with --console there."`
	AllowedOrigins   []string `placeholder:"ORIGIN" help:"Origins that may send cross-origin requests, such as https://dashboard.example.org, or http://localhost:* for any port of this machine."`
	TrustedProxy     []string `placeholder:"NETWORK" help:"Networks of trusted proxies, such as 10.0.0.0/8. The server trusts their X-Forwarded-For."`
	MetricsListen    string   `help:"Separate address for /metrics. By default /metrics is on the main address."`
	PprofListen      string   `key:"" help:"Loopback address for profiles of the process, under /debug/pprof (default: none)."`
	MCP              string   `name:"mcp" enum:",on,off" default:"" help:"Whether /mcp serves tools for agents. The default is on in the open profile and in a demo, otherwise off."`
	MCPWrite         bool     `name:"mcp-write" help:"Also serve tools for agents that write."`
	TrustedDocuments string   `type:"path" help:"JSON file of trusted documents by their SHA-256. Clients may send the hash instead of the document."`
	TrustedOnly      bool     `help:"Refuse documents that are not trusted."`
	Console          bool     `help:"Serve the console at /console in the locked profile, which is then the default. Its documents are trusted."`
	ConsoleClientID  string   `key:"" name:"console-client-id" help:"Client id of the console at the OpenID Connect issuer, for a public client. Without it the console offers no sign-in at the issuer."`
	ConsoleScopes    []string `key:"" default:"openid" help:"Scopes that the console requests when users sign in. With offline_access it gets a refresh token."`
	TLSCert          string   `name:"tls-cert" type:"path" help:"Certificate chain in PEM."`
	TLSKey           string   `name:"tls-key" type:"path" help:"Private key of the certificate in PEM."`

	OpenStackAPI       []string `name:"openstack-api" placeholder:"SERVICE" help:"APIs of OpenStack's services that the server answers under /openstack/SERVICE: placement, image, share and reservation."`
	OpenStackAPICompat string   `key:"" name:"openstack-api-compat" enum:"reference,strict" default:"reference" help:"How these APIs answer where OpenStack's own service is wrong: like the service (reference) or like GraphQL (strict)."`

	Sync        string   `placeholder:"CLOUD" help:"Cloud of clouds.yaml to follow, like cadastre sync openstack --follow; envvars is the cloud of the OS_* variables."`
	SyncRegions []string `key:"" help:"Regions to follow; * is every region of the catalogue. By default the region of the cloud."`
	SyncProject string   `key:"" help:"Id of the project that owns flavors and hosts of that cloud. By default the project of the account."`

	OIDC     OIDC     `embed:"" prefix:"oidc-"`
	Keystone Keystone `embed:"" prefix:"keystone-"`

	Limits Limits `embed:"" prefix:"limit-"`

	SlowOperation time.Duration `default:"1s" min:"0s" help:"Log operations that take at least this long, with their cost; 0 logs none."`

	LogFormat string `enum:"text,json" default:"text" help:"Format of the log: ${enum}."`
}

// Limits bound the work of requests; 0 means no limit, or no cache. They are keys
// of the file.
type Limits struct {
	BodyBytes           int64         `default:"1048576" help:"Maximum size of a request body in bytes."`
	Tokens              int           `default:"3000" help:"Maximum number of tokens in a document."`
	Depth               int           `default:"15" help:"Maximum depth of fields in a document."`
	Aliases             int           `default:"500" help:"Maximum number of aliases in a document."`
	RootFields          int           `default:"60" help:"Maximum number of root fields."`
	Repeats             int           `default:"600" help:"Maximum number of fields with the same response name in a document."`
	Directives          int           `default:"5" help:"Maximum number of directives at one location of a document."`
	ListMembers         int           `default:"5000" help:"Maximum number of members of a list in the variables."`
	Places              int           `default:"10000" help:"Maximum number of fields of an operation after expanding fragments."`
	Cost                int64         `default:"2000000" help:"Maximum estimated cost of an operation, in fields of the answer."`
	AnswerBytes         int           `default:"16777216" help:"Maximum size of the data of an answer in bytes."`
	ClientBytes         int           `default:"65536" help:"Minimum speed at which a client must read a long answer, in bytes a second. Slower clients are disconnected."`
	OperationTime       time.Duration `default:"10s" help:"Maximum time of an operation and of each of its SQL statements."`
	Concurrent          int           `default:"256" help:"Maximum number of concurrent operations."`
	PrincipalPoints     float64       `default:"1000" help:"Points a second that a viewer may spend. An operation takes one point, one for each 1,000 of its cost, and 20 for each root field of a mutation."`
	ServicePoints       float64       `default:"10000" help:"Points a second for viewers with the role service."`
	AdminPoints         float64       `default:"5000" help:"Points a second for administrators."`
	AddressPoints       float64       `default:"5000" help:"Points a second for all requests from one address."`
	Sockets             int           `default:"2000" help:"Maximum number of open WebSockets and event streams."`
	ViewerSockets       int           `default:"200" help:"Maximum number of open WebSockets and event streams of a viewer."`
	SocketOperations    int           `default:"100" help:"Maximum number of concurrent operations, including subscriptions, on one WebSocket."`
	Subscriptions       int           `default:"10000" help:"Maximum number of open subscriptions."`
	ViewerSubscriptions int           `default:"1000" help:"Maximum number of open subscriptions of a viewer."`
	DocumentBytes       int64         `default:"67108864" help:"Size of the cache of parsed documents in bytes."`
	PersistedBytes      int64         `default:"16777216" help:"Size of the cache of automatically persisted documents in bytes."`
}

type serveCommand struct {
	Config      string `type:"path" env:"-" help:"YAML file of settings; --print-config prints all of them. Flags and environment variables override it."`
	PrintConfig bool   `env:"-" help:"Print the effective settings, without secrets, as a file for --config, and exit."`
	ServeOptions
}

// serve runs the server, or prints its settings for --print-config. It returns
// all problems with the settings together.
func (c *call) serve() (err error) {
	of := c.line.serve
	wrong := append(of.configure(c.ctx, c.line), wrongNumbers(c.line.params, of.Named)...)
	if len(wrong) > 0 {
		err = UsageError(errors.Join(wrong...))
	}
	if c.program.Check != nil && (err != nil || of.PrintConfig) {
		options, refused := c.program.Check(of.ServeOptions)
		of.ServeOptions, err = options, errors.Join(err, refused)
	}
	switch {
	case of.PrintConfig && len(wrong) == 0:
		return errors.Join(c.printConfig(c.line.params), err)
	case err != nil:
		return err
	}
	return c.program.Serve(c.ctx, of.ServeOptions)
}

// OIDC are the settings for JSON Web Tokens of an OpenID Connect issuer.
type OIDC struct {
	Issuer       string            `placeholder:"URL" help:"OpenID Connect issuer whose JSON Web Tokens are accepted."`
	Audience     string            `placeholder:"NAME" help:"Audience that the issuer's tokens must have."`
	Algorithms   []string          `key:"" default:"RS256,ES256" help:"Accepted signature algorithms."`
	UserClaim    string            `key:"" default:"sub" help:"Claim with the user's id."`
	ProjectClaim string            `key:"" default:"project" help:"Claim with the project's id; dots separate nested claims: cloud.project."`
	RolesClaim   string            `key:"" default:"roles" help:"Claim with the list of roles."`
	Roles        map[string]string `key:"" placeholder:"NAME=ROLE;..." help:"Mapping from roles of the claim to admin, member, reader or service. By default the names are the same."`
}

// Keystone are the settings for tokens of an OpenStack cloud.
type Keystone struct {
	URL              string            `name:"url" placeholder:"URL" help:"URL of the Keystone whose tokens are accepted, such as https://keystone:5000/v3."`
	User             string            `placeholder:"NAME" help:"User with which the server validates tokens at Keystone."`
	UserDomain       string            `key:"" default:"Default" help:"Domain of that user."`
	Password         string            `secret:"" placeholder:"SECRET" help:"Password of that user; prefer the environment variable."`
	Project          string            `placeholder:"NAME" help:"Project of that user."`
	ProjectDomain    string            `key:"" default:"Default" help:"Domain of that project."`
	CredentialID     string            `placeholder:"ID" help:"Id of an application credential, instead of user, password and project."`
	CredentialSecret string            `secret:"" placeholder:"SECRET" help:"Secret of the application credential; prefer the environment variable."`
	Roles            map[string]string `key:"" placeholder:"NAME=ROLE;..." help:"Mapping from roles of the cloud to admin, member, reader or service. By default the names are the same."`
	CacheTTL         time.Duration     `key:"" default:"60s" min:"1ms" max:"60s" help:"How long a validated token is cached, at most 60s. A revoked token stays valid that long."`
}

// params returns the flags and the settings of `serve`. It sets the defaults.
func (c *serveCommand) params() []*param {
	params := paramsIn(reflect.ValueOf(c).Elem(), "")
	for _, p := range params {
		p.help = strings.ReplaceAll(p.help, "${enum}", p.attributes["enum"])
		if isSetting(p) {
			p.attributes["env"] = envOf(p)
		}
		if p.fallback == "" {
			continue
		}
		asWritten := *p
		asWritten.take(p.fallback)
		if err := (setting{texts: asWritten.written}).decodeText(p.target); err != nil {
			panic("cli: the default of --" + p.flag + " is not " + p.typeInWords())
		}
	}
	return params
}

// paramsIn returns a parameter for each field of a struct. The names of the
// parameters begin with a prefix.
func paramsIn(of reflect.Value, prefix string) (params []*param) {
	for i := range of.NumField() {
		field := of.Type().Field(i)
		if field.Type.Kind() == reflect.Struct {
			params = append(params, paramsIn(of.Field(i), prefix+field.Tag.Get("prefix"))...)
			continue
		}
		if !field.IsExported() {
			continue
		}
		p := &param{flag: prefix + cmp.Or(field.Tag.Get("name"), kebab(field.Name)),
			typ: typeOfField(field.Type), isOwn: true,
			help: field.Tag.Get("help"), fallback: field.Tag.Get("default"),
			target: of.Field(i), attributes: map[string]string{}}
		for _, key := range []string{"enum", "key", "max", "min", "placeholder", "secret", "type"} {
			if value, ok := field.Tag.Lookup(key); ok {
				p.attributes[key] = value
			}
		}
		if p.isList() {
			p.attributes["sep"] = ","
		}
		params = append(params, p)
	}
	return params
}

// typeOfField returns the type of a parameter for a field.
func typeOfField(of reflect.Type) *ast.Type {
	switch {
	case of == reflect.TypeFor[time.Duration]():
		return ast.NamedType("Duration", nil)
	case of.Kind() == reflect.Slice:
		return ast.ListType(ast.NamedType("String", nil), nil)
	}
	name := map[reflect.Kind]string{reflect.Bool: "Boolean", reflect.Float64: "Float",
		reflect.Int: "Int", reflect.Int64: "Int",
		reflect.Map: "Map", reflect.String: "String"}[of.Kind()]
	return ast.NamedType(name, nil)
}

// wrongNumbers returns an error for each number or duration out of the bounds
// of its setting. The function named returns the name for the error.
func wrongNumbers(params []*param, named func(flag string) string) (wrong []error) {
	for _, p := range params {
		if !p.isNumber() {
			continue
		}
		if err := p.checkNumber(fmt.Sprint(p.target)); err != nil {
			wrong = append(wrong, fmt.Errorf("%s %w", named(p.flag), err))
		}
	}
	return wrong
}
