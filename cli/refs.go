package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Khan/genqlient/graphql"
	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/text"
)

// maxMatches bounds the objects in the error about an ambiguous name. A search
// reads at most maxLooked objects whose names contain a string, and at most
// maxBegun uuids.
const (
	maxMatches = 10
	maxLooked  = 1000
	maxBegun   = 200000
)

// uuidBeginning matches a string that may be the beginning of a uuid.
// uuidBeginningShort matches hexadecimal digits that are too few for one.
var (
	uuidBeginning      = regexp.MustCompile(`^[0-9a-fA-F]{8}(-?[0-9a-fA-F]+)*-?$`)
	uuidBeginningShort = regexp.MustCompile(`^[0-9a-fA-F]{1,7}$`)
)

// nameList is the list of the API with all objects of a kind.
type nameList struct{ field, arguments, filter, selects, contains string }

// nameLists are the lists by kind. The field contains has the name of the
// filter that selects objects whose names contain a string or, for traits,
// begin with it.
var nameLists = map[string]nameList{
	"resource":       {"resources", "", "ResourceFilter", "uuid name type { name } projectId", "nameContains"},
	"provider":       {"resourceProviders", "", "ResourceProviderFilter", "uuid name", "search"},
	"consumer":       {"consumers", "", "ConsumerFilter", "uuid", ""},
	"aggregate":      {"capacity", "groupBy: AGGREGATE, ", "ResourceProviderFilter", "uuid: aggregate", ""},
	"namespace":      {"namespaces", "", "NamespaceFilter", "name", ""},
	"resource-type":  {"resourceTypes", "", "ResourceTypeFilter", "name", ""},
	"trait":          {"traits", "", "TraitFilter", "name", "startsWith"},
	"resource-class": {"resourceClasses", "", "ResourceClassFilter", "name", ""},
}

// match is an object that the method named returns. of has the type and project
// of a resource, which tell namesakes apart.
type match struct{ uuid, name, of string }

// named returns the first `most` objects of a kind that match a filter. It
// returns none for a kind without a list.
func (c *call) named(kind string, filter map[string]any, most int) (all []match, err error) {
	of, ok := nameLists[kind]
	if !ok {
		return nil, nil
	}
	query := fmt.Sprintf("query N($filter: %s, $first: Int, $after: String) { %s(filter: $filter, %sfirst: $first, "+
		"after: $after) { nodes { %s } pageInfo { hasNextPage endCursor } } }",
		of.filter, of.field, of.arguments, of.selects)
	variables := map[string]any{"filter": filter, "first": min(most, maxLooked)}
	request := &graphql.Request{OpName: "N", Query: query, Variables: variables}
	data, err := c.send(request)
	if err == nil {
		list := pages{"after", of.field}
		data, err = list.rest(data, variables, func() (any, error) { return c.send(request) }, most)
	}
	for _, node := range listOf(data, of.field+".nodes") {
		one := match{uuid: wordOf(node, "uuid"), name: wordOf(node, "name")}
		if kind == "resource" {
			one.of = wordOf(node, "type.name") + ", project " + wordOf(node, "projectId")
		}
		all = append(all, one)
	}
	return all[:min(len(all), most)], err
}

// resolve replaces the names and beginnings of uuids in the values of a
// parameter by uuids.
func (c *call) resolve(p *param, texts []string) error {
	for i := range texts {
		if p.isArgument && texts[i] == "" {
			return usagef("%s is empty: write a name, a uuid, or the beginning of one", p.label())
		}
		if err := c.resolveText(p.kind, &texts[i]); err != nil {
			return err
		}
	}
	return nil
}

// resolveText replaces a name or the beginning of a uuid by the uuid. It is an
// error if no object or several match. An empty string, which clears a field,
// stays.
func (c *call) resolveText(kind string, written *string) error {
	if _, err := uuid.Parse(*written); err == nil || *written == "" {
		return nil
	}
	if kind == anyObject {
		return c.resolveKey(written)
	}
	found, err := c.find(kind, *written)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		why := "it is neither a uuid nor a name, nor the beginning of one"
		if uuidBeginningShort.MatchString(*written) {
			why = "no name begins with it, and the beginning of a uuid needs 8 characters or more"
		}
		return statusError{fmt.Errorf("%s %q does not exist: %s%s", kind, *written, why, c.didYouMean(kind, *written)),
			exitNotFound}
	case len(found) == 1:
		*written = found[0].uuid
		return nil
	}
	return ambiguous(*written, plural(kind), found)
}

