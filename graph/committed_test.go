package graph_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// madeMutations each make a change under a unique name, and read fields that
// take more statements.
var madeMutations = []string{
	`createResource(input: {type: "physical:host", name: "%s", metadata: [{key: "a", value: "b"}]}) { resource { uuid type { name } parent { name } capabilities { name } children { totalCount } } }`,
	`createNamespace(input: {name: "%s", properties: [{name: "p", type: STRING, title: "p"}]}) { namespace { properties { name } objects { name } tags { name } resourceTypeAssociations { id } } }`,
	`createResourceProvider(input: {name: "%s"}) { resourceProvider { name allocations { nodes { used } } resource { uuid type { name } } } }`,
	`importNamespaces(input: {documents: ["{\"namespace\": \"%s\"}"]}) { reports { namespace outcome } }`,
}

// TestAMadeChangeIsToldAsMade ends the context of a mutation, or its
// connections, before each of its statements. If the change is made, no error
// may say UNAVAILABLE or TIMEOUT, because a client would make the change twice.
// If it is not made, no error may say that it is.
func TestAMadeChangeIsToldAsMade(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		direct := storetest.Database(t, database)
		faults := []func(cancel func()){func(cancel func()) { cancel() }}
		if at, err := url.Parse(database); err == nil && at.Scheme == "postgres" {
			name := "cadastre made " + at.Path
			settings := at.Query()
			settings.Set("application_name", name)
			at.RawQuery = settings.Encode()
			database = at.String()
			faults = append(faults, func(func()) {
				_, _ = direct.ExecContext(context.Background(),
					`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1`, name)
			})
		}
		s := storetest.Open(t, database)
		executor := quiet(s)
		told := map[string]int{}
		for f, fault := range faults {
			for m, mutation := range madeMutations {
				for at := 0; ; at++ {
					name, sent := fmt.Sprintf("made %d %d %d", f, m, at), 0
					ctx, cancel := context.WithCancel(access.WithViewer(context.Background(), viewers["admin"]))
					ctx = store.EachStatement(ctx, func(string, any) {
						if sent++; sent == at+1 {
							fault(cancel)
						}
					})
					response := executor.ExecuteWhole(ctx, "mutation { "+fmt.Sprintf(mutation, name)+" }")
					cancel()
					checkTold(t, direct, name, response.Errors, told)
					if sent <= at {
						break
					}
				}
			}
		}
		t.Log(told)
		if told["made OUTCOME_UNKNOWN"] == 0 || told["not made TIMEOUT"] == 0 {
			t.Errorf("told: %v", told)
		}
	})
}

// checkTold compares the errors of a mutation with its effect.
func checkTold(t *testing.T, db *sql.DB, name string, errors gqlerror.List, told map[string]int) {
	t.Helper()
	count := 0
	if err := db.QueryRow(`SELECT count(*) FROM audit_events WHERE after LIKE '%' || $1 || '"%'`, name).
		Scan(&count); err != nil {
		t.Fatal(err)
	}
	made := count > 0
	for _, err := range errors {
		code, says := fmt.Sprint(err.Extensions["code"]), strings.Contains(err.Message, "is made")
		if made {
			told["made "+code]++
		} else {
			told["not made "+code]++
		}
		if made && code != "OUTCOME_UNKNOWN" || !made && says {
			t.Errorf("%s, which is made: %v, answered %s at %v: %s", name, made, code, err.Path, err.Message)
		}
	}
}
