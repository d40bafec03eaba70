package sqldb_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// rowsOf maps each table to the things that its rows belong to: the kind, the
// key of the thing, and the table (t) with its joins. Rows of allocations
// belong to two things.
var rowsOf = []struct{ kind, key, from string }{
	{"Namespace", "t.name", "namespaces t"},
	{"Namespace", "n.name", "namespace_members t JOIN namespaces n ON n.id = t.namespace_id"},
	{"Namespace", "n.name", "property_definitions t JOIN namespaces n ON n.id = t.namespace_id"},
	{"Namespace", "n.name", "object_definitions t JOIN namespaces n ON n.id = t.namespace_id"},
	{"Namespace", "n.name", "tags t JOIN namespaces n ON n.id = t.namespace_id"},
	{"Namespace", "n.name", "resource_type_associations t JOIN namespaces n ON n.id = t.namespace_id"},
	{"ResourceType", "t.name", "resource_types t"},
	{"Resource", "t.uuid", "resources t"},
	{"Resource", "r.uuid", "metadata_items t JOIN resources r ON r.id = t.resource_id"},
	{"Resource", "r.uuid", "resource_tags t JOIN resources r ON r.id = t.resource_id"},
	{"Resource", "r.uuid", "capability_values t JOIN resources r ON r.id = t.resource_id"},
	{"Resource", "r.uuid", "capability_members t JOIN resources r ON r.id = t.resource_id"},
	{"Resource", "r.uuid", "resource_origins t JOIN resources r ON r.id = t.resource_id"},
	{"Capability", "y.name || '/' || t.name", "capabilities t JOIN resource_types y ON y.id = t.resource_type_id"},
	{"ResourceProvider", "t.uuid", "resource_providers t"},
	{"ResourceProvider", "p.uuid", "inventories t JOIN resource_providers p ON p.id = t.provider_id"},
	{"ResourceProvider", "p.uuid", "provider_traits t JOIN resource_providers p ON p.id = t.provider_id"},
	{"ResourceProvider", "p.uuid", "provider_aggregates t JOIN resource_providers p ON p.id = t.provider_id"},
	{"ResourceProvider", "p.uuid", "allocations t JOIN resource_providers p ON p.id = t.provider_id"},
	{"ResourceProvider", "p.uuid", `(SELECT a.id, a.provider_id, c.expires_at FROM allocations a JOIN consumers c
		ON c.id = a.consumer_id WHERE c.expires_at IS NOT NULL) t JOIN resource_providers p ON p.id = t.provider_id`},
	{"Consumer", "c.uuid", "allocations t JOIN consumers c ON c.id = t.consumer_id"},
	{"Consumer", "t.uuid", "consumers t"},
	{"Trait", "t.name", "traits t"},
	{"ResourceClass", "t.name", "resource_classes t"},
}

// rowsOfNothing are the tables without a thing: logs, the counts of
// capabilities, the names of unloaded namespaces, passes of syncs, keys, limits,
// refusals of places, and the capacity history.
var rowsOfNothing = []string{"audit_events", "changes", "capability_counts", "unloaded_namespaces", "syncs",
	"idempotency_keys", "sealing_keys", "project_limits", "place_refusals", "capacity_buckets"}

// things returns the rows of every thing, by kind and key.
func things(t *testing.T, s *store.Store) map[[2]string]string {
	t.Helper()
	found := map[[2]string]string{}
	for _, of := range rowsOf {
		rows, err := s.ReadAll(t.Context(), fmt.Sprintf(`SELECT %s, t.* FROM %s ORDER BY t.id`, of.key, of.from))
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			found[[2]string{of.kind, row[0]}] += of.from + " " + strings.Join(row[1:], "|") + "\n"
		}
	}
	return found
}

