package document

import (
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"
)

// maxCount is where the counts of a document stop.
const maxCount = 1 << 30

// shape measures a document before it is validated, in one visit of each of its
// nodes: a fragment is measured once, however often it is spread.
type shape struct {
	limits    Limits
	document  *ast.QueryDocument
	fragments map[string]extent
	aliases   int
	names     map[string]int // how often each response name stands in the document
	visits    int            // nodes visited: the work done, which tests hold to the document's length
	problem   string         // the first limit that is exceeded
}

// extent is the size of a selection set with the fragments spread in it.
type extent struct {
	depth  int // levels of fields
	fields int // fields of the first level
}

// checkShape refuses a document that is too deep, or has too many aliases, root
// fields, fields of one name or directives at one place.
func checkShape(document *ast.QueryDocument, limits Limits) error {
	return (&shape{limits: limits, document: document}).check()
}

func (s *shape) check() error {
	s.fragments, s.names = map[string]extent{}, map[string]int{}
	for _, operation := range s.document.Operations {
		s.directives(operation.Directives)
		for _, variable := range operation.VariableDefinitions {
			s.visits++
			s.directives(variable.Directives)
		}
		size := s.selections(operation.SelectionSet)
		s.limit(size.depth, s.limits.Depth, "levels of fields")
		s.limit(size.fields, s.limits.RootFields, "root fields")
	}
	for _, fragment := range s.document.Fragments {
		s.fragment(fragment)
	}
	s.limit(s.aliases, s.limits.Aliases, "aliases")
	repeats := 0
	for _, count := range s.names {
		repeats = max(repeats, count)
	}
	s.limit(repeats, s.limits.Repeats, "fields with the same response name")
	if s.problem == "" {
		return nil
	}
	return tooComplex("%s", s.problem)
}

// limit notes that there are more of something than the maximum, unless another
// limit is exceeded already.
func (s *shape) limit(count, maximum int, what string) {
	if maximum > 0 && count > maximum && s.problem == "" {
		s.problem = fmt.Sprintf("the document has %d %s, the maximum is %d", count, what, maximum)
	}
}

func (s *shape) fragment(fragment *ast.FragmentDefinition) extent {
	if size, ok := s.fragments[fragment.Name]; ok {
		return size
	}
	s.fragments[fragment.Name] = extent{} // a cycle ends here; validation refuses it
	s.directives(fragment.Directives)
	size := s.selections(fragment.SelectionSet)
	s.fragments[fragment.Name] = size
	s.limit(size.depth, s.limits.Depth, "levels of fields")
	return size
}

func (s *shape) selections(set ast.SelectionSet) extent {
	var total extent
	for _, selection := range set {
		s.visits++
		var size extent
		switch selection := selection.(type) {
		case *ast.Field:
			s.directives(selection.Directives)
			s.names[selection.Alias]++
			if selection.Alias != selection.Name {
				s.aliases++
			}
			size = extent{depth: 1 + s.selections(selection.SelectionSet).depth, fields: 1}
		case *ast.InlineFragment:
			s.directives(selection.Directives)
			size = s.selections(selection.SelectionSet)
		case *ast.FragmentSpread:
			s.directives(selection.Directives)
			if fragment := s.document.Fragments.ForName(selection.Name); fragment != nil {
				size = s.fragment(fragment)
			}
		}
		total.depth = max(total.depth, size.depth)
		total.fields = min(total.fields+size.fields, maxCount)
	}
	return total
}

func (s *shape) directives(list ast.DirectiveList) {
	s.visits += len(list)
	s.limit(len(list), s.limits.Directives, "directives at one place")
}
