package cli

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// ServeOptions are the settings of `cadastre serve`. Each is a key of the file of
// --config and an environment variable: CADASTRE_ and the flag's name in capitals,
// `-` as `_`. It is also a flag, unless it has the tag key or is a limit. The tags
// min and max bound a number; without them it is 0 or more. --print-config hides
// settings with the tag secret.
type ServeOptions struct {
	sources map[string]string // sources of values by flag; see Named

	Listen               string `default:"127.0.0.1:8080" help:"Address to listen on."`
	Database             string `default:"sqlite://cadastre.db" help:"Database: sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/NAME?sslmode=MODE; the mode is require when absent, disable for a server without TLS."`
	DatabaseConnections  int    `default:"32" min:"4" help:"Connections to the database that serve requests; three more follow other servers."`
	NoPreparedStatements bool   `key:"" help:"Send every statement to PostgreSQL as it is, for poolers that give each transaction another connection."`
	Tokens               string `type:"path" help:"YAML file of tokens, with the user, project and roles of each."`
	Policy               string `type:"path" help:"YAML file of rules that override who may do what."`
	Demo                 bool   `help:"Fill an empty database with a demo cloud and accept the tokens demo-admin, demo-member and demo-reader; loopback addresses only."`

	NamespaceOwnerWrites   bool `help:"Let the members of a project write the namespaces that it owns, not only administrators."`
	NamespacesPerProject   int  `key:"" default:"1000" min:"1" help:"Namespaces that one project may own."`
	PropertiesPerNamespace int  `key:"" default:"1000" min:"1" max:"1000" help:"Properties, those of objects included, that one namespace may hold; 1000 at most."`
	DefinitionBytes        int  `key:"" default:"65536" min:"1" max:"65536" help:"Bytes of one property's definition; 65536 at most."`

	CapabilityDiscovery         string   `enum:"admin,everyone" default:"admin" help:"Who discovers public capabilities: ${enum}. A demo opens it."`
	CapabilityDefaultVisibility string   `key:"" enum:"private,public" default:"private" help:"Visibility of a capability that is registered by its first use: ${enum}."`
	CapabilityRegistration      string   `key:"" enum:"on-use,explicit" default:"on-use" help:"How the name of a capability is registered: by its first use, or explicitly before it: ${enum}."`
	ProtectedMetadataKeys       []string `placeholder:"KEY" help:"Metadata keys that only administrators and services write, on every resource."`
	MaxMetadataItems            int      `key:"" default:"128" help:"Metadata items of one resource; 0 is no limit."`

	AuditRetention time.Duration `default:"2160h" min:"1ms" help:"How long audit events and changes are kept."`

	Profile          string   `enum:",open,locked" default:"" help:"How much the server discloses: open (introspection, IDE, any query by GET) or locked; open on a loopback address and locked elsewhere when absent."`
	SchemaAccess     string   `enum:",anyone,viewers,admins" default:"" help:"Who may read the schema, at /schema.graphql and by introspection, which always needs a token: anyone, viewers (whoever has a valid token) or admins; anyone in the open profile and viewers in the locked one when absent."`
	AllowedOrigins   []string `placeholder:"ORIGIN" help:"Origins whose pages may send requests, such as https://dashboard.example.org, or http://localhost:* for any port of this machine."`
	TrustedProxy     []string `placeholder:"NETWORK" help:"Networks of the proxies before the server, such as 10.0.0.0/8, whose X-Forwarded-For is trusted."`
	MetricsListen    string   `help:"Address to serve /metrics on, and there only; otherwise it is where everything else is."`
	PprofListen      string   `help:"Loopback address to serve profiles of the process on, under /debug/pprof; none when absent."`
	MCP              string   `name:"mcp" enum:",on,off" default:"" help:"Whether /mcp serves tools for agents: on in the open profile and in a demo, off otherwise when absent."`
	MCPWrite         bool     `name:"mcp-write" help:"Serve tools for agents that write, too."`
	TrustedDocuments string   `type:"path" help:"JSON file of documents by their SHA-256 that clients may ask for by hash."`
	TrustedOnly      bool     `help:"Refuse every document that is not a trusted one."`
	TLSCert          string   `name:"tls-cert" type:"path" help:"Certificate chain, PEM."`
	TLSKey           string   `name:"tls-key" type:"path" help:"Key of the certificate, PEM."`

	OpenStackAPI       []string `name:"openstack-api" placeholder:"SERVICE" help:"APIs of OpenStack's services that the server answers under /openstack/SERVICE: placement, image, share and reservation."`
	OpenStackAPICompat string   `key:"" name:"openstack-api-compat" enum:"reference,strict" default:"reference" help:"How to answer there where OpenStack's own service is wrong: as it does (reference) or as GraphQL does (strict)."`

	OIDC     OIDC     `embed:"" prefix:"oidc-"`
	Keystone Keystone `embed:"" prefix:"keystone-"`

	Limits Limits `embed:"" prefix:"limit-"`

	SlowOperation time.Duration `default:"1s" min:"0s" help:"Log operations that run as long, with what they cost; 0 logs none."`

	LogFormat string `enum:"text,json" default:"text" help:"Form of the log: ${enum}."`
}

