package cli

import "time"

// OIDC are the flags for JSON Web Tokens of an OpenID Connect issuer.
type OIDC struct {
	Issuer       string            `placeholder:"URL" help:"OpenID Connect issuer whose JSON Web Tokens are accepted."`
	Audience     string            `placeholder:"NAME" help:"Audience that those tokens must have."`
	Algorithms   []string          `default:"RS256,ES256" help:"Signature algorithms that are accepted."`
	UserClaim    string            `default:"sub" help:"Claim with the user's id."`
	ProjectClaim string            `default:"project" help:"Claim with the project's id; inside others with dots: cloud.project."`
	RolesClaim   string            `default:"roles" help:"Claim with the names of roles."`
	Roles        map[string]string `placeholder:"NAME=ROLE;..." help:"Roles that those names stand for: admin, member, reader or service. The names themselves when absent."`
}

// Keystone are the flags for tokens of an OpenStack cloud.
type Keystone struct {
	URL              string            `name:"url" placeholder:"URL" help:"Identity API of an OpenStack cloud whose tokens are accepted, such as https://keystone:5000/v3."`
	User             string            `placeholder:"NAME" help:"User as whom this server asks there about tokens."`
	UserDomain       string            `default:"Default" help:"Domain of that user."`
	Password         string            `placeholder:"SECRET" help:"Password of that user; better as the environment variable."`
	Project          string            `placeholder:"NAME" help:"Project of that user."`
	ProjectDomain    string            `default:"Default" help:"Domain of that project."`
	CredentialID     string            `placeholder:"ID" help:"Application credential, instead of user, password and project."`
	CredentialSecret string            `placeholder:"SECRET" help:"Secret of the application credential; better as the environment variable."`
	Roles            map[string]string `placeholder:"NAME=ROLE;..." help:"Roles that the cloud's roles stand for: admin, member, reader or service. Those of the same names when absent."`
	CacheTTL         time.Duration     `default:"60s" min:"1ms" max:"60s" help:"How long the answer about a token is cached, 60 s at most; a revoked token works that long."`
}
