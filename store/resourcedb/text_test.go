package resourcedb_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/resourcedb"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/text"
)

// written is the strings of a resource.
type written struct {
	name, description, capability string
	values                        map[string]string // by key
}

// oddRunes are characters with a meaning in patterns, quoting or folding, and
// their folded forms.
var oddRunes = []rune(`aAbBiIkKsS01%%__\\""''*^()-. ` + "éÉßΣςσİıKſµμåÅÅ日本語😀\u0301\u00a0")

// oddText returns a random string of at most the given number of characters.
func oddText(chance *rand.Rand, most int) string {
	runes := make([]rune, 1+chance.IntN(most))
	for i := range runes {
		runes[i] = oddRunes[chance.IntN(len(oddRunes))]
	}
	return string(runes)
}

// oddPart returns a substring of one of the strings in any case, or another
// string.
func oddPart(chance *rand.Rand, texts []string) string {
	switch chance.IntN(8) {
	case 0:
		return ""
	case 1:
		return oddText(chance, 5)
	}
	runes := []rune(texts[chance.IntN(len(texts))])
	from := chance.IntN(len(runes))
	runes = runes[from : from+1+chance.IntN(min(len(runes)-from, 1+chance.IntN(30)))]
	for i, r := range runes {
		if chance.IntN(3) == 0 {
			runes[i] = []rune(strings.ToUpper(string(r)))[0]
		}
	}
	return string(runes)
}

// TestPartsOfTextsAreFound searches for random substrings of random strings and
// compares the indexed search with a search in Go, while others write and
// afterwards. On PostgreSQL it runs again with only bitmap scans enabled, so
// that every index is used.
func TestPartsOfTextsAreFound(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		if !strings.HasPrefix(url, "postgres") {
			partsOfTextsAreFound(t, url)
			return
		}
		t.Run("as planned", func(t *testing.T) {
			t.Parallel()
			partsOfTextsAreFound(t, url)
		})
		t.Run("by indexes", func(t *testing.T) {
			t.Parallel()
			partsOfTextsAreFound(t,
				storetest.Postgres(t)+"&enable_seqscan=off&enable_indexscan=off&enable_indexonlyscan=off")
		})
	})
}

func partsOfTextsAreFound(t *testing.T, url string) {
	s := storetest.Open(t, url)
	chance := rand.New(rand.NewPCG(11, 12))
	all := map[string]written{}
	for i := range 40 {
		all[storetest.UUID(i)] = write(t, s, chance, storetest.UUID(i))
	}
	var writer sync.WaitGroup
	churned := map[string]written{}
	stop := make(chan struct{})
	writer.Go(func() { churned = churn(t, s, stop) })
	steadily := func(uuid string) bool { return all[uuid].name != "" }
	for range 60 {
		checkParts(t, s, chance, all, steadily)
	}
	close(stop)
	writer.Wait()
	maps.Copy(all, churned)
	for range 60 {
		checkParts(t, s, chance, all, func(string) bool { return true })
	}
}

// write creates a resource with random strings.
func write(t *testing.T, s *store.Store, chance *rand.Rand, uuid string) written {
	of := written{name: oddText(chance, 12), description: oddText(chance, 40),
		capability: oddText(chance, 12), values: map[string]string{}}
	input := resource.Input{Type: "physical:host", UUID: &uuid, Name: of.name, Description: &of.description,
		Capabilities: []metadef.KeyValue{{Key: "cap", Value: of.capability}}}
	for k := range 1 + chance.IntN(3) {
		key, value := fmt.Sprint("k", k), oddText(chance, []int{2, 6, 40}[k])
		of.values[key] = value
		input.Metadata = append(input.Metadata, metadef.KeyValue{Key: key, Value: value})
	}
	if _, err := s.CreateResource(storetest.AsAdmin(), input); err != nil {
		t.Errorf("%q: %v", of, err)
	}
	return of
}

