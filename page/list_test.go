package page_test

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"testing"

	"github.com/cadastre-dev/cadastre/page"
)

// TestAPageOfAListMakesFewIDs checks that a page of a list with distinct keys
// makes the ids of its items only. Lists below many parents are long.
func TestAPageOfAListMakesFewIDs(t *testing.T) {
	t.Parallel()
	items, made, one := make([]string, 1000), 0, 1
	for i := range items {
		items[i] = fmt.Sprintf("%03d", i)
	}
	id := func(item string) string {
		made++
		return "id of " + item
	}
	same := func(item string) string { return item }
	for _, at := range []int{0, 500} {
		request := page.Request{First: &one}
		if at > 0 {
			after := page.Position{List: "list", Key: items[at-1], ID: "id of " + items[at-1]}.Cursor()
			request.After = &after
		}
		made = 0
		found, err := page.OfList("list", page.Order{}, items, request, nil, same, id)
		if err != nil || len(found.Items) != 1 || found.Items[0] != items[at] || made > 2 {
			t.Errorf("after %d: %v, %v with %d ids", at, found.Items, err, made)
		}
	}
}

// TestAPageIsAPartOfTheSortedList compares pages of a shuffled list with the list
// in its order.
func TestAPageIsAPartOfTheSortedList(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 2))
	key, id := func(item int) string { return fmt.Sprintf("%02d", item/7) }, func(item int) string { return fmt.Sprint(item % 7) }
	for range 2000 {
		var sorted []int
		for i := range random.IntN(200) {
			sorted = append(sorted, i)
		}
		items := slices.Clone(sorted)
		if random.IntN(4) > 0 {
			random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		}
		order := page.Order{Field: "NAME", Descending: random.IntN(2) == 0}
		if order.Descending {
			slices.Reverse(sorted)
		}
		size := random.IntN(20)
		request, rest := page.Request{First: &size}, sorted
		backward := random.IntN(2) == 0
		if backward {
			request = page.Request{Last: &size}
		}
		if len(sorted) > 0 && random.IntN(2) == 0 {
			i := random.IntN(len(sorted))
			cursor := page.Position{List: order.Of("list"), Key: key(sorted[i]), ID: id(sorted[i])}.Cursor()
			if backward {
				request.Before, rest = &cursor, sorted[:i]
			} else {
				request.After, rest = &cursor, sorted[i+1:]
			}
		}
		want := rest[:min(size, len(rest))]
		if backward {
			want = rest[max(0, len(rest)-size):]
		}
		got, err := page.OfList("list", order, items, request, nil, key, id)
		if err != nil || !slices.Equal(got.Items, want) || got.HasMore != (len(rest) > size) {
			t.Fatalf("%+v of %v in the order %+v: %v, %v, want %v", request, items, order, got, err, want)
		}
	}
}

// TestASortedListIsReadAsFarAsThePage compares pages of a list that is read in its
// order with pages of the same list in memory, and counts the items that a page
// from the front reads.
func TestASortedListIsReadAsFarAsThePage(t *testing.T) {
	t.Parallel()
	var all []string
	for i := range 500 {
		all = append(all, fmt.Sprintf("item-%03d", i))
	}
	id := func(item string) string { return "id of " + item }
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		length := 7 + random.IntN(2) // of a key: of ten items, or of one
		key := func(item string) string { return item[:length] }
		order := page.Order{Field: "NAME", Descending: random.IntN(3) == 0}
		var request page.Request
		size := random.IntN(30)
		request.First = &size
		if random.IntN(3) == 0 {
			request.First, request.Last = nil, &size
		}
		for _, cursor := range []**string{&request.After, &request.Before} {
			if random.IntN(3) > 0 {
				item := fmt.Sprintf("item-%03d", random.IntN(510))
				id := []string{"a", id(item), "z"}[random.IntN(3)]
				at := page.Position{List: order.Of("list"), Key: key(item), ID: id}.Cursor()
				*cursor = &at
			}
		}
		read := 0
		from := func(at page.Position) iter.Seq[string] {
			return func(yield func(string) bool) {
				start := sort.Search(len(all), func(i int) bool {
					return cmp.Or(cmp.Compare(key(all[i]), at.Key), cmp.Compare(id(all[i]), at.ID)) >= 0
				})
				for _, item := range all[start:] {
					if read++; !yield(item) {
						return
					}
				}
			}
		}
		want, err := page.OfList("list", order, slices.Clone(all), request, nil, key, id)
		if err != nil {
			t.Fatal(err)
		}
		got, err := page.OfSorted("list", order, from, request, nil, key, id)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v in the order %+v: %+v, %v, want %+v", request, order, got, err, want)
		}
		if request.First != nil && !order.Descending && read > size+2 {
			t.Fatalf("%+v: read %d items", request, read)
		}
	}
	negative := -1
	if _, err := page.OfSorted("list", page.Order{Field: "NAME"}, nil, page.Request{First: &negative}, nil,
		id, id); err == nil {
		t.Error("a page of -1 items is accepted")
	}
}
