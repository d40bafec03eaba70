package graph_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/graph"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

var (
	countedClasses = []string{"VCPU", "MEMORY_MB", "DISK_GB"}
	countedTraits  = []string{"HW_CPU_X86_AVX", "HW_NUMA_ROOT", "STORAGE_DISK_SSD"}
)

func countedUUID(digit string, i int) string {
	return fmt.Sprintf("%s-0000-4000-8000-%012d", strings.Repeat(digit, 8), i)
}

// countedCloud returns random trees of providers and consumers of several
// projects, users and types.
func countedCloud(random *rand.Rand) store.Content {
	var content store.Content
	some := func(of []string) []string {
		return slices.DeleteFunc(slices.Sorted(slices.Values(of)), func(string) bool { return random.IntN(2) == 0 })
	}
	for i := range 40 {
		p := placement.Provider{UUID: countedUUID("d", i),
			Name: fmt.Sprintf("%s %d", []string{"Host", "host", "ÄRGER", "ärger"}[i%4], i), Traits: some(countedTraits),
			Aggregates: some([]string{countedUUID("a", 1), countedUUID("a", 2)})}
		if i > 0 && random.IntN(3) > 0 {
			p.Parent = countedUUID("d", random.IntN(i))
		}
		for _, class := range some(countedClasses) {
			inventory := placement.Inventory{ResourceClass: class, Total: int32(1 + random.IntN(100)), MinUnit: 1,
				MaxUnit: 100, StepSize: 1, AllocationRatio: []float64{0, 1, 1.5, 16}[random.IntN(4)]}
			inventory.Reserved = int32(random.IntN(int(inventory.Total)))
			inventory.Capacity = placement.Capacity(inventory.Total, inventory.Reserved, inventory.AllocationRatio)
			p.Inventories = append(p.Inventories, inventory)
		}
		content.Providers = append(content.Providers, p)
	}
	for i := range 60 {
		claim := placement.ConsumerClaim{UUID: countedUUID("c", i),
			ProjectID: []string{"demo", "elsewhere", "operations"}[random.IntN(3)],
			UserID:    []string{"mel", "ada", "Zoe"}[random.IntN(3)]}
		if random.IntN(3) > 0 {
			claim.Type = new([]string{"INSTANCE", "MIGRATION"}[random.IntN(2)])
		}
		p := &content.Providers[random.IntN(len(content.Providers))]
		for k := range p.Inventories {
			if inventory := &p.Inventories[k]; inventory.Capacity > inventory.Used && random.IntN(2) == 0 {
				amount := 1 + random.Int64N(min(inventory.Capacity-inventory.Used, 100))
				if len(claim.Allocations) == 0 {
					claim.Allocations = []placement.ProviderAllocation{{Provider: p.UUID}}
				}
				claim.Allocations[0].Resources = append(claim.Allocations[0].Resources,
					placement.Amount{ResourceClass: inventory.ResourceClass, Amount: amount})
				inventory.Used += amount
			}
		}
		if len(claim.Allocations) > 0 {
			content.Claims = append(content.Claims, placement.Claim{Consumers: []placement.ConsumerClaim{claim}})
		}
	}
	for i := range content.Providers { // Fill counts the usage
		for k := range content.Providers[i].Inventories {
			content.Providers[i].Inventories[k].Used = 0
		}
	}
	return content
}

// countedProvider is a provider in an answer.
type countedProvider struct {
	UUID, Name         string
	Root               struct{ UUID, Name string }
	Parent             *struct{ UUID string }
	Traits, Aggregates []string
	Inventories        []countedInventory
}

type countedInventory struct {
	ResourceClass                         string
	Total, Reserved, Capacity, Used, Free int64
}

// countedSum is a row of capacity.
type countedSum struct {
	Aggregate, Trait *string
	Root             *struct{ Name string }
	countedInventory
	ShareUsed *float64
	Providers int
}

func (s countedSum) group() string {
	switch {
	case s.Aggregate != nil:
		return *s.Aggregate
	case s.Trait != nil:
		return *s.Trait
	case s.Root != nil:
		return s.Root.Name
	}
	return ""
}

