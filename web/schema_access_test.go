package web_test

import (
	"testing"

	"github.com/cadastre-dev/cadastre/web"
)

// TestWhoMayReadTheSchema reads the schema by file and by introspection.
func TestWhoMayReadTheSchema(t *testing.T) {
	t.Parallel()
	tokens := []string{"", "reader-token", "admin-token"}
	for _, test := range []struct {
		profile web.Profile
		access  web.SchemaAccess
		file    [3]int    // statuses for the tokens
		asked   [3]string // codes for the tokens
	}{
		{web.Open, "", [3]int{200, 200, 200}, [3]string{"UNAUTHENTICATED", "", ""}},
		{web.Open, web.SchemaForViewers, [3]int{401, 200, 200}, [3]string{"UNAUTHENTICATED", "", ""}},
		{web.Open, web.SchemaForAdmins, [3]int{401, 403, 200},
			[3]string{"UNAUTHENTICATED", "INTROSPECTION_DISABLED", ""}},
		{web.Locked, "", [3]int{401, 200, 200}, [3]string{"INTROSPECTION_DISABLED", "", ""}},
		{web.Locked, web.SchemaForAnyone, [3]int{200, 200, 200}, [3]string{"INTROSPECTION_DISABLED", "", ""}},
		{web.Locked, web.SchemaForAdmins, [3]int{401, 403, 200},
			[3]string{"INTROSPECTION_DISABLED", "INTROSPECTION_DISABLED", ""}},
	} {
		s := start(t, func(o *web.Options) { o.Profile, o.SchemaAccess = test.profile, test.access })
		for i, token := range tokens {
			if got := s.send("GET", "/schema.graphql", "", "X-Auth-Token", token); got.status != test.file[i] {
				t.Errorf("%s, %q, token %q: /schema.graphql is %d", test.profile, test.access, token, got.status)
			}
			for _, query := range []string{
				"{ __schema { queryType { name } } }", `{ viewer { userId } type: __type(name: "Query") { name } }`,
				"{ ...on Query { ...more } } fragment more on Query { __schema { queryType { name } } }",
				`query Q($yes: Boolean = true) { __typename __type(name: "Query") @include(if: $yes) { name } }`,
			} {
				if got := s.query(query, "X-Auth-Token", token); got.code() != test.asked[i] {
					t.Errorf("%s, %q, token %q: %s is %q", test.profile, test.access, token, query, got.body)
				}
			}
			if got := s.query("{ __typename }", "X-Auth-Token", token); token != "" && got.code() != "" {
				t.Errorf("%s, %q, token %q: %s", test.profile, test.access, token, got.body)
			}
		}
	}
}
