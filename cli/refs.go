package cli

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/Khan/genqlient/graphql"
	"github.com/google/uuid"
)

// maxMatches is how many things an ambiguous name lists, maxLooked how many with
// the string in their names are looked through, and maxBegun how many uuids.
const (
	maxMatches = 10
	maxLooked  = 1000
	maxBegun   = 200000
)

// uuidBeginning is a string that may be the beginning of a uuid.
var uuidBeginning = regexp.MustCompile(`^[0-9a-fA-F]{8}(-?[0-9a-fA-F]+)*-?$`)

// namesQuery are the documents that list the names of kinds of things.
var namesQuery = map[string]string{
	"resource":       `query N($filter: ResourceFilter, $first: Int, $after: String) { resources(filter: $filter, first: $first, after: $after) { nodes { uuid name type { name } projectId } pageInfo { hasNextPage endCursor } } }`,
	"provider":       `query N($filter: ResourceProviderFilter, $first: Int, $after: String) { resourceProviders(filter: $filter, first: $first, after: $after) { nodes { uuid name } pageInfo { hasNextPage endCursor } } }`,
	"consumer":       `query N($filter: ConsumerFilter, $first: Int, $after: String) { consumers(filter: $filter, first: $first, after: $after) { nodes { uuid } pageInfo { hasNextPage endCursor } } }`,
	"aggregate":      `query N($filter: ResourceProviderFilter, $first: Int, $after: String) { capacity(filter: $filter, groupBy: AGGREGATE, first: $first, after: $after) { nodes { uuid: aggregate } pageInfo { hasNextPage endCursor } } }`,
	"namespace":      `query N($filter: NamespaceFilter, $first: Int, $after: String) { namespaces(filter: $filter, first: $first, after: $after) { nodes { name } pageInfo { hasNextPage endCursor } } }`,
	"resource-type":  `query N($filter: ResourceTypeFilter, $first: Int, $after: String) { resourceTypes(filter: $filter, first: $first, after: $after) { nodes { name } pageInfo { hasNextPage endCursor } } }`,
	"trait":          `query N($filter: TraitFilter, $first: Int, $after: String) { traits(filter: $filter, first: $first, after: $after) { nodes { name } pageInfo { hasNextPage endCursor } } }`,
	"resource-class": `query N($filter: ResourceClassFilter, $first: Int, $after: String) { resourceClasses(filter: $filter, first: $first, after: $after) { nodes { name } pageInfo { hasNextPage endCursor } } }`,
}

// match is a thing that a name stands for.
type match struct{ uuid, name, of string }

// named lists things of a kind that a filter leaves, at most a number of them.
func (s *session) named(kind string, filter map[string]any, most int) (all []match, err error) {
	variables := map[string]any{"filter": filter, "first": min(most, maxLooked)}
	for len(all) < most {
		data, err := send(s, &graphql.Request{OpName: "N", Query: namesQuery[kind], Variables: variables})
		if err != nil {
			return nil, err
		}
		page := any(nil)
		for _, member := range data.(map[string]any) {
			page = member
		}
		nodes, _ := memberOf(page, "nodes").([]any)
		for _, node := range nodes {
			of := match{uuid: cell(memberOf(node, "uuid"), false), name: cell(memberOf(node, "name"), false)}
			if kind == "resource" {
				of.of = cell(valueAt(node, "type.name"), false) + ", project " + cell(memberOf(node, "projectId"), false)
			}
			all = append(all, of)
		}
		if valueAt(page, "pageInfo.hasNextPage") != true {
			break
		}
		variables["after"] = valueAt(page, "pageInfo.endCursor")
	}
	return all[:min(len(all), most)], nil
}

