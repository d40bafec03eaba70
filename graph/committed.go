package graph

import (
	"errors"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
)

// madeChanges are the fields of a mutation, by their response names, whose change
// is committed.
type madeChanges struct {
	field  string // that is being written
	fields map[string]bool
}

// note notes the field that was written with a reading.
func (m *madeChanges) note(reading *store.Reading) {
	if m.field == "" || !reading.HasCommitted() {
		return
	}
	if m.fields == nil {
		m.fields = map[string]bool{}
	}
	m.fields[m.field] = true
}

// told returns errors so that those of what is made and cannot be shown say so:
// whoever is told that something was unavailable, or that the time was over, would
// make it again.
func (m *madeChanges) told(list gqlerror.List) gqlerror.List {
	for i, err := range list {
		if len(err.Path) == 0 {
			continue
		}
		name, _ := err.Path[0].(ast.PathName)
		refusal, ok := errors.AsType[*problem.Refusal](store.Refused(err.Err))
		if !m.fields[string(name)] || !ok {
			continue
		}
		kind := refusal.Kind
		switch {
		case errors.Is(kind, problem.ErrUnavailable) || errors.Is(kind, problem.ErrTimeout):
			kind = problem.ErrOutcomeUnknown
		case !errors.Is(kind, problem.ErrTooComplex):
			continue
		}
		told := gqlerror.WrapPath(err.Path, problem.Refuse(kind, "the change is made, and cannot be shown: %s", refusal.Message).Because(refusal.Cause()))
		told.Locations = err.Locations
		list[i] = told
	}
	return list
}
