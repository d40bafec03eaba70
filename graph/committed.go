package graph

import (
	"errors"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
)

// madeChanges has the response names of the fields of a mutation that have
// committed a change.
type madeChanges struct {
	field  string // the field that is being written
	fields map[string]bool
}

// note records the current field if its reading has committed a change.
func (m *madeChanges) note(reading *store.Reading) {
	if m.field == "" || !reading.HasCommitted() {
		return
	}
	if m.fields == nil {
		m.fields = map[string]bool{}
	}
	m.fields[m.field] = true
}

// told returns the errors of a mutation. If a committed field failed with
// UNAVAILABLE, TIMEOUT or QUERY_TOO_COMPLEX, its error says that the change was
// made. The first two codes become OUTCOME_UNKNOWN, because a client that got
// them would make the change again.
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
		told := gqlerror.WrapPath(err.Path,
			problem.Refuse(kind, "the change was made, but its result cannot be read: %s",
				refusal.Message).Because(refusal.Cause()))
		told.Locations = err.Locations
		list[i] = told
	}
	return list
}
