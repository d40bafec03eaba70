package page_test

import (
	"fmt"
	"testing"

	"github.com/cadastre-dev/cadastre/page"
)

// TestAPageOfAListMakesFewIDs checks that a page of a list with distinct keys
// makes the ids of its own items only. Lists below many parents are long.
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
