// Package client is the typed Go client of Cadastre: one function for each
// operation in operations/, generated from the schema. The command line is its
// first user.
package client

import (
	"net/http"

	"github.com/Khan/genqlient/graphql"
)

//go:generate go run github.com/Khan/genqlient genqlient.yaml

// New returns a client of the server at a URL such as http://127.0.0.1:8080,
// which sends the token with every request.
func New(server, token string) graphql.Client {
	return graphql.NewClient(server+"/graphql", &http.Client{Transport: bearer{token}})
}

// bearer sends a token with every request.
type bearer struct{ token string }

func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(request)
}