// churn creates, changes and deletes resources until stop is closed, and
// returns the remaining ones.
func churn(t *testing.T, s *store.Store, stop chan struct{}) map[string]written {
	ctx, chance, there := storetest.AsAdmin(), rand.New(rand.NewPCG(13, 14)), map[string]written{}
	for n := 0; ; n++ {
		select {
		case <-stop:
			if n >= 40 {
				return there
			}
		default:
		}
		uuid := storetest.UUID(1000 + chance.IntN(12))
		of, ok := there[uuid]
		var err error
		switch action := chance.IntN(5); {
		case !ok:
			there[uuid] = write(t, s, chance, uuid)
			continue
		case action == 0:
			_, err = s.DeleteResource(ctx, uuid, nil)
			delete(there, uuid)
		case action == 1:
			of.name, of.description = oddText(chance, 12), oddText(chance, 40)
			_, err = s.UpdateResource(ctx,
				resource.Patch{UUID: uuid, NewName: metadef.Change[*string]{Set: true, Value: &of.name},
					Description: metadef.Change[*string]{Set: true, Value: &of.description}})
			there[uuid] = of
		case action == 2:
			of.capability = oddText(chance, 12)
			_, err = s.SetCapabilities(ctx, uuid, []metadef.KeyValue{{Key: "cap", Value: of.capability}}, nil)
			there[uuid] = of
		default:
			change := resource.MetadataChange{Resource: uuid, Mode: resource.MergeMetadata,
				Items: pairs("k1", oddText(chance, 30), "k2", oddText(chance, 3))}
			of.values = maps.Clone(of.values)
			for _, item := range change.Items {
				of.values[item.Key] = item.Value
			}
			if action == 3 {
				change.Mode = resource.ReplaceMetadata
				of.values = map[string]string{"k1": of.values["k1"], "k2": of.values["k2"]}
			}
			_, _, err = s.ChangeMetadata(ctx, change)
			there[uuid] = of
		}
		if err != nil {
			t.Errorf("churn: %v", err)
			return there
		}
	}
}

// textsOf returns all strings of resources, in a fixed order.
func textsOf(all map[string]written) (texts []string) {
	for _, uuid := range slices.Sorted(maps.Keys(all)) {
		of := all[uuid]
		texts = append(texts, of.name, of.description, of.capability)
		for _, key := range slices.Sorted(maps.Keys(of.values)) {
			texts = append(texts, of.values[key])
		}
	}
	return texts
}

// partSearch is a search and its meaning.
type partSearch struct {
	what   string
	filter resource.Filter
	holds  func(written) bool
}

// searchesFor returns the searches for one substring, and for another.
func searchesFor(part, other, key string) []partSearch {
	folded := func(in string) bool { return strings.Contains(text.Fold(in), text.Fold(part)) }
	metadata := func(part string) resource.ConditionInput {
		return resource.ConditionInput{Metadata: &resource.MetadataCondition{Key: key, Contains: &part}}
	}
	value := metadata(part)
	return []partSearch{
		{"nameContains", resource.Filter{NameContains: &part}, func(of written) bool { return folded(of.name) }},
		{"search", resource.Filter{Search: &part}, func(of written) bool {
			return folded(of.name) || folded(of.description) ||
				slices.ContainsFunc(slices.Collect(maps.Values(of.values)), folded)
		}},
		{"contains", resource.Filter{Where: &value}, func(of written) bool { return contains(of.values, key, part) }},
		{"not", resource.Filter{Where: &resource.ConditionInput{Not: &value}}, func(of written) bool {
			return !contains(of.values, key, part)
		}},
		{"any",
			resource.Filter{Where: &resource.ConditionInput{Any: []resource.ConditionInput{value, metadata(other)}}},
			func(of written) bool {
				return contains(of.values, key, part) || contains(of.values, key, other)
			}},
		{"capability",
			resource.Filter{Where: &resource.ConditionInput{Capability: &resource.CapabilityCondition{Name: "cap",
				Contains: &part}}}, func(of written) bool { return strings.Contains(of.capability, part) }},
	}
}

// checkParts searches for substrings in each way and compares the results with
// the resources that count.
func checkParts(t *testing.T, s *store.Store, chance *rand.Rand, all map[string]written, counts func(string) bool) {
	t.Helper()
	texts := textsOf(all)
	part, other, key := oddPart(chance, texts), oddPart(chance, texts), fmt.Sprint("k", chance.IntN(3))
	for _, search := range searchesFor(part, other, key) {
		found, err := s.Resources(storetest.AsAdmin(), search.filter,
			page.Order{Field: "NAME"}, page.Request{First: new(1000)})
		if err != nil {
			if part != "" && other != "" { // conditions require a non-empty string
				t.Errorf("%s %q: %v", search.what, part, err)
			}
			continue
		}
		got := map[string]bool{}
		for _, of := range found.Items {
			got[of.UUID] = true
		}
		for uuid, of := range all {
			if counts(uuid) && search.holds(of) != got[uuid] {
				t.Errorf("%s %q (%q) of %s: found %v %q", search.what, part, other, key, got[uuid], of)
			}
		}
	}
}