// ambiguous returns the error about a name or the beginning of a uuid that
// several objects have.
func ambiguous(written, objects string, found []match) error {
	lines := ""
	for _, of := range found[:min(len(found), maxMatches)] {
		lines += "\n" + strings.TrimRight(fmt.Sprintf("  %s  %s  %s", of.uuid, of.name, of.of), " ")
	}
	if more := len(found) - maxMatches; more > 0 {
		lines += fmt.Sprintf("\n  and %d more", more)
	}
	return usagef("%q is ambiguous, %d %s match; write more of it, or a uuid:%s", written, len(found), objects, lines)
}

// anyObject is the kind of a key of the audit log: a name or a uuid of an object
// of any kind.
const anyObject = "object"

// resolveKey replaces the beginning of a uuid in a key of the audit log by the
// uuid of an existing object. Any other key stays, since its object may be deleted.
func (c *call) resolveKey(key *string) error {
	if !uuidBeginning.MatchString(*key) {
		return nil
	}
	var found []match
	for _, kind := range []string{"resource", "provider", "consumer"} {
		all, err := c.find(kind, *key)
		if err != nil {
			return err
		}
		for _, of := range all {
			if one := (match{uuid: of.uuid}); beginsWith(of.uuid, *key) && !slices.Contains(found, one) {
				found = append(found, one)
			}
		}
	}
	slices.SortFunc(found, func(a, b match) int { return strings.Compare(a.uuid, b.uuid) })
	switch len(found) {
	case 0:
		return nil
	case 1:
		*key = found[0].uuid
		return nil
	}
	return ambiguous(*key, plural(anyObject), found)
}

// find returns the objects with exactly this name, otherwise the objects with
// names that begin with it, ignoring case. If written may be the beginning of a
// uuid, find adds the objects with such uuids.
func (c *call) find(kind, written string) ([]match, error) {
	found, err := c.findNamed(kind, written)
	if err != nil || !uuidBeginning.MatchString(written) {
		return found, err
	}
	var filter map[string]any
	if kind == "provider" {
		filter = map[string]any{"search": written} // searches uuids, too
	}
	all, err := c.named(kind, filter, maxBegun)
	if len(all) == maxBegun {
		return nil, usagef("%q may be the beginning of several uuids, of more than %d; write the whole uuid", written,
			maxBegun)
	}
	for _, of := range begunWith(written, all) {
		if !slices.ContainsFunc(found, func(one match) bool { return one.uuid == of.uuid }) {
			found = append(found, of)
		}
	}
	return found, err
}

// findNamed returns the objects with exactly this name, otherwise the objects with
// names that begin with it, ignoring case. A consumer has the name of its
// resource.
func (c *call) findNamed(kind, written string) ([]match, error) {
	names := kind // the kind of the object with the name
	if kind == "consumer" {
		names = "resource"
	}
	contains := nameLists[names].contains
	for _, filter := range []map[string]any{{"name": written}, {contains: written}} {
		if contains == "" {
			break
		}
		found, err := c.named(names, filter, maxLooked)
		if err != nil {
			return nil, err
		}
		if len(found) == maxLooked {
			return nil, usagef("%q is ambiguous, %d names or more contain it; write more of it, or a uuid", written,
				maxLooked)
		}
		exact := slices.DeleteFunc(slices.Clone(found), func(of match) bool { return of.name != written })
		if len(exact) > 0 {
			return exact, nil
		}
		if begun := begunWith(written, found); len(begun) > 0 {
			return begun, nil
		}
	}
	return nil, nil
}

// begunWith returns the objects with names or, from 8 characters on, uuids that
// begin with a string, without duplicates.
func begunWith(begun string, found []match) (out []match) {
	ofUUID := uuidBeginning.MatchString(begun)
	for _, of := range found {
		if (beginsWith(of.name, begun) || ofUUID && beginsWith(of.uuid, begun)) && !slices.Contains(out, of) {
			out = append(out, of)
		}
	}
	return out
}

func beginsWith(whole, prefix string) bool {
	return len(whole) >= len(prefix) && strings.EqualFold(whole[:len(prefix)], prefix)
}

// didYouMean returns the end of an error with the nearest name of a kind; empty
// if no name is near or the server refuses.
func (c *call) didYouMean(kind, written string) string {
	filters, of := []map[string]any{nil}, min(4, len(written))
	if part := nameLists[kind].contains; part != "" {
		filters = []map[string]any{{part: written[:of]}, {part: written[len(written)-of:]}}
	}
	var known []string
	for _, filter := range filters {
		all, err := c.named(kind, filter, maxLooked)
		if err != nil {
			return ""
		}
		known = append(known, lists.Map(all, func(of match) string { return of.name })...)
	}
	return text.NewSpeller(known).DidYouMean(written)
}
