package rest_test

import (
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/auth"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/rest"
	"github.com/cadastre-dev/cadastre/rest/image"
	"github.com/cadastre-dev/cadastre/rest/placement"
	"github.com/cadastre-dev/cadastre/rest/reservation"
	"github.com/cadastre-dev/cadastre/rest/share"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/web"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// viewers are one viewer of each role by their tokens, and a second project.
var viewers = map[string]access.Viewer{
	"admin":   {UserID: "ada", ProjectID: "operations", Roles: []string{access.RoleAdmin}},
	"service": {UserID: "nova", ProjectID: "services", Roles: []string{access.RoleService}},
	"red":     {UserID: "mia", ProjectID: "red", Roles: []string{access.RoleMember, access.RoleReader}},
	"blue":    {UserID: "ben", ProjectID: "blue", Roles: []string{access.RoleMember, access.RoleReader}},
	"reader":  {UserID: "rae", ProjectID: "red", Roles: []string{access.RoleReader}},
	"nobody":  {UserID: "ned", ProjectID: "red"},
}

// doors are all doors and GraphQL over a store.
type doors struct {
	t       *testing.T
	doors   []*rest.Door
	handler http.Handler
}

// newDoors opens every door of a server that limits no rate, so that no answer
// depends on the speed of the machine.
func newDoors(t *testing.T, s *store.Store) doors {
	limits := web.DefaultLimits()
	limits.PrincipalPoints, limits.ServicePoints, limits.AdminPoints, limits.AddressPoints = 0, 0, 0, 0
	return newDoorsWithin(t, s, limits, true)
}

// newDoorsWithin is newDoors with limits. Doors of Placement and Glance answer
// as the reference, or else as with openstack-api-compat: strict.
func newDoorsWithin(t *testing.T, s *store.Store, limits web.Limits, asReference bool) doors {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	made := []*rest.Door{placement.New(s, asReference, log), image.New(s, asReference, log),
		share.New(s, log), reservation.New(s, log)}
	return doors{t, made, web.New(web.Options{
		Executor: graph.NewExecutor(&graph.Resolver{Store: s}, log), Log: log,
		Profile: web.Open, Doors: made, Limits: limits, Memory: 1 << 30,
		Authenticate: auth.New(auth.Tokens(auth.TokensOf(viewers))).Authenticate,
	})}
}

// sent is a request. Its path has the escapes and the query string of a URL.
type sent struct {
	token, method, path, body string
	header                    http.Header
}

type answer struct {
	status int
	header http.Header
	body   string
}

// send sends a request. Without a header Accept it accepts JSON.
func (d doors) send(r sent) answer {
	d.t.Helper()
	recorder := httptest.NewRecorder()
	if !d.serve(recorder, r) {
		return answer{}
	}
	return answer{recorder.Code, recorder.Header(), recorder.Body.String()}
}

// serve sends a request, and reports whether its path is one of a URL.
func (d doors) serve(w http.ResponseWriter, r sent) bool {
	d.t.Helper()
	request, err := http.NewRequestWithContext(d.t.Context(), r.method,
		"http://localhost"+strings.ReplaceAll(r.path, " ", "%20"), strings.NewReader(r.body))
	if err != nil {
		return false
	}
	request.RemoteAddr = "127.0.0.1:1"
	request.Header.Set("Accept", "application/json")
	for name, values := range r.header {
		request.Header[name] = values
	}
	if r.token != "" {
		request.Header.Set("X-Auth-Token", r.token)
	}
	d.handler.ServeHTTP(w, request)
	return true
}

// tables hold everything that the doors can change. Each change is a row of
// changes, too.
var tables = strings.Fields(`allocations capabilities capability_counts capability_values changes consumers inventories metadata_items namespaces
	object_definitions property_definitions provider_aggregates provider_traits resource_classes resource_providers resource_tags
	resource_type_associations resource_types resources tags traits`)

// contents returns the number of rows of each table, and of the newest change.
func (d doors) contents(database *sql.DB) string {
	d.t.Helper()
	var parts []string
	for _, table := range tables {
		parts = append(parts, fmt.Sprintf("SELECT '%s', count(*) FROM %s", table, table))
	}
	parts = append(parts, "SELECT 'newest', coalesce(max(id), 0) FROM changes")
	return strings.Join(storetest.Rows(d.t, database, strings.Join(parts, " UNION ALL ")), "\n")
}

// TestARefusalForLackOfPointsIsLate spends the points of a user. The next request
// is refused after half a second.
func TestARefusalForLackOfPointsIsLate(t *testing.T) {
	t.Parallel()
	limits := web.DefaultLimits()
	limits.PrincipalPoints, limits.AdminPoints = 0.01, 0.01
	d := newDoorsWithin(t, storetest.Open(t, storetest.SQLite(t)), limits, true)
	for range 9 {
		began := time.Now()
		got := d.send(sent{token: "red", method: http.MethodGet, path: "/openstack/placement/traits"})
		if got.status != http.StatusTooManyRequests {
			continue
		}
		if took := time.Since(began); took < time.Second/2 || got.header.Get("Retry-After") == "" {
			t.Errorf("a refusal after %v: %v", took, got.header)
		}
		return
	}
	t.Error("no request is refused")
}
