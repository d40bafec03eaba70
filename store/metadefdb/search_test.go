package metadefdb_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/metadef/metadeftest"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
	"github.com/cadastre-dev/cadastre/text"
)

// TestDefinitionsAreFoundByPartsOfTheirTexts searches namespaces and tags for
// random substrings and compares the results with a search in Go. The
// statements must use the search indexes where they can.
func TestDefinitionsAreFoundByPartsOfTheirTexts(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		if strings.HasPrefix(url, "postgres") { // for few rows, PostgreSQL would not use an index
			url += "&enable_seqscan=off&enable_indexscan=off&enable_indexonlyscan=off"
		}
		s := storetest.Open(t, url)
		chance := rand.New(rand.NewPCG(5, 6))
		texts, tags := createSearched(t, s, chance)
		for range 60 {
			word := []rune(someWords(chance))
			from := chance.IntN(len(word))
			part := string(word[from : from+1+chance.IntN(min(8, len(word)-from))])
			if chance.IntN(2) == 0 {
				part = strings.ToUpper(part)
			}
			has := func(in string) bool { return strings.Contains(text.Fold(in), text.Fold(part)) }
			found, err := s.Namespaces(explaining(t, s, part), metadef.NamespaceFilter{Search: &part},
				page.Order{Field: "NAME"}, page.Request{})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, namespace := range found.Items {
				got[namespace.Name] = true
			}
			for name, of := range texts {
				if slices.ContainsFunc(of, has) != got[name] {
					t.Errorf("%q: found %v %q", part, got[name], of)
				}
			}
			want := len(tags) - len(slices.DeleteFunc(slices.Clone(tags), has))
			if n, err := s.CountTags(explaining(t, s, part), part); n != want || err != nil {
				t.Errorf("%q: %d tags, want %d, %v", part, n, want, err)
			}
		}
	})
}

// someWords returns two words with characters that have a meaning in patterns,
// quoting or folding.
func someWords(chance *rand.Rand) string {
	words := []string{"Größe", "100%", "a_b", `back\slash`, `"quoted"`, "ΣΊΣΥΦΟΣ", "Kelvin", "日本語", "x86-64", "it's"}
	return words[chance.IntN(len(words))] + " " + words[chance.IntN(len(words))] + fmt.Sprint(chance.IntN(100))
}

// createSearched creates namespaces and returns the strings of each by its
// name, and all tags.
func createSearched(t *testing.T, s *store.Store, chance *rand.Rand) (texts map[string][]string, tags []string) {
	t.Helper()
	texts = map[string][]string{}
	for i := range 25 {
		name, property, object, tag := fmt.Sprintf("%s %d", someWords(chance), i), someWords(chance),
			someWords(chance), someWords(chance)
		texts[name] = []string{name, property, object, tag, "one"}
		tags = append(tags, tag)
		input := metadef.NamespaceInput{Name: name,
			Properties: []metadef.PropertyInput{metadeftest.Property(property, metadef.String)},
			Objects:    []metadef.ObjectInput{metadeftest.Object(object, metadeftest.Property("one", metadef.Integer))},
			Tags:       []metadef.TagInput{{Name: tag}}}
		if _, err := s.CreateNamespace(storetest.AsAdmin(), input); err != nil {
			t.Fatal(err)
		}
	}
	return texts, tags
}

// explaining returns a context that explains statements that search for a
// substring. Each must use the index of every column that it searches.
func explaining(t *testing.T, s *store.Store, part string) (ctx context.Context) {
	ctx = storetest.AsAdmin()
	if !text.HasTrigram(text.Fold(part)) {
		return ctx
	}
	return store.EachStatement(ctx, func(query string, args any) {
		list, _ := args.([]any)
		plan := ""
		err := s.Query(storetest.AsAdmin(), s.Pool,
			map[bool]string{true: "EXPLAIN ", false: "EXPLAIN QUERY PLAN "}[s.Postgres()]+query,
			func(rows *sql.Rows) error {
				var line string
				into := []any{new(any), new(any), new(any), &line}
				if s.Postgres() {
					into = []any{&line}
				}
				err := rows.Scan(into...)
				plan += line + "\n"
				return err
			}, list...)
		if err != nil {
			t.Errorf("%s: %v", query, err)
		}
		indexes := []string{"tags_name_key_trigrams"}
		if strings.Contains(query, "search_key") {
			indexes = append(indexes, "namespaces_search_key_trigrams", "property_definitions_search_key_trigrams",
				"object_definitions_search_key_trigrams")
		}
		for _, index := range indexes {
			if strings.Contains(query, "name_key") && !strings.Contains(plan, index) {
				t.Errorf("%q: %s is not used:\n%s\n%s", part, index, query, plan)
			}
		}
	})
}
