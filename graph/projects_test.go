package graph_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/internal/soak"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// totals matches values that sum over all projects: the usage of inventories, the
// generation of a provider, and how many more consumers fit.
var totals = regexp.MustCompile(`\b(used|free|shareUsed|generation|atLeast|atMost|exact)\b|\blimitedBy \{[^}]*\}`)

// otherUUID returns the uuid of a consumer of another project than demo.
func otherUUID(i int) string { return fmt.Sprintf("99999999-9999-4999-8999-%012d", i) }

// consumersOfDemo returns claims of the project demo.
func consumersOfDemo(random *rand.Rand) []placement.ConsumerClaim {
	var claims []placement.ConsumerClaim
	for i := range 2 + random.IntN(5) {
		claims = append(claims,
			vcpusOf(fmt.Sprintf("88888888-8888-4888-8888-%012d", i), "demo", "mel", 1+random.IntN(3)))
	}
	return claims
}

func vcpusOf(uuid, project, user string, vcpus int) placement.ConsumerClaim {
	return placement.ConsumerClaim{UUID: uuid, ProjectID: project, UserID: user, Type: new("INSTANCE"),
		Allocations: []placement.ProviderAllocation{{Provider: provider,
			Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: int64(vcpus)}}}},
		Mappings: []placement.Mapping{{Providers: []string{provider}},
			{Suffix: "_" + project, Providers: []string{hiddenRoot}}}}
}

// othersOf returns claims of other projects: count consumers with the given
// total usage.
func othersOf(count, total, from int) []placement.ConsumerClaim {
	var claims []placement.ConsumerClaim
	for i := range count {
		amount := 1
		if i == 0 {
			amount = total - count + 1
		}
		uuid := otherUUID(from + i)
		if i == 0 && from == 0 {
			uuid = publicHost // a public resource
		}
		claims = append(claims, vcpusOf(uuid, []string{"vault", "elsewhere"}[i%2], fmt.Sprint("user", from), amount))
	}
	return claims
}

// openProjects opens the fixture at a fixed time. The given consumers replace
// the consumers of the fixture.
func openProjects(t *testing.T, url string, consumers []placement.ConsumerClaim) *graph.Executor {
	t.Helper()
	content := fixture()
	inventory := &content.Providers[0].Inventories[0]
	inventory.Total, inventory.MaxUnit, inventory.Capacity = 1000, 1000, 1000
	content.Claims = []placement.Claim{{Consumers: consumers}}
	s := openFilled(t, store.Options{URL: url, Log: slog.New(slog.DiscardHandler), Now: func() time.Time {
		return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}}, content)
	storetest.NumberUUIDs(t, s)
	return executorOf(t, s)
}

// TestOtherProjectsLeaveNoTrace sends the same queries to stores that differ
// only in the consumers of other projects. A member and a reader must get the
// same bytes with the same number of statements: completely if the other
// projects have the same total usage, and except for totals if there are no
// other projects.
func TestOtherProjectsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	for engine, url := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite,
		"postgres": storetest.Postgres} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(soak.Rounds(2)) {
				random := rand.New(rand.NewPCG(seed, 29))
				own := consumersOfDemo(random)
				count := 1 + random.IntN(4)
				total := 10 + random.IntN(20)
				w := &projectWorlds{t: t,
					some:   openProjects(t, url(t), slices.Concat(othersOf(count, total, 0), own)),
					others: openProjects(t, url(t), slices.Concat(othersOf(count+3, total, 50), own)),
					none:   openProjects(t, url(t), own)}
				for _, query := range everyQuery(t, w.some.Schema()) {
					w.compare(query)
				}
				for range 60 {
					w.compare(projectQuery(random))
				}
				w.follow(`{ consumers(%s) { totalCount pageInfo { hasNextPage hasPreviousPage endCursor } nodes { uuid generation createdAt } } }`)
				w.follow(`{ resourceProvider(name: "root") { allocations(%s) { totalCount pageInfo { hasNextPage hasPreviousPage endCursor } nodes { used consumer { uuid projectId } } } } }`)
				if w.differ < 20 {
					t.Errorf("administrators see a difference in %d answers only: the queries do not distinguish enough", w.differ)
				}
			}
		})
	}
}

// projectWorlds are stores that differ in the consumers of other projects.
type projectWorlds struct {
	t                  *testing.T
	some, others, none *graph.Executor
	differ             int
}

