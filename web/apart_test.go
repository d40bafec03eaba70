package web_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

// TestServersTellOfEachOthersChangesWithinASecond has a client on each of two
// servers of one database follow resources, namespaces and providers while the
// other server writes. Each client gets an event within a second of the
// writer's answer, and the changed things are visible by then.
func TestServersTellOfEachOthersChangesWithinASecond(t *testing.T) {
	t.Parallel()
	database := storetest.Postgres(t)
	servers := []*server{startOn(t, database, withoutPoints, web.ServeOptions{}),
		startOn(t, database, withoutPoints, web.ServeOptions{})}
	const times = 5
	followed := map[string]func(key, name string) (event, mutation string){
		"resourceChanged(after: %q) { change { what key } resource { name } }": func(key, name string) (string,
			string) {
			return fmt.Sprintf(`{"change":{"what":"CREATED","key":%q},"resource":{"name":%q}}`, key, name),
				fmt.Sprintf(`createResource(input: {uuid: %q, type: "physical:host", name: %q, visibility: PUBLIC}) { resource { uuid } }`, key, name)
		},
		"namespaceChanged(after: %q) { change { what key } namespace { name } }": func(_, name string) (string,
			string) {
			return fmt.Sprintf(`{"change":{"what":"CREATED","key":%q},"namespace":{"name":%[1]q}}`, name),
				fmt.Sprintf(`createNamespace(input: {name: %q, visibility: PUBLIC}) { namespace { name } }`, name)
		},
		"resourceProviderChanged(after: %q) { change { what key } resourceProvider { name } }": func(key,
			name string) (string, string) {
			return fmt.Sprintf(`{"change":{"what":"CREATED","key":%q},"resourceProvider":{"name":%q}}`, key, name),
				fmt.Sprintf(`createResourceProvider(input: {uuid: %q, name: %q}) { resourceProvider { uuid } }`, key,
					name)
		},
	}
	var took, late []time.Duration // late leaves out the time of ten mutations, which may be long on a busy machine
	number := 0
	for selection, change := range followed {
		for to, s := range servers {
			from := servers[1-to]
			socket := s.connect()
			socket.say(asReader).expect(ack)
			socket.subscribe("1", "subscription { "+fmt.Sprintf(selection, s.latest())+" }")
			for range times {
				number++
				event, mutation := change(storetest.UUID(number), fmt.Sprint("apart-", number))
				began := time.Now()
				if answer := from.query("mutation { " + mutation + " }"); answer.status != http.StatusOK ||
					strings.Contains(answer.body, `"errors"`) {
					t.Fatal(answer.body)
				}
				written := time.Now()
				if text := socket.expect(`{"id":"1","type":"next"`); !strings.Contains(text, event) {
					t.Errorf("told %s, want %s", text, event)
				}
				took = append(took, time.Since(written))
				late = append(late, took[len(took)-1]-10*written.Sub(began))
			}
		}
	}
	slices.Sort(took)
	slices.Sort(late)
	t.Logf("told after %v in the middle, %v at most", took[len(took)/2], took[len(took)-1])
	if most, last := late[len(late)*9/10], late[len(late)-1]; most > patience.Of(t, time.Second) ||
		last > patience.Of(t, 5*time.Second) {
		t.Errorf("one in ten was told later than %v, one after %v", most, last)
	}
}

// latest returns the reader's newest cursor.
func (s *server) latest() string {
	s.t.Helper()
	got := s.query("{ changes { latest } }", "X-Auth-Token", "reader-token").body
	_, rest, _ := strings.Cut(got, `"latest":"`)
	cursor, _, ok := strings.Cut(rest, `"`)
	if !ok {
		s.t.Fatal(got)
	}
	return cursor
}
