package graph

import (
	"errors"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/placement"
)

// MarshalUUID writes a UUID, which is kept in its canonical spelling.
func MarshalUUID(uuid string) graphql.Marshaler { return graphql.MarshalString(uuid) }

// UnmarshalUUID takes a UUID in any usual spelling and gives the canonical one:
// lower case with dashes.
func UnmarshalUUID(v any) (string, error) {
	text, ok := v.(string)
	if !ok {
		return "", errors.New("a UUID is a text")
	}
	uuid, ok := placement.CanonicalUUID(text)
	if !ok {
		return "", errors.New("not a UUID")
	}
	return uuid, nil
}