func contains(values map[string]string, key, part string) bool {
	value, ok := values[key]
	return ok && strings.Contains(value, part)
}

// TestPartsOfTextsAreFoundByIndexes checks that trigram indexes find rare
// substrings, and that no search scans a whole table.
func TestPartsOfTextsAreFoundByIndexes(t *testing.T) {
	t.Parallel()
	count := planSize()
	storetest.EachURL(t, func(t *testing.T, url string) {
		fillResources(t, url, count)
		s := storetest.Open(t, url)
		if _, err := s.CreateResource(storetest.AsAdmin(),
			resource.Input{Type: "physical:host", Name: "Needle", Description: new("in a Haystack"),
				Metadata:     pairs("key-2", "The 50% \"Rare\" value"),
				Capabilities: pairs("cap", "an Uncommon one")}); err != nil {
			t.Fatal(err)
		}
		if s.Postgres() { // PostgreSQL scans the latest writes until then
			if _, err := storetest.Database(t, url).Exec("VACUUM ANALYZE resources, metadata_items"); err != nil {
				t.Fatal(err)
			}
		}
		recording, recorded := resourcedb.RecordStatements(s.ResourceStore)
		rare := resource.ConditionInput{Metadata: &resource.MetadataCondition{Key: "key-2", Contains: new(`50% "Rare`)}}
		unheard := resource.ConditionInput{Metadata: &resource.MetadataCondition{Key: "key-3",
			Contains: new("unheard of")}}
		for _, search := range []struct {
			filter  resource.Filter
			found   int
			indexes []string
		}{
			{resource.Filter{NameContains: new("nEEdle")}, 1, []string{"resources_name_key_trigrams"}},
			{resource.Filter{Search: new("nEEdle")}, 1,
				[]string{"resources_name_key_trigrams",
					"resources_description_trigrams", "metadata_items_value_trigrams"}},
			{resource.Filter{Search: new("haySTACK")}, 1,
				[]string{"resources_name_key_trigrams",
					"resources_description_trigrams", "metadata_items_value_trigrams"}},
			{resource.Filter{Search: new("RARE\" v")}, 1, []string{"metadata_items_value_trigrams"}},
			{resource.Filter{Where: &rare}, 1, []string{"metadata_items_value_trigrams"}},
			{resource.Filter{Where: &resource.ConditionInput{Any: []resource.ConditionInput{unheard, rare}}},
				1, []string{"metadata_items_value_trigrams"}},
			{resource.Filter{Where: &unheard}, 0, []string{"metadata_items_value_trigrams"}},
		} {
			*recorded = nil
			n, err := recording.CountResources(storetest.AsAdmin(), search.filter)
			if err != nil || n != search.found {
				t.Errorf("%v: found %d, %v", search.indexes, n, err)
			}
			list, err := recording.Resources(storetest.AsAdmin(), search.filter,
				page.Order{Field: "NAME"}, page.Request{})
			if err != nil || len(list.Items) != search.found {
				t.Errorf("%v: found %d, %v", search.indexes, len(list.Items), err)
			}
			for _, statement := range *recorded {
				checkFoundBy(t, resourcedb.Explain(t, recording, statement), statement.Query, search.indexes)
			}
		}
	})
}

// shortScans matches the scans of SQLite that may run without an index that
// finds a string: over the rows found, and over resources in the order of the
// list. The scan in the order of the list reads none if the index found few:
// see TestFrequentPartsAreFoundInTheOrder.
var shortScans = regexp.MustCompile(`SCAN (found|probed|judged|ordered|walked|looked_at|everything|CONSTANT ROW)\b|INDEX resource_name_uuid|_trigrams`)

// checkFoundBy checks that a plan uses indexes and scans no whole table.
func checkFoundBy(t *testing.T, plan, query string, indexes []string) {
	t.Helper()
	for _, index := range indexes {
		if !strings.Contains(plan, index) {
			t.Errorf("%s is not used:\n%s\n%s", index, query, plan)
		}
	}
	for line := range strings.Lines(plan) {
		if strings.Contains(line, "Seq Scan") || strings.Contains(line, "SCAN ") && !shortScans.MatchString(line) {
			t.Errorf("%s:\n%s\n%s", line, query, plan)
		}
	}
}
