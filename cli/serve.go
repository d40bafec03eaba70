package cli

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/text"
)

// ServeOptions are the settings of `cadastre serve`. Each is a key of the file of
// --config and an environment variable: CADASTRE_ and the flag's name in capitals,
// `-` as `_`. It is also a flag, unless it has the tag key or is a limit. The tags
// min and max bound a number; without them it is 0 or more. --print-config hides
// settings with the tag secret.
type ServeOptions struct {
	sources map[string]string // sources of values by flag; see Named

	Listen               string `default:"127.0.0.1:8080" help:"Address to listen on."`
	Database             string `default:"sqlite://cadastre.db" help:"Database: sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/NAME?sslmode=MODE; MODE is require by default; use disable for a server without TLS."`
	DatabaseConnections  int    `default:"32" min:"4" help:"Database connections for requests; three more follow other servers."`
	DatabaseListen       string `key:"" placeholder:"URL" help:"The same PostgreSQL database for notifications of other servers, past a pooler that gives each transaction another connection."`
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

	Profile          string   `enum:",open,locked" default:"" help:"What the server discloses: open (introspection, IDE, any query by GET) or locked. The default is open on a loopback address, otherwise locked."`
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
	ConsoleClientID  string   `key:"" name:"console-client-id" help:"Id of the console as a public client of the OpenID Connect issuer; without it the console does not offer to sign in there."`
	ConsoleScopes    []string `key:"" default:"openid" help:"Scopes that the console requests when users sign in; offline_access gives it a refresh token."`
	TLSCert          string   `name:"tls-cert" type:"path" help:"Certificate chain in PEM."`
	TLSKey           string   `name:"tls-key" type:"path" help:"Private key of the certificate in PEM."`

	OpenStackAPI       []string `name:"openstack-api" placeholder:"SERVICE" help:"APIs of OpenStack's services that the server answers under /openstack/SERVICE: placement, image, share and reservation."`
	OpenStackAPICompat string   `key:"" name:"openstack-api-compat" enum:"reference,strict" default:"reference" help:"How to answer there where OpenStack's own service is wrong: as it does (reference) or as GraphQL does (strict)."`

	Sync        string   `placeholder:"CLOUD" help:"Cloud of clouds.yaml to follow as cadastre sync openstack --follow does; envvars is the one that the OS_* variables name."`
	SyncRegions []string `key:"" help:"Regions to follow; * is every region of the catalogue. By default the region of the cloud."`
	SyncProject string   `key:"" help:"Id of the project that owns flavors and hosts of that cloud. By default the project of the account."`

	OIDC     OIDC     `embed:"" prefix:"oidc-"`
	Keystone Keystone `embed:"" prefix:"keystone-"`

	Limits Limits `embed:"" prefix:"limit-"`

	SlowOperation time.Duration `default:"1s" min:"0s" help:"Log operations that take at least this long, with their cost; 0 logs none."`

	LogFormat string `enum:"text,json" default:"text" help:"Format of the log: ${enum}."`
}

// Limits bound the work of requests; 0 means no limit. They are keys of the
// file.
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
	PrincipalPoints     float64       `default:"1000" help:"Points a second that a viewer may spend. An operation takes one point, and one for each 1,000 of its cost."`
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

// serve runs the server. It returns all problems with the settings together.
func (s *session) serve(parser *kong.Kong, args []string) (err error) {
	if s.parsed, err = parser.Parse([]string{"serve"}); err != nil { // sets the defaults
		return err
	}
	c, ok := s.parsed.Selected().Target.Addr().Interface().(*serveCommand)
	if !ok {
		return errors.New("cli: serve has no settings")
	}
	_, at := nounIn(args)
	wrong := append(c.configure(s.parsed.Selected(), slices.Delete(slices.Clone(args), at, at+1)), wrongNumbers(s.parsed, c.Named)...)
	if len(wrong) > 0 {
		err = usageError(errors.Join(wrong...))
	}
	if s.program.Check != nil && (err != nil || c.PrintConfig) {
		options, refused := s.program.Check(c.ServeOptions)
		c.ServeOptions, err = options, errors.Join(err, refused)
	}
	switch {
	case c.PrintConfig && len(wrong) == 0:
		return errors.Join(s.printConfig(), err)
	case err != nil:
		return err
	}
	return s.program.Serve(s.ctx, c.ServeOptions)
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

// checkNumbers returns an error for numbers and durations out of the bounds of
// their flags.
func checkNumbers(parsed *kong.Context) error {
	return errors.Join(wrongNumbers(parsed, ServeOptions{}.Named)...)
}

// wrongNumbers returns an error for each number or duration out of the bounds
// of its flag. The function named returns the name for the error.
func wrongNumbers(parsed *kong.Context, named func(flag string) string) (wrong []error) {
	for _, flag := range parsed.Flags() {
		value, ok := number(flag.Target)
		low, high := cmp.Or(flag.Tag.Get("min"), "0"), flag.Tag.Get("max")
		switch {
		case !ok:
		case high != "" && !(value >= bound(low) && value <= bound(high)):
			wrong = append(wrong, fmt.Errorf("%s must be %s to %s, is %v", named(flag.Name), low, high, flag.Target))
		case !(value >= bound(low)): // NaN fails, too
			wrong = append(wrong, fmt.Errorf("%s must be %s or more, is %v", named(flag.Name), low, flag.Target))
		}
	}
	return wrong
}

// number returns the value of a flag that takes a number, or a duration in
// nanoseconds.
func number(value reflect.Value) (float64, bool) {
	switch {
	case value.CanInt():
		return float64(value.Int()), true
	case value.CanFloat():
		return value.Float(), true
	}
	return 0, false
}

// bound returns the value of a tag: a number, or a duration in nanoseconds.
func bound(tag string) float64 {
	if duration, err := time.ParseDuration(tag); err == nil {
		return float64(duration)
	}
	value, err := strconv.ParseFloat(tag, 64)
	if err != nil {
		panic("cli: a bound of a flag is neither a number nor a duration: " + tag)
	}
	return value
}

// flagsIn returns the values of the flags among the arguments of `serve`, and an
// error for each argument that is none.
func flagsIn(flags []*kong.Flag, args []string) (given map[string]string, wrong []error) {
	given = map[string]string{}
	known := lists.Map(flags, func(flag *kong.Flag) string { return "--" + flag.Name })
	for i := 0; i < len(args); i++ {
		written, value, hasValue := strings.Cut(args[i], "=")
		at := slices.Index(known, written)
		isFlag, isBool := strings.HasPrefix(written, "--"), at >= 0 && flags[at].IsBool()
		if isFlag && !isBool && !hasValue && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
			i, value, hasValue = i+1, args[i+1], true
		}
		switch before, isRepeated := given[strings.TrimPrefix(written, "--")]; {
		case !isFlag:
			wrong = append(wrong, fmt.Errorf("unexpected argument %s", args[i]))
		case at < 0:
			wrong = append(wrong, fmt.Errorf("unknown flag %s%s", written, text.NewSpeller(known).DidYouMean(written)))
		case !hasValue && !isBool:
			wrong = append(wrong, fmt.Errorf("%s: has no value", written))
		case !hasValue:
			given[flags[at].Name] = "true"
		case isRepeated && flags[at].IsSlice():
			given[flags[at].Name] = before + "," + value
		default:
			given[flags[at].Name] = value
		}
	}
	return given, wrong
}