func (s countedSum) text() string {
	share := "none"
	if s.ShareUsed != nil {
		share = fmt.Sprintf("%.9g", *s.ShareUsed)
	}
	return fmt.Sprint(s.group(), " ", s.countedInventory, " ", share, " ", s.Providers)
}

// counting sends queries as a viewer and decodes the data.
type counting struct {
	t        *testing.T
	executor *graph.Executor
}

func (c counting) ask(viewer, query string, into any) {
	c.t.Helper()
	response := c.executor.Execute(access.WithViewer(c.t.Context(), viewers[viewer]), &graphql.RawParams{Query: query})
	if err := json.Unmarshal(response.Data, into); err != nil || len(response.Errors) > 0 {
		c.t.Fatalf("%v %v: %s", err, response.Errors, query)
	}
}

// all reads a connection in small pages, and compares the rows with its count.
func all[Row any](c counting, viewer, field, arguments, selected string, size int) []Row {
	c.t.Helper()
	var rows []Row
	for after, more := "null", true; more; {
		var answer map[string]struct {
			Nodes      []Row
			TotalCount int
			PageInfo   struct {
				HasNextPage bool
				EndCursor   *string
			}
		}
		c.ask(viewer,
			fmt.Sprintf("{ %s(first: %d, after: %s%s) { nodes { %s } totalCount pageInfo { hasNextPage endCursor } } }",
				field, size, after, arguments, selected), &answer)
		page := answer[field]
		rows = append(rows, page.Nodes...)
		if more = page.PageInfo.HasNextPage; more {
			after = fmt.Sprintf("%q", *page.PageInfo.EndCursor)
		} else if page.TotalCount != len(rows) {
			c.t.Fatalf("%s%s counts %d, and has %d rows", field, arguments, page.TotalCount, len(rows))
		}
	}
	return rows
}

const countedFields = `uuid name root { uuid name } parent { uuid } traits aggregates inventories { resourceClass total reserved capacity used free }`

// providerFilter is a random filter with a function that selects the same
// providers.
type providerFilter struct {
	text    string
	selects func(countedProvider) bool
}

func randomProviderFilter(random *rand.Rand) providerFilter {
	has := func(p countedProvider, class string) bool {
		return slices.ContainsFunc(p.Inventories, func(i countedInventory) bool { return i.ResourceClass == class })
	}
	class, trait, roots := countedClasses[random.IntN(3)], countedTraits[random.IntN(3)], random.IntN(2) == 0
	searched := []string{"ost 1", "HOST", "ärger", "00000003", "3", ""}[random.IntN(6)]
	folded := strings.ToLower
	filters := []providerFilter{
		{"", func(countedProvider) bool { return true }},
		{fmt.Sprintf("hasClass: %q", class), func(p countedProvider) bool { return has(p, class) }},
		{fmt.Sprintf("roots: %v", roots), func(p countedProvider) bool { return (p.Parent == nil) == roots }},
		{fmt.Sprintf("search: %q", searched), func(p countedProvider) bool {
			return strings.Contains(folded(p.Name), folded(searched)) || strings.Contains(p.UUID, folded(searched))
		}},
		{fmt.Sprintf("requiredAll: [%q]", trait), func(p countedProvider) bool {
			return slices.Contains(p.Traits, trait)
		}},
		{fmt.Sprintf("inTree: %q", countedUUID("d", 0)), func(p countedProvider) bool {
			return p.Root.UUID == countedUUID("d", 0)
		}},
	}
	a, b := filters[random.IntN(len(filters))], filters[random.IntN(len(filters))]
	if a.text == b.text || strings.SplitN(a.text, ":", 2)[0] == strings.SplitN(b.text, ":", 2)[0] {
		return a
	}
	return providerFilter{a.text + " " + b.text, func(p countedProvider) bool { return a.selects(p) && b.selects(p) }}
}

