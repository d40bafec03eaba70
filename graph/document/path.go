package document

import (
	"strconv"
	"strings"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// maxPathBytes bounds a path in extensions.field, and maxSegmentBytes each name
// in it.
const (
	maxPathBytes    = 255
	maxSegmentBytes = 100
)

// path is the position of a value in variables or in a literal, as a member of
// its parent. String formats it only for an error, because the names of a
// request can be long and its members many.
type path struct {
	parent *path
	name   string // "" for a member of a list
	index  int
	// of is the input type that has the input field, or the field that has the
	// argument, as in Query.namespaces. It is empty for a variable and a member
	// of a list.
	of string
}

// root returns the variable or the argument that the value is in.
func (p *path) root() *path {
	for p.parent != nil {
		p = p.parent
	}
	return p
}

// coordinate returns the schema coordinate of the value or of the nearest value
// around it that has one. It is empty for the whole value of a variable.
func (p *path) coordinate() string {
	for p.of == "" && p.parent != nil {
		p = p.parent
	}
	switch {
	case p.of == "":
		return ""
	case p.parent == nil:
		return p.of + "(" + p.name + ":)"
	}
	return p.of + "." + p.name
}

// String returns the path in the form filter.tags[2].name.
func (p *path) String() string {
	var segments []string
	for ; p != nil; p = p.parent {
		switch {
		case p.name == "":
			segments = append(segments, "["+strconv.Itoa(p.index)+"]")
		case p.parent == nil:
			segments = append(segments, text.Clip(p.name, maxSegmentBytes))
		default:
			segments = append(segments, "."+text.Clip(p.name, maxSegmentBytes))
		}
	}
	var out strings.Builder
	for i := len(segments) - 1; i >= 0; i-- {
		out.WriteString(segments[i])
	}
	return text.Clip(out.String(), maxPathBytes)
}

// invalid returns a refusal of the value at the path.
func (p *path) invalid(format string, args ...any) error {
	return problem.Invalid(p.String(), format, args...)
}
