package graph_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/problem"
)

// TestTheCodeOfARefusalIsItsOwn checks that the kind of a refusal decides its
// code, and that the cause, with a different kind, does not.
func TestTheCodeOfARefusalIsItsOwn(t *testing.T) {
	t.Parallel()
	unreachable := problem.Refuse(problem.ErrUnavailable, "the database cannot be reached, try again")
	unknown := problem.Refuse(problem.ErrOutcomeUnknown, "the change was made, but its result cannot be read").
		Because(unreachable)
	shown := graph.PresentErrors(context.Background(), slog.New(slog.DiscardHandler),
		gqlerror.List{gqlerror.Wrap(unknown)})
	if len(shown) != 1 || shown[0].Extensions["code"] != string(graph.CodeOutcomeUnknown) {
		t.Errorf("the errors are %v with %v", shown, shown[0].Extensions)
	}
}
