package metadef

import (
	"github.com/cadastre-dev/cadastre/metadef/internal/jsonvalue"
	"github.com/cadastre-dev/cadastre/problem"
)

// Limits of a definition, so that nothing a caller sends is unbounded.
const (
	MaxDefinition  = 64 << 10  // bytes of one property's definition
	MaxEnumMembers = 1000      // members of an enum, operators of a property
	MaxPattern     = 1000      // characters of a regular expression
	MaxDefinitions = 1000      // properties, objects, tags, associations of a namespace; properties of an object
	MaxCount       = 1<<31 - 1 // of lengths and numbers of items, as GraphQL's Int
)

// Strictness is how a definition is read.
type Strictness int

const (
	// Strict is for input of the API: everything questionable is a problem, and
	// paths use the API's names (`input.itemEnum[1]`).
	Strict Strictness = iota
	// Lenient is for definition files: what is questionable but legal in the
	// reference system is accepted with a warning, and paths use the file's
	// names (`$.properties.hw_cpu.items.enum[1]`).
	Lenient
)

// checker collects the problems of a definition while it is read, and warnings
// of what was accepted or repaired.
type checker struct {
	level         Strictness
	warned, found problem.Problems
}

func (c *checker) problem(path, format string, args ...any) {
	c.found.AddBounded(path, format, args...)
}

func (c *checker) warn(path, format string, args ...any) {
	c.warned.AddBounded(path, format, args...)
}

// strictly adds what only the reference system accepts: through the API as a
// problem, from a file as a warning that says what becomes of it.
func (c *checker) strictly(path, fate, format string, args ...any) {
	if c.level == Strict {
		c.problem(path, format, args...)
	} else {
		c.warn(path, format+"; "+fate, args...)
	}
}

// field returns the path of a field by its name in the API or in files.
func (c *checker) field(path, api, file string) string {
	if c.level == Lenient {
		return problem.Join(path, file)
	}
	return problem.Join(path, api)
}

// expect reports whether a value is of a kind, and adds a problem where it is
// not.
func (c *checker) expect(value jsonvalue.Value, kind jsonvalue.Kind, path string) bool {
	if value.Kind != kind {
		c.problem(path, "must be %s, is %s", kind, value.Kind)
	}
	return value.Kind == kind
}

// atMost reports whether a list or map has at most as many members as it may,
// and adds a problem where it has more.
func (c *checker) atMost(count, most int, path string) bool {
	if count > most {
		c.problem(path, "must have at most %d members, has %d", most, count)
	}
	return count <= most
}