// sumsOf adds up providers in groups, one by one.
func sumsOf(providers []countedProvider, by string, classes []string) []string {
	type key struct{ group, class string }
	sums := map[key]countedSum{}
	for _, p := range providers {
		groups := map[string][]string{"RESOURCE_CLASS": {""}, "AGGREGATE": p.Aggregates,
			"TRAIT": p.Traits, "ROOT": {p.Root.Name}}[by]
		if len(groups) == 0 {
			groups = []string{""}
		}
		for _, group := range groups {
			for _, i := range p.Inventories {
				if classes != nil && !slices.Contains(classes, i.ResourceClass) {
					continue
				}
				s := sums[key{group, i.ResourceClass}]
				s.countedInventory = countedInventory{i.ResourceClass, s.Total + i.Total, s.Reserved + i.Reserved,
					s.Capacity + i.Capacity, s.Used + i.Used, s.Free + i.Free}
				s.Providers++
				s.Trait = &group
				if s.ShareUsed = nil; s.Capacity > 0 {
					s.ShareUsed = new(float64(s.Used) / float64(s.Capacity))
				}
				sums[key{group, i.ResourceClass}] = s
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.class, b.class))
	})
	var texts []string
	for _, key := range keys {
		texts = append(texts, sums[key].text())
	}
	return texts
}

// TestCapacityIsTheSumOfInventories compares capacity, the capacity of trees,
// and the orders and filters of providers with sums over all providers.
func TestCapacityIsTheSumOfInventories(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		random := rand.New(rand.NewPCG(3, 15))
		if err := s.FillEmpty(access.WithViewer(t.Context(), viewers["admin"]), countedCloud(random)); err != nil {
			t.Fatal(err)
		}
		c := counting{t, executorOf(t, s)}
		everyone := all[countedProvider](c, "reader", "resourceProviders", "", countedFields, 1000)
		if len(everyone) != 40 {
			t.Fatalf("%d providers", len(everyone))
		}
		for range 60 {
			filter := randomProviderFilter(random)
			wanted := slices.DeleteFunc(slices.Clone(everyone), func(p countedProvider) bool {
				return !filter.selects(p)
			})
			by := []string{"RESOURCE_CLASS", "AGGREGATE", "TRAIT", "ROOT"}[random.IntN(4)]
			arguments, classes := fmt.Sprintf(", groupBy: %s, filter: {%s}", by, filter.text), []string(nil)
			if random.IntN(3) == 0 {
				classes = []string{"VCPU", "DISK_GB"}
				arguments += `, resourceClasses: ["VCPU", "DISK_GB"]`
			}
			rows := all[countedSum](c, "reader", "capacity", arguments,
				`resourceClass aggregate trait root { name } total reserved capacity used free shareUsed providers`,
				1+random.IntN(9))
			var got []string
			for _, row := range rows {
				got = append(got, row.text())
			}
			if want := sumsOf(wanted, by, classes); !slices.Equal(got, want) {
				t.Errorf("capacity%s: got %q, want %q", arguments, got, want)
			}
			c.compareOrder(random, filter, wanted)
		}
		for _, p := range everyone {
			var answer struct {
				ResourceProvider struct{ TreeCapacity []countedSum }
			}
			c.ask("reader",
				fmt.Sprintf(`{ resourceProvider(uuid: %q) { treeCapacity { resourceClass total reserved capacity used free shareUsed providers } } }`, p.UUID), &answer)
			var got []string
			for _, row := range answer.ResourceProvider.TreeCapacity {
				got = append(got, row.text())
			}
			if want := sumsOf(c.below(everyone, p), "RESOURCE_CLASS", nil); !slices.Equal(got, want) {
				t.Errorf("below %s: got %q, want %q", p.Name, got, want)
			}
		}
	})
}

// below returns a provider and all providers below it.
func (c counting) below(everyone []countedProvider, top countedProvider) []countedProvider {
	found := []countedProvider{top}
	for _, p := range everyone {
		if p.Parent != nil && p.Parent.UUID == top.UUID {
			found = append(found, c.below(everyone, p)...)
		}
	}
	return found
}

