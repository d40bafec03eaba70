// Package origin has the rules by which Cadastre follows another system: the
// resource that stands for a thing of that system, and when an absent thing is
// gone.
package origin

import (
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// Limits of a sync, in code points unless noted otherwise.
const (
	maxName      = 128  // of an origin, and of a region
	maxKind      = 64   // of a kind
	maxForeignID = 255  // of the id of a thing
	maxPage      = 1000 // things, or absent ids, of a page; metadata items of a thing
)

// Scope is one kind of things in one region of an origin. A pass reads a scope.
type Scope struct{ Origin, Region, Kind string }

func (s Scope) check(problems *problem.Problems, path string) {
	text.Check(problems, problem.Join(path, "origin"), s.Origin, 1, maxName)
	text.Check(problems, problem.Join(path, "region"), s.Region, 1, maxName)
	text.Check(problems, problem.Join(path, "kind"), s.Kind, 1, maxKind)
}

// Key returns the scope as one string, for the audit log.
func (s Scope) Key() string { return s.Origin + "/" + s.Region + "/" + s.Kind }

// identities is the namespace of the uuids that UUIDs makes.
var identities = uuid.MustParse("7c1b8ab7-3f0c-5b0e-9f0a-1d5a8e6c2f41")

// UUIDs returns the uuids that a resource for a thing may get, the preferred
// one first: the foreign id if it is a uuid, then a uuid of version 5 made of
// the scope and the foreign id.
func (s Scope) UUIDs(foreignID string) []string {
	var name strings.Builder
	for _, part := range []string{s.Origin, s.Region, s.Kind, foreignID} {
		name.WriteString(strconv.Itoa(len(part)) + ":" + part)
	}
	made := uuid.NewSHA1(identities, []byte(name.String())).String()
	if own, err := uuid.Parse(foreignID); err == nil && len(foreignID) == len(made) {
		return []string{own.String(), made}
	}
	return []string{made}
}