// resolve puts uuids in the place of the names and beginnings of uuids that the
// flags and arguments of a command have.
func (s *session) resolve(command any) error {
	return eachField(reflect.ValueOf(command).Elem(), func(field reflect.StructField, value reflect.Value) error {
		kind := field.Tag.Get("ref")
		if kind == "" || isAbsent(value) {
			return nil
		}
		var texts []*string
		switch of := value.Addr().Interface().(type) {
		case *string:
			texts = []*string{of}
		case **string:
			texts = []*string{*of}
		case *[]string:
			*of = slices.Clone(*of)
			for i := range *of {
				texts = append(texts, &(*of)[i])
			}
		}
		for _, text := range texts {
			if label := labelOf(field); *text == "" && label[0] == '<' {
				return usagef("%s is empty: write a name, a uuid, or the beginning of one", label)
			}
			if err := s.resolveText(kind, text); err != nil {
				return err
			}
		}
		return nil
	})
}

// resolveText puts a uuid in the place of a name or the beginning of a uuid. An
// empty string clears a field and stays.
func (s *session) resolveText(kind string, text *string) error {
	if _, err := uuid.Parse(*text); err == nil || *text == "" {
		return nil
	}
	found, err := s.find(kind, *text)
	if err != nil {
		return err
	}
	switch len(found) {
	case 0:
		return missingError{fmt.Errorf("%s %q does not exist: it is neither a uuid nor a name, nor the beginning of one%s", kind, *text, s.suggestion(kind, *text))}
	case 1:
		*text = found[0].uuid
		return nil
	}
	var lines strings.Builder
	for i, of := range found {
		if i == maxMatches {
			fmt.Fprintf(&lines, "\n  and %d more", len(found)-maxMatches)
			break
		}
		lines.WriteString("\n" + strings.TrimRight(fmt.Sprintf("  %s  %s  %s", of.uuid, printable(of.name), of.of), " "))
	}
	return usagef("%q is ambiguous, %d %ss match; write more of it, or a uuid:%s", *text, len(found), kind, lines.String())
}

// find returns what a text may mean: the things with exactly this name, else those
// whose names or uuids begin with it, whatever the case.
func (s *session) find(kind, text string) ([]match, error) {
	names := kind // what the name is of
	if kind == "consumer" {
		names = "resource"
	}
	contains := map[string]string{"resource": "nameContains", "provider": "search"}[names]
	for _, filter := range []map[string]any{{"name": text}, {contains: text}} {
		if contains == "" {
			break
		}
		found, err := s.named(names, filter, maxLooked)
		if err != nil {
			return nil, err
		}
		if len(found) == maxLooked {
			return nil, usagef("%q is part of %d names or more; write more of it, or a uuid", text, maxLooked)
		}
		exact := slices.DeleteFunc(slices.Clone(found), func(of match) bool { return of.name != text })
		if len(exact) > 0 {
			return exact, nil
		}
		if begun := begunWith(text, found); len(begun) > 0 {
			return begun, nil
		}
	}
	if !uuidBeginning.MatchString(text) || kind == "provider" {
		return nil, nil
	}
	all, err := s.named(kind, nil, maxBegun)
	return begunWith(text, all), err
}

// begunWith returns the things whose names or uuids begin with a text, each once.
func begunWith(text string, found []match) (out []match) {
	for _, of := range found {
		if (beginsWith(of.name, text) || beginsWith(of.uuid, text)) && !slices.Contains(out, of) {
			out = append(out, of)
		}
	}
	return out
}

func beginsWith(text, prefix string) bool {
	return strings.HasPrefix(strings.ToLower(text), strings.ToLower(prefix))
}

// suggestion returns the question whether the nearest name of a kind was meant;
// empty where none is near, or the server does not tell.
func (s *session) suggestion(kind, text string) string {
	part, of := map[string]string{"resource": "nameContains", "provider": "search"}[kind], min(4, len(text))
	filters := []map[string]any{nil}
	if part != "" {
		filters = []map[string]any{{part: text[:of]}, {part: text[len(text)-of:]}}
	}
	best, least := "", max(2, len(text)/3)+1
	for _, filter := range filters {
		all, err := s.named(kind, filter, maxLooked)
		if err != nil || namesQuery[kind] == "" {
			return ""
		}
		for _, one := range all {
			if distance := edits(strings.ToLower(one.name), strings.ToLower(text)); distance < least {
				best, least = one.name, distance
			}
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", printable(best))
}

// edits returns how many characters must be added, removed or replaced to make one
// string the other.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