// compareOrder reads a list of providers, ordered by an inventory, in small
// pages. It compares the list with the same providers sorted one by one.
func (c counting) compareOrder(random *rand.Rand, filter providerFilter, wanted []countedProvider) {
	c.t.Helper()
	field, direction, class := []string{"FREE", "SHARE_USED"}[random.IntN(2)],
		[]string{"ASC", "DESC"}[random.IntN(2)], countedClasses[random.IntN(3)]
	arguments := fmt.Sprintf(", filter: {%s}, orderBy: {field: %s, direction: %s, resourceClass: %q}",
		filter.text, field, direction, class)
	// number returns the sort key of a provider, or false if the provider comes
	// last.
	number := func(p countedProvider) (float64, bool) {
		for _, i := range p.Inventories {
			switch {
			case i.ResourceClass != class:
			case field == "FREE":
				return float64(i.Free), true
			case i.Capacity > 0:
				return float64(i.Used) / float64(i.Capacity), true
			}
		}
		return 0, false
	}
	slices.SortFunc(wanted, func(a, b countedProvider) int {
		x, xIs := number(a)
		y, yIs := number(b)
		if xIs != yIs {
			return map[bool]int{true: -1, false: 1}[xIs]
		}
		if direction == "DESC" {
			x, y, a, b = y, x, b, a
		}
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a.UUID, b.UUID))
	})
	names := func(providers []countedProvider) (names []string) {
		for _, p := range providers {
			names = append(names, p.Name)
		}
		return names
	}
	if got, want := names(all[countedProvider](c, "reader", "resourceProviders", arguments, "uuid name",
		1+random.IntN(9))), names(wanted); !slices.Equal(got, want) {
		c.t.Errorf("resourceProviders%s: got %q, want %q", arguments, got, want)
	}
}

// countedUsage is one group of usages.
type countedUsage struct {
	ProjectID, UserID, ConsumerType *string
	ConsumerCount                   int
	Usages                          []struct {
		ResourceClass string
		Used          int64
	}
}

// TestUsagesAreTheSumOfAllocations compares usages of every grouping, with and
// without conditions, with the allocations of all consumers. Administrators see
// all projects, members see their own.
func TestUsagesAreTheSumOfAllocations(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		random := rand.New(rand.NewPCG(4, 15))
		if err := s.FillEmpty(access.WithViewer(t.Context(), viewers["admin"]), countedCloud(random)); err != nil {
			t.Fatal(err)
		}
		c := counting{t, executorOf(t, s)}
		type consumer struct {
			ProjectID, UserID string
			Type              *string
			Allocations       []struct {
				ResourceClass string
				Used          int64
			}
		}
		everyone := all[consumer](c, "admin", "consumers", "",
			"projectId userId type allocations { resourceClass used }", 1000)
		for range 80 {
			viewer, by := []string{"admin", "service", "member", "foreign"}[random.IntN(4)],
				[]string{"PROJECT", "USER", "TYPE"}[random.IntN(3)]
			arguments, conditions := "groupBy: "+by, []func(consumer) bool{}
			key := func(one consumer) string {
				return map[string]string{"PROJECT": one.ProjectID, "USER": one.UserID, "TYPE": valueOr(one.Type)}[by]
			}
			for name, of := range map[string]struct {
				value string
				has   func(consumer) string
			}{
				"projectId": {[]string{"demo", "elsewhere", "nothing"}[random.IntN(3)], func(one consumer) string {
					return one.ProjectID
				}},
				"userId":       {"mel", func(one consumer) string { return one.UserID }},
				"consumerType": {"INSTANCE", func(one consumer) string { return valueOr(one.Type) }},
			} {
				if random.IntN(4) == 0 {
					arguments += fmt.Sprintf(", %s: %q", name, of.value)
					conditions = append(conditions, func(one consumer) bool { return of.has(one) == of.value })
				}
			}
			if viewer == "member" || viewer == "foreign" {
				conditions = append(conditions, func(one consumer) bool {
					return one.ProjectID == viewers[viewer].ProjectID
				})
			}
			groups, used := map[string]int{}, map[[2]string]int64{}
			for _, one := range everyone {
				if slices.ContainsFunc(conditions, func(holds func(consumer) bool) bool { return !holds(one) }) {
					continue
				}
				groups[key(one)]++
				for _, allocation := range one.Allocations {
					used[[2]string{key(one), allocation.ResourceClass}] += allocation.Used
				}
			}
			var want []string
			for _, group := range slices.Sorted(maps.Keys(groups)) {
				text := fmt.Sprint(group, " ", groups[group])
				for _, class := range slices.Sorted(slices.Values(countedClasses)) {
					if sum, ok := used[[2]string{group, class}]; ok {
						text += fmt.Sprint(" ", class, " ", sum)
					}
				}
				want = append(want, text)
			}
			if got := c.usages(viewer, by, arguments, 1+random.IntN(3)); !slices.Equal(got, want) {
				t.Errorf("usages(%s) as %s: got %q, want %q", arguments, viewer, got, want)
			}
		}
	})
}