func (w *projectWorlds) ask(executor *graph.Executor, viewer, query string) string {
	ctx, statements := store.CountStatements(access.WithViewer(w.t.Context(), viewers[viewer]))
	answer := answerText(w.t, executor.ExecuteWhole(ctx, query))
	if strings.Contains(query, "changes") {
		answer = unsealed(answer)
	}
	return fmt.Sprint(statements(), " statements: ", answer)
}

var (
	sealedCursor = regexp.MustCompile(`"[A-Za-z0-9_-]{54}"`)
	changeTime   = regexp.MustCompile(`"changedAt":"[^"]*"`)
)

// unsealed makes the answers of two databases comparable. It numbers the
// cursors of changes, because each database seals them with a different key,
// and masks the times of changes.
func unsealed(answer string) string {
	numbers := map[string]int{}
	answer = sealedCursor.ReplaceAllStringFunc(answer, func(cursor string) string {
		if numbers[cursor] == 0 {
			numbers[cursor] = len(numbers) + 1
		}
		return fmt.Sprintf(`"cursor %d"`, numbers[cursor])
	})
	return changeTime.ReplaceAllString(answer, `"changedAt":"then"`)
}

// compare sends a query to all stores, compares the answers, and returns the
// answer to a member.
func (w *projectWorlds) compare(query string) string {
	w.t.Helper()
	var answer string
	for _, viewer := range []string{"nobody", "reader", "member"} {
		answer = w.ask(w.some, viewer, query)
		if other := w.ask(w.others, viewer, query); answer != other {
			some, others := difference(answer, other)
			w.t.Errorf("%s asks %.300s\namong some consumers of others: %s\namong others: %s", viewer, query, some,
				others)
		}
		bare := totals.ReplaceAllString(query, "__typename")
		if some, none := w.ask(w.some, viewer, bare), w.ask(w.none, viewer, bare); some != none {
			with, without := difference(some, none)
			w.t.Errorf("%s asks %.300s\nwith consumers of others: %s\nwithout: %s", viewer, bare, with, without)
		}
	}
	if w.ask(w.some, "admin", query) != w.ask(w.others, "admin", query) {
		w.differ++
	}
	return answer
}

// difference returns the parts of two strings around their first difference.
func difference(one, other string) (string, string) {
	at := 0
	for at < min(len(one), len(other)) && one[at] == other[at] {
		at++
	}
	from := max(0, at-100)
	return one[from:min(len(one), at+60)], other[from:min(len(other), at+60)]
}

var endCursor = regexp.MustCompile(`"endCursor":"([^"]+)"`)

// follow reads a list page by page, in both directions.
func (w *projectWorlds) follow(query string) {
	w.t.Helper()
	for _, size := range []string{"first: 1", "first: 2"} {
		for arguments := size; ; {
			found := endCursor.FindStringSubmatch(w.compare(fmt.Sprintf(query, arguments)))
			if found == nil {
				break
			}
			w.compare(fmt.Sprintf(query, fmt.Sprintf(`last: 2, before: %q`, found[1])))
			arguments = fmt.Sprintf(`%s, after: %q`, size, found[1])
		}
	}
}