// Limits bound the work of requests; 0 means no limit. They are keys of the
// file.
type Limits struct {
	BodyBytes           int64         `default:"1048576" help:"Bytes of a request's body."`
	Tokens              int           `default:"3000" help:"Tokens of a document."`
	Depth               int           `default:"15" help:"Levels of fields."`
	Aliases             int           `default:"500" help:"Aliases in a document."`
	RootFields          int           `default:"60" help:"Fields of the first level."`
	Repeats             int           `default:"600" help:"Times that one name of the answer may stand in a document."`
	Directives          int           `default:"5" help:"Directives at one place of a document."`
	ListMembers         int           `default:"5000" help:"Members of each list in the variables."`
	Places              int           `default:"10000" help:"Fields of an operation where its fragments are spread."`
	Cost                int64         `default:"2000000" help:"Estimated work of an operation, in fields of an answer."`
	AnswerBytes         int           `default:"16777216" help:"Bytes of an answer's data."`
	ClientBytes         int           `default:"65536" help:"Bytes a second that a client takes of a long answer; it is cut if it takes less."`
	OperationTime       time.Duration `default:"10s" help:"Time of an operation, its statements included; PostgreSQL ends each statement after as long."`
	Concurrent          int           `default:"256" help:"Operations worked on at once."`
	PrincipalPoints     float64       `default:"1000" help:"Points a second that a viewer may spend; an operation costs one and one more for each 1,000 of its cost."`
	ServicePoints       float64       `default:"10000" help:"The same of a viewer with the role of a service."`
	AdminPoints         float64       `default:"5000" help:"The same of an administrator."`
	AddressPoints       float64       `default:"5000" help:"Points a second that the requests of one address may spend."`
	Sockets             int           `default:"2000" help:"WebSockets and event streams that are open at once."`
	ViewerSockets       int           `default:"200" help:"The same of one viewer."`
	SocketOperations    int           `default:"100" help:"Operations of one WebSocket that are under way at once, subscriptions included."`
	Subscriptions       int           `default:"10000" help:"Subscriptions that are open at once."`
	ViewerSubscriptions int           `default:"1000" help:"The same of one viewer."`
	DocumentBytes       int64         `default:"67108864" help:"Bytes of memory for parsed documents."`
	PersistedBytes      int64         `default:"16777216" help:"Bytes of memory for automatically persisted documents."`
}

type serveCommand struct {
	Config      string `type:"path" env:"-" help:"YAML file of settings; --print-config shows all. Flags and the environment override it."`
	PrintConfig bool   `env:"-" help:"Print the settings in effect as a file for --config, without secrets, and end."`
	ServeOptions
}

func (c *serveCommand) Run(run *session) error {
	if err := run.refuseServe(c); err != nil {
		return err
	}
	if c.PrintConfig {
		var err error
		if run.program.Check != nil {
			c.ServeOptions, err = run.program.Check(c.ServeOptions)
		}
		return errors.Join(run.printConfig(), err)
	}
	return run.program.Serve(run.ctx, c.ServeOptions)
}