func valueOr(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// usages reads usages in pages, and returns each group as a string.
func (c counting) usages(viewer, by, arguments string, size int) []string {
	c.t.Helper()
	var texts []string
	for after := ""; ; {
		var answer struct{ Usages []countedUsage }
		c.ask(viewer,
			fmt.Sprintf("{ usages(%s, first: %d%s) { projectId userId consumerType consumerCount usages { resourceClass used } } }", arguments, size, after), &answer)
		for _, group := range answer.Usages {
			keys := map[string]*string{"PROJECT": group.ProjectID, "USER": group.UserID, "TYPE": group.ConsumerType}
			text := fmt.Sprint(valueOr(keys[by]), " ", group.ConsumerCount)
			after = fmt.Sprintf(", after: %q", valueOr(keys[by]))
			for _, usage := range group.Usages {
				text += fmt.Sprint(" ", usage.ResourceClass, " ", usage.Used)
			}
			delete(keys, by)
			for _, other := range keys {
				if other != nil {
					c.t.Errorf("usages(%s): a group has another key, %q", arguments, *other)
				}
			}
			texts = append(texts, text)
		}
		if len(answer.Usages) < size {
			return texts
		}
	}
}

// TestCapacityAndUsagesAreOfOneInstant reads both in one answer while other
// clients claim and release. The used capacity must equal the usages of
// consumers.
func TestCapacityAndUsagesAreOfOneInstant(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if err := s.FillEmpty(access.WithViewer(t.Context(), viewers["admin"]),
			countedCloud(rand.New(rand.NewPCG(5, 15)))); err != nil {
			t.Fatal(err)
		}
		c := counting{t, executorOf(t, s)}
		c.ask("admin",
			fmt.Sprintf(`mutation { setInventory(input: {provider: %q, inventory: {resourceClass: "VCPU", total: 100000}}) { __typename } }`, countedUUID("d", 0)), &struct{}{})
		done := make(chan struct{})
		var writers sync.WaitGroup
		for writer := range 3 {
			writers.Add(1)
			go func() {
				defer writers.Done()
				for {
					select {
					case <-done:
						return
					default:
					}
					uuid := countedUUID("e", writer)
					claim := fmt.Sprintf(`mutation { setAllocations(input: {consumers: [{uuid: %q, projectId: "demo", userId: "mel", allocations: [{provider: %q, resources: [{resourceClass: "VCPU", amount: %d}]}]}]}) { __typename } }`,
						uuid, countedUUID("d", 0), 1+writer)
					for _, query := range []string{claim,
						fmt.Sprintf(`mutation { deleteAllocations(input: {consumer: %q}) { __typename } }`, uuid)} {
						if answer := askAs(t, c.executor, viewers["admin"],
							query); strings.Contains(answer, `"code":`) {
							t.Errorf("%s: %s", query, answer)
							return
						}
					}
				}
			}()
		}
		for range 40 {
			var answer struct {
				Capacity struct{ Nodes []countedSum }
				Usages   []countedUsage
			}
			c.ask("admin",
				`{ capacity { nodes { resourceClass used } } usages(groupBy: PROJECT) { usages { resourceClass used } } }`, &answer)
			used := map[string]int64{}
			for _, group := range answer.Usages {
				for _, usage := range group.Usages {
					used[usage.ResourceClass] += usage.Used
				}
			}
			for _, sum := range answer.Capacity.Nodes {
				if used[sum.ResourceClass] != sum.Used {
					t.Errorf("%d of %s are used, and consumers use %d", sum.Used,
						sum.ResourceClass, used[sum.ResourceClass])
				}
			}
		}
		close(done)
		writers.Wait()
	})
}

