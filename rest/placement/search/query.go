package search

import (
	"net/http"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/rest"
)

// Patterns of the suffixes of groups: numbered before 1.33, then suffixed.
const (
	numbered = "[1-9][0-9]*"
	suffixed = "[a-zA-Z0-9_-]{1,64}"
)

var (
	text = &rest.Schema{Type: "string"}
	uuid = &rest.Schema{Type: "string", UUID: true}
)

func providersQuery(version int) *rest.Schema {
	return rest.Members(version, rest.May(0, "name", text), rest.May(0, "uuid", uuid),
		rest.May(3, "member_of", text), rest.May(4, "resources", text),
		rest.May(14, "in_tree", uuid), rest.May(18, "required", text))
}

// candidatesSchema returns the schema of the query of candidates.
func candidatesSchema(version int) *rest.Schema {
	list := []rest.Member{
		rest.May(16, "limit", &rest.Schema{Type: "string", Pattern: "^[1-9][0-9]*$", MinSize: 1}),
		rest.May(25, "group_policy", &rest.Schema{Type: "string", Enum: []string{"none", "isolate"}}),
		rest.May(35, "root_required", text), rest.May(36, "same_subtree", text),
	}
	if version < 25 {
		return rest.Members(version, append(list, rest.Must(10, "resources", text), rest.May(17, "required", text),
			rest.May(21, "member_of", text))...)
	}
	schema := rest.Members(version, list...)
	schema.Patterns = map[string]*rest.Schema{}
	for _, name := range groupKeys(version) {
		schema.Patterns["^"+name+suffixPattern(version)+"$"] = text
	}
	return schema
}

// groupKeys returns the parameters of groups.
func groupKeys(version int) []string {
	keys := []string{"resources", "required", "member_of"}
	if version >= 31 {
		keys = append(keys, "in_tree")
	}
	return keys
}

// suffixPattern returns a pattern that matches a suffix of a group or the empty
// string, as a subexpression.
func suffixPattern(version int) string {
	if version >= 33 {
		return "(" + suffixed + ")?"
	}
	return "(" + numbered + ")?"
}

// CheckQuery checks the parameters of a URL. For most parameters, the reference
// ignores all but one value. Without compat, several values of these are an
// error.
func CheckQuery(r *rest.Request, schema *rest.Schema, compat bool) error {
	seen := map[string]bool{}
	for _, one := range r.Query {
		isList := strings.HasPrefix(one.Key, "member_of") || strings.HasPrefix(one.Key, "required") && r.Since(39) ||
			one.Key == "same_subtree" || one.Key == "root_required"
		if seen[one.Key] && !isList && !compat {
			return repeated(one.Key)
		}
		seen[one.Key] = true
	}
	return r.CheckQuery(schema)
}

func repeated(key string) error {
	return rest.Refuse(http.StatusBadRequest, "query.duplicate_key",
		"Query parameter '%s' may be specified only once.", key)
}

// fault returns the fault for the problems of a search, nil if there are none.
func fault(problems []placement.Problem) error {
	var classes, traits []string // that do not exist
	for _, one := range problems {
		if one.ResourceClass != "" && !slices.Contains(classes, one.ResourceClass) {
			classes = append(classes, one.ResourceClass)
		}
		if one.Trait != "" && !slices.Contains(traits, one.Trait) {
			traits = append(traits, one.Trait)
		}
	}
	switch {
	case classes != nil:
		return rest.Bad("Invalid resource class in resources parameter: No such resource class %s.",
			strings.Join(classes, ", "))
	case traits != nil:
		return rest.Bad("Invalid trait(s) in \"required\" parameter: No such trait(s): %s.", strings.Join(traits, ", "))
	case len(problems) > 0:
		return rest.Bad("Invalid query string parameters: %s", problems[0].String())
	}
	return nil
}
