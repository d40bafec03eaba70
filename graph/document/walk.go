package document

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/cadastre-dev/cadastre/problem"
)

// maxCount is where sums of the fields in fragments stop growing.
const maxCount = 1 << 30

// walker visits each node of a parsed document once, before validation. It
// checks the limits of the document's shape and the contents of its strings,
// and takes notes for later steps.
type walker struct {
	limits   Limits
	document *ast.QueryDocument
	noted    notes

	aliases     int
	names       map[string]int     // the number of fields with each response name
	definitions []*extent          // of the operations, in their order
	fragments   map[string]*extent // by name
	visits      int                // nodes visited, which tests compare with the document's length
	problem     string             // the first limit that is exceeded

	// strings enables the check of strings. Replaced reports whether a
	// replacement character in a string must come from half of a surrogate
	// pair, because the source itself contains none.
	strings, replaced bool
	invalid           error // the error of the first string that no database stores
}

// notes are the notes of the walk for later steps.
type notes struct {
	// values are the values of arguments and defaults. Each value comes before
	// its members and has the count of values in it, including itself.
	values []noted
	// members is the number of list members in the arguments of a field.
	members map[*ast.Field]int64
	// conditions are the variables of @skip and @include.
	conditions []string
}

type noted struct {
	value *ast.Value
	count int
}

// extent is the size of a selection set; walker.measure adds spread fragments.
type extent struct {
	depth   int // levels of fields
	fields  int // fields of the first level
	total   int // fields of all levels
	spreads []spread

	whole, measured bool
}

// spread is a fragment spread in a selection set, with its level.
type spread struct {
	name  string
	level int
}

// walk visits the document with the given source. It returns an error for a
// string that no database stores, or for an exceeded limit.
func (w *walker) walk(text string) error {
	w.names, w.fragments, w.noted.members = map[string]int{}, map[string]*extent{}, map[*ast.Field]int64{}
	w.strings = w.limits.Strings && (strings.Contains(text, `\u`) || strings.Contains(text, "\x00"))
	w.replaced = w.strings && !strings.Contains(text, "\uFFFD") && !strings.Contains(strings.ToLower(text), `\ufffd`)
	for _, operation := range w.document.Operations {
		for _, variable := range operation.VariableDefinitions {
			w.visits++
			w.value(w.at(nil, variable.Variable, 0), variable.DefaultValue)
			w.directives(variable.Directives)
		}
		w.directives(operation.Directives)
		size := &extent{}
		w.selections(operation.SelectionSet, 0, size)
		w.definitions = append(w.definitions, size)
	}
	for _, fragment := range w.document.Fragments {
		w.directives(fragment.Directives)
		size := &extent{}
		w.selections(fragment.SelectionSet, 0, size)
		if w.fragments[fragment.Name] == nil { // validation refuses a second one
			w.fragments[fragment.Name] = size
		}
	}
	if w.invalid != nil {
		return w.invalid
	}
	return w.checkLimits()
}

func (w *walker) selections(set ast.SelectionSet, level int, size *extent) {
	for _, selection := range set {
		w.visits++
		switch selection := selection.(type) {
		case *ast.Field:
			w.field(selection, level, size)
		case *ast.InlineFragment:
			w.directives(selection.Directives)
			w.selections(selection.SelectionSet, level, size)
		case *ast.FragmentSpread:
			w.directives(selection.Directives)
			size.spreads = append(size.spreads, spread{selection.Name, level})
		}
	}
}

func (w *walker) field(field *ast.Field, level int, size *extent) {
	w.names[field.Alias]++
	if field.Alias != field.Name {
		w.aliases++
	}
	size.depth = max(size.depth, level+1)
	size.total++
	if level == 0 {
		size.fields++
	}
	var members int64
	for _, argument := range field.Arguments {
		members = add(members, w.value(w.at(nil, argument.Name, 0), argument.Value))
	}
	if members > 0 {
		w.noted.members[field] = members
	}
	w.directives(field.Directives)
	w.selections(field.SelectionSet, level+1, size)
}

// directives visits the directives at one location.
func (w *walker) directives(list ast.DirectiveList) {
	w.visits += len(list)
	w.limit(len(list), w.limits.Directives, "directives at one location")
	for _, directive := range list {
		for _, argument := range directive.Arguments {
			w.string(w.at(nil, argument.Name, 0), argument.Value)
			if argument.Name == "if" && argument.Value.Kind == ast.Variable &&
				!slices.Contains(w.noted.conditions, argument.Value.Raw) {
				w.noted.conditions = append(w.noted.conditions, argument.Value.Raw)
			}
		}
	}
}