// TestCapacityRefusesBadInput sends invalid arguments and expects all problems
// in one answer.
func TestCapacityRefusesBadInput(t *testing.T) {
	t.Parallel()
	executor := executorOf(t, openFixture(t, storetest.SQLite(t)))
	for query, fields := range map[string][]string{
		`{ capacity(filter: {resource: {matching: "["}, hasClass: "NONE"}) { totalCount } }`: {"filter.resource.matching", "filter.hasClass"},
		`{ capacity(resourceClasses: ["NONE", "bad"], first: 1001, filter: {hasClass: "NONE", search: "` +
			strings.Repeat("x", 201) + `"}) { totalCount } }`: {"resourceClasses[0]", "resourceClasses[1]", "first",
			"filter.hasClass", "filter.search"},
		`{ capacity(groupBy: TRAIT, after: "x") { totalCount } }`:                                                            {"after"},
		`{ resourceProviders(orderBy: {field: FREE}) { totalCount } }`:                                                       {"orderBy.resourceClass"},
		`{ resourceProviders(orderBy: {field: SHARE_USED, resourceClass: "NONE"}, filter: {hasClass: "x"}) { totalCount } }`: {"orderBy.resourceClass", "filter.hasClass"},
		`{ resourceProviders(orderBy: {field: NAME, resourceClass: "VCPU"}) { totalCount } }`:                                {"orderBy.resourceClass"},
		`{ usages(projectId: "", userId: "", consumerType: "x", first: -1, after: "\u0000") { consumerCount } }`:             {"projectId", "userId", "consumerType", "first", "after"},
	} {
		response := executor.Execute(access.WithViewer(t.Context(), viewers["reader"]),
			&graphql.RawParams{Query: query})
		var got []string
		for _, err := range response.Errors {
			if got = append(got, fmt.Sprint(err.Extensions["field"])); err.Extensions["code"] != "BAD_USER_INPUT" {
				t.Errorf("%s: %v", query, err)
			}
		}
		slices.Sort(got)
		if slices.Sort(fields); !slices.Equal(got, fields) {
			t.Errorf("%s: fields %q, want %q", query, got, fields)
		}
	}
	for query, want := range map[string]string{
		`{ capacity(filter: {resource: {types: ["physical:host"]}}) { nodes { resourceClass total } } }`: `{"data":{"capacity":{"nodes":[{"resourceClass":"VCPU","total":8}]}}}`,
		`{ capacity(filter: {resource: {name: "marker host"}}) { nodes { resourceClass total } } }`:      `{"data":{"capacity":{"nodes":[]}}}`,
	} {
		if got := askAs(t, executor, viewers["reader"], query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	// A cursor is bound to its class and its grouping.
	c := counting{t, executor}
	var page struct {
		ResourceProviders struct{ PageInfo struct{ EndCursor string } }
	}
	c.ask("reader",
		`{ resourceProviders(first: 1, orderBy: {field: FREE, resourceClass: "VCPU"}) { pageInfo { endCursor } } }`,
		&page)
	answer := askAs(t, executor, viewers["reader"],
		fmt.Sprintf(`{ resourceProviders(after: %q, orderBy: {field: FREE, resourceClass: "MEMORY_MB"}) { totalCount } }`, page.ResourceProviders.PageInfo.EndCursor))
	if !strings.Contains(answer, `"after"`) {
		t.Errorf("a cursor of another class: %s", answer)
	}
}