// notedSince returns the things in the log of changes after a row id, the last
// row id, and the numbers of the transactions.
func notedSince(t *testing.T, s *store.Store,
	sequence int64) (noted map[[2]string]bool, last int64, transactions map[int64]bool) {
	t.Helper()
	rows, err := s.ReadAll(t.Context(), fmt.Sprintf(`SELECT id, "transaction", kind, key, COALESCE(audience, 'nobody'), CASE WHEN named IS NULL THEN '' ELSE 'some' END
		FROM changes WHERE id > %d AND kind <> 'Pruned' ORDER BY id`, sequence))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[[4]string]bool{} // by transaction, kind, key and audience
	noted, last, transactions = map[[2]string]bool{}, sequence, map[int64]bool{}
	for _, row := range rows {
		if seen[[4]string(row[1:5])] {
			t.Errorf("%v is noted twice", row[1:])
		}
		seen[[4]string(row[1:5])] = true
		// A row for a new or a former audience does not mean a change.
		if audience, toSome := row[4], row[5] != ""; audience == "" ||
			audience == "nobody" || audience == "*" && !toSome {
			noted[[2]string(row[2:4])] = true
		}
		number, err := strconv.ParseInt(row[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		transactions[number] = true
		if last, err = strconv.ParseInt(row[0], 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return noted, last, transactions
}

// mutationsOfTheSchema returns the names of the fields of Mutation.
func mutationsOfTheSchema(t *testing.T) []string {
	t.Helper()
	files, err := os.ReadDir("../../schema")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?ms)^(?:extend )?type Mutation \{$(.*?)^\}`)
	field := regexp.MustCompile(`(?m)^  (\w+)\(`)
	var names []string
	for _, file := range files {
		text, err := os.ReadFile("../../schema/" + file.Name())
		if err != nil {
			continue // a folder
		}
		for _, found := range block.FindAllStringSubmatch(string(text), -1) {
			for _, name := range field.FindAllStringSubmatch(found[1], -1) {
				names = append(names, name[1])
			}
		}
	}
	return names
}

// TestEveryChangeIsInTheLog runs random mutations of every kind. It compares
// the rows of every thing before and after with the log of changes.
func TestEveryChangeIsInTheLog(t *testing.T) {
	t.Parallel()
	mutations := everyMutation()
	names := slices.Sorted(maps.Keys(mutations))
	if of := slices.Sorted(slices.Values(mutationsOfTheSchema(t))); !slices.Equal(of, names) {
		t.Fatalf("the API has the mutations\n%v\nand the test makes\n%v", of, names)
	}
	// Most calls of these mutations are refused.
	often := []string{"setInventory", "setAllocations", "reshape", "createResourceType", "shareNamespace",
		"unshareNamespace", "createProperty", "updateProperty", "deleteProperty"}
	thrown := slices.Concat(names, slices.Repeat(often, 6))
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		everyTableIsOfSomething(t, s)
		d := &dice{Rand: rand.New(rand.NewPCG(1, 2))}
		_, last, _ := notedSince(t, s, 0)
		lastTransaction := int64(0)
		before, done := things(t, s), map[string]int{}
		enough := func() bool { return !slices.ContainsFunc(names, func(name string) bool { return done[name] < 2 }) }
		defer func() { t.Logf("after the last mutation, of each were accepted: %v", done) }()
		for throw := 0; throw < 500 || !enough(); throw++ {
			if throw == 4000 {
				t.Fatalf("too few of some mutations were accepted: %v", done)
			}
			name := thrown[d.IntN(len(thrown))]
			err := mutations[name](storetest.AsAdmin(), d, s)
			if err == nil {
				done[name]++
			} else if refusal := new(problem.Refusal); !errors.As(err, &refusal) &&
				!errors.Is(err, problem.ErrInvalidInput) {
				t.Fatalf("%s: %v", name, err)
			}
			noted, sequence, transactions := notedSince(t, s, last)
			after := before
			if err == nil {
				after = things(t, s)
			}
			if len(transactions) > 1 ||
				len(transactions) == 1 && slices.Collect(maps.Keys(transactions))[0] <= lastTransaction {
				t.Errorf("%s, after the transaction %d, has the numbers %v", name, lastTransaction, transactions)
			}
			compareNotes(t, name, before, after, noted)
			for number := range transactions {
				lastTransaction = number
			}
			before, last = after, sequence
		}
	})
}

func everyMutation() throwable {
	mutations := throwable{}
	for _, some := range []throwable{definitionMutations(), resourceMutations(), placementMutations()} {
		maps.Copy(mutations, some)
	}
	return mutations
}

// TestWhatFillsADatabaseIsInTheLog compares the built-in things and the initial
// content of an empty database with the log of changes.
func TestWhatFillsADatabaseIsInTheLog(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		builtIn := things(t, s)
		noted, last, _ := notedSince(t, s, 0)
		compareNotes(t, "what is built in", nil, builtIn, noted)
		d := &dice{Rand: rand.New(rand.NewPCG(1, 2))}
		inventory := placement.Inventory{ResourceClass: "CUSTOM_C0", Total: 9, MinUnit: 1,
			MaxUnit: 9, StepSize: 1, AllocationRatio: 1}
		allocation := placement.ProviderAllocation{Provider: storetest.UUID(2),
			Resources: []placement.Amount{{ResourceClass: "CUSTOM_C0", Amount: 1}}}
		err := s.FillEmpty(storetest.AsAdmin(), store.Content{
			Definitions:   []string{`{"namespace": "N", "resource_type_associations": [{"name": "implied"}]}`},
			ResourceTypes: []string{"declared"},
			Capabilities:  []store.CapabilityRecord{{ResourceType: "declared", Name: "c"}},
			Resources: []store.ResourceRecord{{UUID: storetest.UUID(1), Type: "declared",
				Name: "r", Visibility: access.Public,
				Capabilities: []metadef.KeyValue{{Key: "used", Value: "v"}}, Tags: []string{"t"}}},
			Traits: []string{"CUSTOM_T0"}, ResourceClasses: []string{"CUSTOM_C0"},
			Providers: []placement.Provider{{UUID: storetest.UUID(2), Name: "p", Resource: storetest.UUID(1),
				Traits: []string{"CUSTOM_T0"}, Inventories: []placement.Inventory{inventory}},
				{UUID: storetest.UUID(3), Name: "unused"}},
			Claims: []placement.Claim{{Consumers: []placement.ConsumerClaim{{UUID: d.consumer(), ProjectID: "p",
				UserID: "u", Allocations: []placement.ProviderAllocation{allocation}}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		noted, _, _ = notedSince(t, s, last)
		compareNotes(t, "the content", builtIn, things(t, s), noted)
		if len(noted) != 11 {
			t.Errorf("%d things are noted: %v", len(noted), noted)
		}
	})
}

// TestWhatAnOriginDeliveredIsPartOfANamespace imports a document equal to what
// the namespace became by manual edits. Only the base of the next upgrade
// changes.
func TestWhatAnOriginDeliveredIsPartOfANamespace(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		deliver := func(description string) {
			t.Helper()
			document := fmt.Sprintf(`{"namespace": "N", "visibility": "public", "description": %q}`, description)
			_, err := s.ImportNamespaces(storetest.AsAdmin(),
				metadef.ImportRequest{Mode: metadef.Skip, Origin: new("o"), Documents: []string{document}})
			if err != nil {
				t.Fatal(err)
			}
		}
		deliver("first")
		change := metadef.NamespaceChange{Name: "N",
			NamespacePatch: metadef.NamespacePatch{Description: metadeftest.To("second")}}
		if _, err := s.UpdateNamespace(storetest.AsAdmin(), change); err != nil {
			t.Fatal(err)
		}
		before := things(t, s)
		_, last, _ := notedSince(t, s, 0)
		deliver("second")
		noted, _, _ := notedSince(t, s, last)
		compareNotes(t, "importNamespaces", before, things(t, s), noted)
		if len(noted) != 1 {
			t.Errorf("the notes are %v", noted)
		}
	})
}

// TestTheStoreAsksTheTable calls every mutation of the store directly, without
// a role and as a reader. The store must refuse all.
func TestTheStoreAsksTheTable(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if _, err := s.CreateNamespace(storetest.AsAdmin(),
			metadef.NamespaceInput{Name: "N0",
				NamespacePatch: metadef.NamespacePatch{Visibility: metadeftest.To(access.Public)}}); err != nil {
			t.Fatal(err)
		}
		before := things(t, s)
		for name, mutate := range everyMutation() {
			permission, _ := access.PermissionOf(name)
			for _, roles := range [][]string{nil, {access.RoleReader}} {
				ctx := access.WithViewer(t.Context(), access.Viewer{UserID: "bob", ProjectID: "p", Roles: roles})
				for seed := range uint64(5) {
					err := mutate(ctx, &dice{Rand: rand.New(rand.NewPCG(1, seed))}, s)
					if err == nil || !permission.AfterVisibility && !errors.Is(err, problem.ErrForbidden) &&
						!errors.Is(err, problem.ErrInvalidInput) {
						t.Errorf("%s as %v: %v", name, roles, err)
					}
				}
			}
		}
		if !maps.Equal(before, things(t, s)) {
			t.Error("a mutation that was refused has changed something")
		}
	})
}

// compareNotes checks that every changed thing is noted, and no unchanged one.
// A few mutations may note unchanged things.
func compareNotes(t *testing.T, mutation string, before, after map[[2]string]string, noted map[[2]string]bool) {
	t.Helper()
	for thing := range maps.Keys(before) {
		if before[thing] != after[thing] && !noted[thing] {
			t.Errorf("%s changed %v, which is not in the log of changes", mutation, thing)
		}
	}
	for thing := range after {
		if _, was := before[thing]; !was && !noted[thing] {
			t.Errorf("%s created %v, which is not in the log of changes", mutation, thing)
		}
	}
	for thing := range noted {
		if before[thing] == after[thing] && mutation != "setProviderTraits" && mutation != "setOnResourceProviders" {
			t.Errorf("%s left %v as it was, which is in the log of changes", mutation, thing)
		}
	}
}

// everyTableIsOfSomething fails for a table that this test does not list.
func everyTableIsOfSomething(t *testing.T, s *store.Store) {
	t.Helper()
	known := slices.Clone(rowsOfNothing)
	for _, of := range rowsOf {
		table, _, _ := strings.Cut(of.from, " ")
		known = append(known, table)
	}
	for _, table := range s.TableNames() {
		if !slices.Contains(known, table) {
			t.Errorf("it is not said what the rows of %s are a part of", table)
		}
	}
}

// TestOldChangesAreDeleted checks that changes are deleted once they expire,
// not earlier, and that the numbers of transactions keep growing.
func TestOldChangesAreDeleted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		prune := func(age time.Duration) {
			t.Helper()
			if err := errors.Join(s.AgeChanges(t.Context(), age), s.PruneChanges(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		prune(sqldb.DefaultChangesKept - time.Minute)
		_, last, before := notedSince(t, s, 0)
		if last < 100 { // the built-in names
			t.Fatalf("the last change is %d", last)
		}
		prune(sqldb.DefaultChangesKept + 11*time.Minute)
		if noted, _, _ := notedSince(t, s, 0); len(noted) > 0 {
			t.Errorf("%d changes are still there", len(noted))
		}
		if _, err := s.CreateTrait(storetest.AsAdmin(), "CUSTOM_NEW"); err != nil {
			t.Fatal(err)
		}
		noted, _, after := notedSince(t, s, last)
		if len(noted) != 1 ||
			slices.Max(slices.Collect(maps.Keys(after))) <= slices.Max(slices.Collect(maps.Keys(before))) {
			t.Errorf("%v has the number %v after %v", noted, after, before)
		}
	})
}

// TestManyChangesHaveOneTransaction writes more changes than fit one statement.
func TestManyChangesHaveOneTransaction(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, last, before := notedSince(t, s, 0)
		var content store.Content
		for i := range 2500 {
			content.Traits = append(content.Traits, fmt.Sprint("CUSTOM_", i))
		}
		if err := s.FillEmpty(storetest.AsAdmin(), content); err != nil {
			t.Fatal(err)
		}
		noted, _, numbers := notedSince(t, s, last)
		if len(noted) != 2500 || len(numbers) != 1 || maps.Equal(numbers, before) {
			t.Errorf("%d changes have the numbers %v", len(noted), numbers)
		}
	})
}
