package dataloader_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/graph/writer"
)

type (
	parent struct{ id int64 }
	child  struct{ of int64 }
	// asked has the keys of each fetch.
	asked struct{ fetches []string }
)

func parentID(p *parent) int64 { return p.id }

// fetch returns a child of each parent that is not 3.
func (a *asked) fetch(_ context.Context, keys []int64, arguments []string) (map[int64][]*child, error) {
	a.fetches = append(a.fetches, fmt.Sprint(keys, arguments))
	found := map[int64][]*child{}
	for _, key := range keys {
		if key != 3 {
			found[key] = []*child{{key}}
		}
	}
	return found, nil
}

var children = dataloader.NewManyBy("parent.children", parentID, (*asked).fetch)

// field returns a field of an operation, and the context of its resolver.
func field(ctx context.Context, number int, above *document.Field) (context.Context, *document.Field) {
	f := &document.Field{Place: number, Parent: above, AST: &ast.Field{Name: fmt.Sprint("f", number)}}
	return &writer.Place{Context: ctx, Field: f}, f
}

func TestALoadIsForAllRowsOfItsPlace(t *testing.T) {
	t.Parallel()
	var a asked
	var alone []string
	ctx := dataloader.WatchAlone(dataloader.With(t.Context()), func(loader string) { alone = append(alone, loader) })
	root, rootField := field(ctx, 0, nil)
	rows := []*parent{{5}, {1}, {3}, {1}, {0}}
	dataloader.Register(root, rows...)
	dataloader.RegisterLater(root, func() []*parent { return []*parent{{7}} })
	_, nodesField := field(ctx, 1, rootField)
	first, firstField := field(ctx, 2, nodesField)
	other, _ := field(ctx, 3, rootField)
	different, _ := field(ctx, 4, nodesField)
	load := func(ctx context.Context, id int64, arguments ...string) string {
		found, err := children.Load(ctx, &a, &parent{id}, arguments)
		if err != nil || found == nil {
			t.Fatalf("%d: got %v, %v", id, found, err)
		}
		var of []string
		for _, one := range found {
			of = append(of, fmt.Sprint(one.of))
		}
		return strings.Join(of, " ")
	}
	for _, one := range []struct {
		ctx       context.Context
		id        int64
		arguments string
		want      string
	}{
		{first, 5, "x", "5"}, {first, 1, "x", "1"}, {first, 3, "x", ""}, {first, 0, "x", ""}, {first, 7, "x", "7"},
		{other, 5, "x", "5"}, // another place, the same arguments
		{different, 5, "y", "5"},
		{first, 9, "x", "9"}, {first, 9, "x", "9"}, // never registered
	} {
		if got := load(one.ctx, one.id, one.arguments); got != one.want {
			t.Errorf("the children of %d: got %q, want %q", one.id, got, one.want)
		}
	}
	if want := []string{"[1 3 5 7] [x]", "[1 3 5 7] [y]", "[9] [x]"}; !slices.Equal(a.fetches, want) {
		t.Errorf("fetched %q, want %q", a.fetches, want)
	}
	if want := []string{"parent.children"}; !slices.Equal(alone, want) {
		t.Errorf("fetched alone %q, want %q", alone, want)
	}
	// The fetched rows are registered at both places.
	below, _ := field(ctx, 5, firstField)
	grandchildren := dataloader.NewValue("child.name", func(c *child) int64 { return c.of },
		func(a *asked, _ context.Context, keys []int64) (map[int64]string, error) {
			a.fetches = append(a.fetches, fmt.Sprint("names ", keys))
			return map[int64]string{5: "five"}, nil
		})
	if name, err := grandchildren.Load(below, &a, &child{5}); name != "five" || err != nil {
		t.Errorf("got %q, %v", name, err)
	}
	if last := a.fetches[len(a.fetches)-1]; last != "names [1 5 7 9]" {
		t.Errorf("fetched %q", last)
	}
}

// TestOnceComputesForEachKeyAndPlace checks that parents with one key share a
// value, and that an error is not kept.
func TestOnceComputesForEachKeyAndPlace(t *testing.T) {
	t.Parallel()
	ctx := dataloader.With(t.Context())
	here, above := field(ctx, 0, nil)
	other, _ := field(ctx, 1, above)
	computed := 0
	at := func(ctx context.Context, key int64, err error) (int, error) {
		return dataloader.Once(ctx, key, func() (int, error) {
			computed++
			return computed, err
		})
	}
	if _, err := at(here, 1, context.Canceled); err == nil {
		t.Error("no error")
	}
	for _, one := range []struct {
		ctx  context.Context
		key  int64
		want int
	}{{here, 1, 2}, {here, 1, 2}, {here, 2, 3}, {other, 1, 4}, {here, 1, 2}} {
		if got, err := at(one.ctx, one.key, nil); got != one.want || err != nil {
			t.Errorf("key %d: %d, %v, want %d", one.key, got, err, one.want)
		}
	}
}

func TestWhatIsSuppliedIsNotFetched(t *testing.T) {
	t.Parallel()
	var a asked
	loader := dataloader.NewMany("parent.children", parentID,
		func(a *asked, ctx context.Context, keys []int64) (map[int64][]*child, error) {
			return a.fetch(ctx, keys, nil)
		})
	ctx := dataloader.With(t.Context())
	root, rootField := field(ctx, 0, nil)
	dataloader.Register(root, &parent{1})
	loader.Supply(root, map[int64][]*child{1: {{8}}})
	below, _ := field(ctx, 1, rootField)
	if found, err := loader.Load(below, &a, &parent{1}); err != nil || len(found) != 1 ||
		found[0].of != 8 || a.fetches != nil {
		t.Errorf("got %v, %v after %q", found, err, a.fetches)
	}
}
