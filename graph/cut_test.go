package graph_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// cutOperations read and write with many statements, in and out of
// transactions.
var cutOperations = []string{
	`{ namespaces { totalCount nodes { properties { name title } objects { name } tags { name } resourceTypeAssociations { prefix resourceType { name } } } } }`,
	`{ resources(first: 100) { totalCount nodes { name type { name } metadata { key value } capabilities { name value } tags } } metadataKeys { nodes { key } } }`,
	`{ consumers { nodes { generation allocations { used provider { name inventories { used } } } } } auditEvents(first: 5) { totalCount nodes { key before } } }`,
	`{ exportNamespaces }`,
	`mutation { createTrait(input: {name: "CUSTOM_CUT_%d"}) { trait { name } } }`,
	`mutation { a: createResource(input: {type: "physical:host", name: "cut %[1]d", metadata: [{key: "a", value: "b"}]}) { resource { uuid metadata { key } } } b: createResourceProvider(input: {name: "cut %[1]d"}) { resourceProvider { uuid } } }`,
	`mutation { createNamespace(input: {name: "cut %d", properties: [{name: "p", type: STRING, title: "p"}]}) { namespace { properties { name } } } }`,
}

// cutOperation returns one of the operations, with a unique number.
func cutOperation(chance *rand.Rand, client, i int) string {
	query := cutOperations[chance.IntN(len(cutOperations))]
	if strings.Contains(query, "createNamespace") && i >= ownNamespaces { // a project may have a thousand
		query = `mutation { updateNamespace(input: {name: "Open", description: "cut %d"}) { namespace { description } } }`
	}
	if query[0] != 'm' {
		return query
	}
	return fmt.Sprintf(query, client*1_000_000+i)
}

// TestCutConnectionsAreNoInternalErrors repeatedly ends database connections
// while operations run. An operation that fails must say that the database
// cannot be reached and when to retry, or that the outcome of a change is
// unknown.
func TestCutConnectionsAreNoInternalErrors(t *testing.T) {
	t.Parallel()
	database := storetest.Postgres(t)
	at, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	settings := at.Query()
	settings.Set("application_name", cutName)
	at.RawQuery = settings.Encode()
	s := storetest.Open(t, at.String())
	if err := s.FillEmpty(storetest.AsAdmin(), fixture()); err != nil {
		t.Fatal(err)
	}
	executor := executorOf(t, s)
	killer := storetest.Database(t, database)
	ctx, stop := context.WithCancel(t.Context())
	var cutting, asking sync.WaitGroup
	cutting.Go(func() {
		for ctx.Err() == nil {
			_, _ = killer.ExecContext(ctx, `SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity
				WHERE application_name = $1 ORDER BY random() LIMIT 1) AS one`, cutName)
			time.Sleep(time.Millisecond)
		}
	})
	var mu sync.Mutex
	counted, requests := map[string]int{}, 0
	seed := soak.Seed(t)
	for client := range uint64(4) {
		asking.Go(func() {
			chance := rand.New(rand.NewPCG(seed, client))
			for i := range soak.Count(t, "CADASTRE_SOAK_CUTS", 200) {
				query := cutOperation(chance, int(client), i)
				response := executor.ExecuteWhole(access.WithViewer(ctx, viewers["admin"]), query)
				mu.Lock()
				requests++
				if len(response.Errors) == 0 {
					counted["answered"]++
				}
				for _, err := range response.Errors {
					code := fmt.Sprint(err.Extensions["code"])
					counted[code]++
					if !slices.Contains([]string{"UNAVAILABLE", "OUTCOME_UNKNOWN"}, code) ||
						code == "UNAVAILABLE" && err.Extensions["retryAfter"] == nil {
						t.Errorf("%v of %s", err, query)
					}
				}
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	stop()
	cutting.Wait()
	t.Logf("%d requests were answered %v", requests, counted)
	if counted["answered"] == 0 || counted["UNAVAILABLE"] == 0 {
		t.Errorf("answered and refused: %v", counted)
	}
}

// ownNamespaces is the maximum number of namespaces that a client creates.
const ownNamespaces = 1000

// cutName is the application name of the connections to cut.
const cutName = "cadastre to be cut"