// projectQuery returns a random query of consumers, allocations and usages.
func projectQuery(random *rand.Rand) string {
	pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	project, user := pick("demo", "vault", "elsewhere", "absent"), pick("mel", "user0", "user50")
	filter := pick("", fmt.Sprintf("projectId: %q", project), fmt.Sprintf("userId: %q", user), `type: "INSTANCE"`,
		fmt.Sprintf("provider: %q", provider), fmt.Sprintf("projectId: %q, userId: %q", project, user),
		fmt.Sprintf("withoutResource: %v, olderThan: %q", random.IntN(2) == 0,
			pick("2025-01-01T00:00:00Z", "2027-01-01T00:00:00Z")))
	uuid := pick(publicHost, otherUUID(random.IntN(3)), otherUUID(50+random.IntN(3)),
		fmt.Sprintf("88888888-8888-4888-8888-%012d", random.IntN(6)))
	consumer := `{ id uuid projectId userId type generation createdAt updatedAt allocations { used resourceClass provider { name allocations { totalCount nodes { used consumer { uuid resource { name } } } } } } }`
	return pick(
		fmt.Sprintf(`{ consumers(filter: {%s}, orderBy: {field: CREATED_AT, direction: %s}, %s) { totalCount nodes %s } }`, filter, pick("ASC", "DESC"), pick("first: 2", "last: 3", "first: 100"), consumer),
		fmt.Sprintf(`{ consumer(uuid: %q) %s }`, uuid, consumer),
		fmt.Sprintf(`{ nodes(ids: [%q]) { id ... on Consumer %s } }`,
			page.GlobalID(page.KindConsumer, uuid, ""), consumer),
		fmt.Sprintf(`{ usages(projectId: %q%s) { consumerType consumerCount usages { resourceClass used } } }`, project,
			pick("", fmt.Sprintf(", userId: %q", user))),
		fmt.Sprintf(`{ resourceProviders { nodes { name inventories { used capacity } allocations(%s) { totalCount edges { cursor node { used consumer { uuid } } } } } } }`, pick("first: 1", "last: 2", "first: 50")),
		fmt.Sprintf(`{ resource(uuid: %q) { consumer { uuid userId } allocations { used } provider { allocations { totalCount nodes { consumer { uuid userId } } } } } }`, publicHost),
	)
}

// TestConsumersAreFoundByTheirResource filters consumers by whether they have a
// resource and by age. Some have the uuid of a resource that only some viewers
// see. The answers must agree with the resource that each consumer shows.
func TestConsumersAreFoundByTheirResource(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := openProjects(t, url,
			[]placement.ConsumerClaim{vcpusOf(publicHost, "demo", "mel", 1), vcpusOf(hiddenHost, "demo", "mel", 1),
				vcpusOf(otherUUID(1), "demo", "mel", 1), vcpusOf(otherUUID(2), "vault", "rae", 1)})
		listed := regexp.MustCompile(`\{"uuid":"[^"]*","resource":(null|\{[^}]*\})\}`)
		found := map[string]int{}
		for _, viewer := range []string{"nobody", "reader", "member", "service", "admin"} {
			list := func(filter string) []string {
				return listed.FindAllString(askAs(t, executor, viewers[viewer],
					`{ consumers(filter: {`+filter+`}) { nodes { uuid resource { name } } } }`), -1)
			}
			var with, without []string
			for _, row := range list("") {
				if strings.Contains(row, `"resource":null`) {
					without = append(without, row)
				} else {
					with = append(with, row)
				}
			}
			found[fmt.Sprint(len(with), " and ", len(without))]++
			for filter, want := range map[string][]string{"withoutResource: true": without,
				"withoutResource: false":                                       with,
				`olderThan: "2026-01-01T00:00:00Z"`:                            nil,
				`olderThan: "2026-01-01T00:00:00.001Z", withoutResource: true`: without} {
				if got := list(filter); !slices.Equal(got, want) {
					t.Errorf("%s, %s: got %v, want %v", viewer, filter, got, want)
				}
			}
		}
		if found["2 and 2"] == 0 || found["1 and 2"] == 0 {
			t.Errorf("the viewers see consumers with and without a resource: %v", found)
		}
	})
}

// TestUnusableUUIDsAreRefusedAlike creates resources with UUIDs that cannot be
// used. The answer and the number of statements must not reveal the reason.
func TestUnusableUUIDsAreRefusedAlike(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := executorOf(t, openFixture(t, url))
		create := func(viewer, uuid string) (string, int) {
			ctx, statements := store.CountStatements(access.WithViewer(t.Context(), viewers[viewer]))
			query := `mutation { createResource(input: {type: "physical:host", name: "x", uuid: "` + uuid +
				`"}) { resource { id } } }`
			return strings.ReplaceAll(answerText(t, executor.Execute(ctx, &graphql.RawParams{Query: query})), uuid,
				"$"), statements()
		}
		for _, viewer := range []string{"member", "service"} {
			visible, statements := create(viewer, publicHost)
			if !strings.Contains(visible, `"ALREADY_EXISTS"`) || !strings.Contains(visible, `"input.uuid"`) {
				t.Errorf("%s takes a uuid that is taken: %s", viewer, visible)
			}
			if hidden, as := create(viewer, hiddenHost); hidden != visible || as != statements {
				t.Errorf("%s learns whose uuid it is in %d and %d statements:\n%s\n%s",
					viewer, statements, as, visible, hidden)
			}
			for _, reserved := range []string{"00000000-0000-0000-0000-000000000000",
				"ffffffff-ffff-ffff-ffff-ffffffffffff"} {
				if answer, _ := create(viewer, reserved); answer != visible {
					t.Errorf("%s takes %s: %s", viewer, reserved, answer)
				}
			}
		}
	})
}