// value visits and notes a value and its members. It returns the number of
// members of all lists in the value.
func (w *walker) value(at *path, value *ast.Value) (members int64) {
	if value == nil {
		return 0
	}
	w.visits++
	w.checkString(at, value)
	if _, err := strconv.ParseInt(value.Raw, 10, 64); err != nil && value.Kind == ast.IntValue {
		value.Kind = ast.FloatValue // an integer too long for validation; its source stays the same
	}
	index := len(w.noted.values)
	w.noted.values = append(w.noted.values, noted{value: value})
	if value.Kind == ast.ListValue {
		members = int64(len(value.Children))
	}
	for i, child := range value.Children {
		members = add(members, w.value(w.at(at, child.Name, i), child.Value))
	}
	w.noted.values[index].count = len(w.noted.values) - index
	return members
}

// string checks the strings in an argument of a directive.
func (w *walker) string(at *path, value *ast.Value) {
	w.checkString(at, value)
	for i, child := range value.Children {
		w.string(w.at(at, child.Name, i), child.Value)
	}
}

// at returns the path of a variable, an argument, or a member of a list or an
// object. List members have no name. at returns nil if strings are not checked.
func (w *walker) at(parent *path, name string, index int) *path {
	if !w.strings {
		return nil
	}
	return &path{parent: parent, name: name, index: index}
}

// checkString notes the first string that no database stores: a string with
// U+0000, or with an unpaired surrogate. The server has already refused
// requests with invalid UTF-8.
func (w *walker) checkString(at *path, value *ast.Value) {
	switch {
	case !w.strings || w.invalid != nil:
	case strings.Contains(value.Raw, "\x00"):
		w.invalid = at.invalid("the character U+0000 is not allowed")
	case w.replaced && strings.Contains(value.Raw, "\uFFFD"):
		w.invalid = problem.Refuse(problem.ErrInvalidInput,
			"the request is not valid Unicode: invalid UTF-8 or an unpaired surrogate").
			On(at.String()).Because(errNotUnicode)
	}
}

// checkLimits refuses a document beyond a limit, after the whole document was
// visited.
func (w *walker) checkLimits() error {
	for _, size := range w.definitions {
		w.measure(size)
		w.limit(size.depth, w.limits.Depth, "levels of fields")
		w.limit(size.fields, w.limits.RootFields, "root fields")
		w.limit(size.total, maxVisits*w.limits.Places, "fields after expanding fragments")
	}
	for _, fragment := range w.document.Fragments {
		w.fragment(fragment.Name)
	}
	w.limit(w.aliases, w.limits.Aliases, "aliases")
	repeats := 0
	for _, count := range w.names {
		repeats = max(repeats, count)
	}
	w.limit(repeats, w.limits.Repeats, "fields with the same response name")
	if w.problem == "" {
		return nil
	}
	return tooComplex("%s", w.problem)
}

// limit notes that a count exceeds its maximum, unless another limit is
// exceeded already. A maximum of 0 is no limit.
func (w *walker) limit(count, maximum int, what string) {
	if maximum > 0 && count > maximum && w.problem == "" {
		w.problem = fmt.Sprintf("the document has %d %s, the maximum is %d", count, what, maximum)
	}
}

// measure adds the sizes of the spread fragments to the size of a selection
// set.
func (w *walker) measure(size *extent) {
	for _, spread := range size.spreads {
		w.visits++
		below := w.fragment(spread.name)
		size.depth = max(size.depth, spread.level+below.depth)
		size.total = min(size.total+below.total, maxCount)
		if spread.level == 0 {
			size.fields = min(size.fields+below.fields, maxCount)
		}
	}
}

// fragment returns the size of a fragment, including the fragments in it. It
// measures each fragment once, however often it is spread.
func (w *walker) fragment(name string) extent {
	size := w.fragments[name]
	if size == nil || size.measured && !size.whole {
		return extent{} // unknown, or a cycle: validation refuses either
	}
	if !size.measured {
		size.measured = true
		w.measure(size)
		w.limit(size.depth, w.limits.Depth, "levels of fields")
		size.whole = true
	}
	return *size
}

// The cost of reading a request, in fields of an answer.
const (
	costOfNode  = 20 // a selection, a directive, a variable or a value: 2 us
	costOfPair  = 1  // two fields of one response name, which validation compares: 0.1 us
	bytesOfText = 5  // bytes of the source that cost 1: 0.02 us each
	costOfValue = 10 // any value in the variables; an object, a list or a number takes 1 us to parse

	// costOfTooComplex is for a request that is refused as too complex: reading
	// its variables and adding up a price take about 0.4 ms.
	costOfTooComplex = 4 * 1000
)

// effort returns the cost of reading a document with the given length. If the
// document was not parsed, the length gives an estimate of the nodes.
func (w *walker) effort(bytes int) int64 {
	nodes := int64(w.visits)
	if w.document == nil { // parsing failed, at the limit of tokens at the latest
		nodes = int64(min(bytes/2, cmp.Or(w.limits.Tokens, bytes)))
	}
	cost := int64(bytes)/bytesOfText + nodes*costOfNode
	for _, count := range w.names {
		cost = add(cost, int64(count)*int64(count-1)/2*costOfPair)
	}
	return cost
}