// OIDC are the settings for JSON Web Tokens of an OpenID Connect issuer.
type OIDC struct {
	Issuer       string            `placeholder:"URL" help:"OpenID Connect issuer whose JSON Web Tokens are accepted."`
	Audience     string            `placeholder:"NAME" help:"Audience that those tokens must have."`
	Algorithms   []string          `key:"" default:"RS256,ES256" help:"Signature algorithms that are accepted."`
	UserClaim    string            `key:"" default:"sub" help:"Claim with the user's id."`
	ProjectClaim string            `key:"" default:"project" help:"Claim with the project's id; inside others with dots: cloud.project."`
	RolesClaim   string            `key:"" default:"roles" help:"Claim with the names of roles."`
	Roles        map[string]string `key:"" placeholder:"NAME=ROLE;..." help:"Roles that those names stand for: admin, member, reader or service. The names themselves when absent."`
}

// Keystone are the settings for tokens of an OpenStack cloud.
type Keystone struct {
	URL              string            `name:"url" placeholder:"URL" help:"Identity API of an OpenStack cloud whose tokens are accepted, such as https://keystone:5000/v3."`
	User             string            `placeholder:"NAME" help:"User as whom this server asks there about tokens."`
	UserDomain       string            `key:"" default:"Default" help:"Domain of that user."`
	Password         string            `secret:"" placeholder:"SECRET" help:"Password of that user; better as the environment variable."`
	Project          string            `placeholder:"NAME" help:"Project of that user."`
	ProjectDomain    string            `key:"" default:"Default" help:"Domain of that project."`
	CredentialID     string            `placeholder:"ID" help:"Application credential, instead of user, password and project."`
	CredentialSecret string            `secret:"" placeholder:"SECRET" help:"Secret of the application credential; better as the environment variable."`
	Roles            map[string]string `key:"" placeholder:"NAME=ROLE;..." help:"Roles that the cloud's roles stand for: admin, member, reader or service. Those of the same names when absent."`
	CacheTTL         time.Duration     `key:"" default:"60s" min:"1ms" max:"60s" help:"How long the answer about a token is cached, 60 s at most; a revoked token works that long."`
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

// namedFlag matches the flag in an error of the parser.
var namedFlag = regexp.MustCompile(`--([a-z0-9][a-z0-9-]*)`)

// parseServe parses the arguments of `serve`. The parser stops at the first
// error, so parseServe notes the error, removes the flag and parses again. It
// returns nil if the error is not about a flag.
func (s *session) parseServe(args []string) (*kong.Context, error) {
	for {
		parser, err := newParser(s, func() {})
		if err != nil {
			return nil, err
		}
		parsed, err := parser.Parse(args)
		if err == nil {
			return parsed, nil
		}
		s.wrong = append(s.wrong, usageError(err))
		named := namedFlag.FindStringSubmatch(err.Error())
		if named == nil {
			return nil, nil
		}
		flags := serveOf(parser).Flags
		takesNext := !slices.ContainsFunc(flags, func(flag *kong.Flag) bool {
			return flag.Name == named[1] && flag.IsBool()
		})
		rest := without(args, named[1], takesNext)
		if slices.Equal(rest, args) {
			return nil, nil
		}
		args = rest
	}
}

// without removes a flag from arguments. Its value may be the next argument.
func without(args []string, name string, takesNext bool) []string {
	var rest []string
	for i := 0; i < len(args); i++ {
		switch {
		case strings.HasPrefix(args[i], "--"+name+"="):
		case args[i] != "--"+name:
			rest = append(rest, args[i])
		case takesNext && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--"):
			i++
		}
	}
	return rest
}

// refuseServe returns all problems with the settings of `serve`: values that
// cannot be parsed, numbers out of range, and the errors of the program about
// the rest.
func (s *session) refuseServe(c *serveCommand) error {
	wrong := slices.Clone(s.wrong)
	for _, err := range append(c.configure(s.parsed), wrongNumbers(s.parsed, c.Named)...) {
		wrong = append(wrong, usageError(err))
	}
	if len(wrong) > 0 && s.program.Check != nil {
		_, err := s.program.Check(c.ServeOptions)
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}