// TestPolicyOpensConsumers queries the consumers of another project as members
// with an override that allows it, or that allows placement writes.
func TestPolicyOpensConsumers(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		executor := openProjects(t, url, othersOf(2, 5, 0))
		for rule, want := range map[string]bool{"consumers.readAny": true,
			"placement.write": true, "placement.read": false} {
			policy, err := access.NewPolicy(map[string][]string{rule: {access.RoleMember}})
			if err != nil {
				t.Fatal(err)
			}
			answer := askAs(t, executor, viewers["member"].WithPolicy(policy),
				`{ consumers { totalCount nodes { projectId } } usages(projectId: "vault") { consumerCount }
				resourceProvider(name: "root") { allocations { totalCount nodes { used } } } }`)
			if strings.Contains(answer, `"totalCount":2`) != want ||
				strings.Contains(answer, `"consumerCount":1`) != want || strings.Contains(answer, `"errors"`) {
				t.Errorf("with %s for members they see: %s", rule, answer)
			}
		}
		policy := newPolicy(t, map[string][]string{"updateResourceProvider": {access.RoleMember}})
		answer := askAs(t, executor, viewers["member"].WithPolicy(policy), `mutation {
			updateResourceProvider(input: {provider: "`+provider+`", newName: "root", dryRun: true}) {
				resourceProvider { allocations { totalCount } } } }`)
		if !strings.Contains(answer, `"totalCount":0`) {
			t.Errorf("with a field of placement.write for members they see: %s", answer)
		}
		consumer := otherUUID(1)
		for _, mutation := range []string{
			`deleteAllocations(input: {consumer: "$"}) { consumer { projectId userId } }`,
			`deleteAllocationsForMany(input: {consumers: ["$"], dryRun: true}) { results { consumer { projectId } } }`,
			`confirmAllocations(input: {consumers: ["$"]}) { consumers { projectId } }`,
			`setAllocations(input: {consumers: [{uuid: "$", projectId: "demo", userId: "u", generation: 1, allocations: []}]}) { consumers { uuid } }`,
			`setAllocations(input: {dryRun: true, consumers: [{uuid: "` + noUUID + `", projectId: "vault", userId: "u", allocations: [{provider: "` + provider + `", resources: [{resourceClass: "VCPU", amount: 1}]}]}]}) { consumers { uuid } }`,
			`applyPlan(input: {moves: [{consumer: "$", consumerGeneration: 1, allocations: [{provider: "` + provider + `", resources: [{resourceClass: "VCPU", amount: 1}]}]}]}) { results { consumer { projectId } } }`,
			`reshape(input: {inventories: [{provider: "` + provider + `", generation: 1, inventories: []}], consumers: [{uuid: "$", projectId: "demo", userId: "u", allocations: []}]}) { consumers { uuid } }`,
			`place(input: {dryRun: true, request: {resources: [{resourceClass: "VCPU", amount: 1}]}, consumers: [{uuid: "` + noUUID + `", projectId: "demo", userId: "u"}], policy: {hosts: SAME, consumers: ["$"]}}) { results { consumer { uuid } } }`,
			`place(input: {dryRun: true, request: {resources: [{resourceClass: "VCPU", amount: 1}]}, consumers: [{uuid: "` + noUUID + `", projectId: "demo", userId: "u"}], policy: {hosts: DISTINCT, group: {projectId: "vault"}}}) { results { consumer { uuid } } }`,
		} {
			field := mutation[:strings.Index(mutation, "(")]
			policy := newPolicy(t, map[string][]string{field: {access.RoleMember}})
			answer := askAs(t, executor, viewers["member"].WithPolicy(policy),
				"mutation { "+strings.ReplaceAll(mutation, "$", consumer)+" }")
			if !strings.Contains(answer, `"data":{"`+field+`":null}`) || !strings.Contains(answer, `"NOT_FOUND"`) &&
				!strings.Contains(answer, "a claim for other projects needs the role admin or service") {
				t.Errorf("with %s for members they see: %s", field, answer)
			}
		}
	})
}
