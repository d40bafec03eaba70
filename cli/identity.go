package cli

import "time"

// OIDC are the flags for JSON Web Tokens of an OpenID Connect issuer.
type OIDC struct {
	Issuer       string            `placeholder:"URL" help:"OpenID Connect issuer whose JSON Web Tokens are taken."`
	Audience     string            `placeholder:"NAME" help:"What those tokens must have as an audience."`
	Algorithms   []string          `default:"RS256,ES256" help:"Signature algorithms that are taken."`
	UserClaim    string            `default:"sub" help:"Claim with the user's id."`
	ProjectClaim string            `default:"project" help:"Claim with the project's id; inside others with dots: cloud.project."`
	RolesClaim   string            `default:"roles" help:"Claim with the names of roles."`
	Roles        map[string]string `placeholder:"NAME=ROLE;..." help:"What those names mean: admin, member, reader or service. The names themselves when absent."`
}

// Keystone are the flags for tokens of an OpenStack cloud.
type Keystone struct {
	URL              string            `name:"url" placeholder:"URL" help:"Identity API of an OpenStack cloud whose tokens are taken, such as https://keystone:5000/v3."`
	User             string            `placeholder:"NAME" help:"User as whom tokens are checked there."`
	UserDomain       string            `default:"Default" help:"Domain of that user."`
	Password         string            `placeholder:"SECRET" help:"Password of that user; better as the environment variable."`
	Project          string            `placeholder:"NAME" help:"Project of that user."`
	ProjectDomain    string            `default:"Default" help:"Domain of that project."`
	CredentialID     string            `placeholder:"ID" help:"Application credential, instead of user, password and project."`
	CredentialSecret string            `placeholder:"SECRET" help:"Secret of the application credential; better as the environment variable."`
	Roles            map[string]string `placeholder:"NAME=ROLE;..." help:"What the cloud's roles mean: admin, member, reader or service. Their names themselves when absent."`
	CacheTTL         time.Duration     `default:"60s" help:"How long the answer about a token is cached, 60 s at most; a revoked token works that long."`
}
