package web_test

import (
	"cmp"
	"fmt"
	"go/types"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

const below = "github.com/cadastre-dev/cadastre/graph"

// way lists the functions of the packages below that this package calls between
// a request and its answer, each at one place.
var way = []string{"(*graph.Preparer).Prepare", "(*graph.Executor).Run"}

// beside lists the other functions of the packages below that this package
// calls.
var beside = []string{
	"(*graph.Executor).Preparer", "graph/document.DefaultLimits", "(*graph.Executor).Places", // when the server starts
	// for refusals before any operation
	"graph.WithRequestID", "graph.WithIdempotencyKey", "graph.RequestID", "graph.ProtocolError",
	"graph.WithFileExport", "graph.IsFileExport", // the path that an export came by
	"graph.ReadAfter", "graph.ReadLatest", // the position that a request sent
	"(*graph.Executor).Release", "(*graph.Answer).FailsForNow", // after the answer
	"(*graph.Executor).Subscribe", "(*graph.Subscription).Next", "(*graph.Subscription).Answer", "(*graph.Subscription).Err", "(*graph.Subscription).End",
}

// timesCalled is the number of calls of the functions that are called more than
// once: Prepare for GraphQL, and for the documents of agents' tools.
var timesCalled = map[string]int{"(*graph.Preparer).Prepare": 2}

// TestAnOperationTakesTwoCalls follows the calls of this package. For an
// operation it calls Prepare and Run, each at one place, and passes neither a
// function nor an object that could call back.
func TestAnOperationTakesTwoCalls(t *testing.T) {
	t.Parallel()
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax}, ".")
	if err != nil || len(loaded) != 1 || len(loaded[0].Errors) > 0 {
		t.Fatalf("load this package: %v %v", err, loaded)
	}
	uses := map[string]int{}
	for identifier, object := range loaded[0].TypesInfo.Uses {
		called, ok := object.(*types.Func)
		if !ok || !isBelow(called.Pkg()) {
			continue
		}
		name := strings.ReplaceAll(called.FullName(), below, "graph")
		uses[name]++
		if !slices.Contains(way, name) && !slices.Contains(beside, name) {
			t.Errorf("%s: %s is called", loaded[0].Fset.Position(identifier.Pos()), name)
		}
		for parameter := range called.Signature().Params().Variables() {
			if back := callsBack(parameter.Type(), map[types.Type]bool{}); back != "" {
				t.Errorf("%s can call back by %s", name, back)
			}
		}
	}
	for _, name := range way {
		if uses[name] != cmp.Or(timesCalled[name], 1) {
			t.Errorf("%s is called at %d places", name, uses[name])
		}
	}
	for _, name := range beside {
		if uses[name] == 0 {
			t.Errorf("%s is not called", name)
		}
	}
}

func isBelow(of *types.Package) bool {
	return of != nil && (of.Path() == below || strings.HasPrefix(of.Path(), below+"/"))
}

// callsBack returns the part of a type that could call the package that made
// it: a function, or an interface with methods. It returns the empty string if
// there is none. Interfaces with unexported methods, and unexported fields, do
// not count, because this package can neither implement nor set them.
func callsBack(of types.Type, seen map[types.Type]bool) string {
	if seen[of] || of.String() == "context.Context" || of.String() == "error" {
		return ""
	}
	seen[of] = true
	var parts []types.Type
	switch under := of.Underlying().(type) {
	case *types.Signature:
		return of.String()
	case *types.Interface:
		if slices.ContainsFunc(slices.Collect(under.Methods()), func(method *types.Func) bool {
			return !method.Exported()
		}) {
			return "" // cannot be implemented elsewhere
		}
		if under.NumMethods() > 0 {
			return of.String()
		}
	case *types.Struct:
		for field := range under.Fields() {
			if field.Exported() {
				parts = append(parts, field.Type())
			}
		}
	case *types.Map:
		parts = []types.Type{under.Key(), under.Elem()}
	case interface{ Elem() types.Type }:
		parts = []types.Type{under.Elem()}
	}
	for _, part := range parts {
		if back := callsBack(part, seen); back != "" {
			return fmt.Sprintf("%s of %s", back, of)
		}
	}
	return ""
}
