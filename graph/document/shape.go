package document

import (
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"
)

// shape measures a document before it is validated, in one visit of each of its
// nodes: a fragment is measured once, however often it is spread.
type shape struct {
	limits    Limits
	document  *ast.QueryDocument
	fragments map[string]measured
	aliases   int
	names     map[string]int // how often each name of the answer stands there
	visits    int            // nodes visited: the work done, which tests hold to the document's length
	problem   string
}

// measured is what a selection set amounts to with everything spread in it.
type measured struct {
	depth  int // levels of fields
	fields int // fields of the first level
}

// refuseShape refuses a document that is too deep, or has too many aliases, root
// fields, fields of one name or directives at one place.
func refuseShape(document *ast.QueryDocument, limits Limits) error {
	return (&shape{limits: limits, document: document}).judge()
}

func (s *shape) judge() error {
	s.fragments, s.names = map[string]measured{}, map[string]int{}
	for _, operation := range s.document.Operations {
		s.directives(operation.Directives)
		for _, variable := range operation.VariableDefinitions {
			s.visits++
			s.directives(variable.Directives)
		}
		size := s.selections(operation.SelectionSet)
		s.hold(size.depth, s.limits.Depth, "levels of fields")
		s.hold(size.fields, s.limits.RootFields, "root fields")
	}
	for _, fragment := range s.document.Fragments {
		s.fragment(fragment)
	}
	s.hold(s.aliases, s.limits.Aliases, "aliases")
	for _, count := range s.names {
		s.hold(count, s.limits.Repeats, "fields of one name")
	}
	if s.problem == "" {
		return nil
	}
	return tooComplex("%s", s.problem)
}

// hold notes that there are too many of something; the first such note stays.
func (s *shape) hold(count, most int, what string) {
	if most > 0 && count > most && s.problem == "" {
		s.problem = fmt.Sprintf("the document has %d %s, the most are %d", count, what, most)
	}
}

func (s *shape) fragment(fragment *ast.FragmentDefinition) measured {
	if size, known := s.fragments[fragment.Name]; known {
		return size
	}
	s.fragments[fragment.Name] = measured{} // a cycle ends here; validation refuses it
	s.directives(fragment.Directives)
	size := s.selections(fragment.SelectionSet)
	s.fragments[fragment.Name] = size
	s.hold(size.depth, s.limits.Depth, "levels of fields")
	return size
}

func (s *shape) selections(set ast.SelectionSet) measured {
	var total measured
	for _, selection := range set {
		s.visits++
		var size measured
		switch selection := selection.(type) {
		case *ast.Field:
			s.directives(selection.Directives)
			s.names[selection.Alias]++
			if selection.Alias != selection.Name {
				s.aliases++
			}
			size = measured{depth: 1 + s.selections(selection.SelectionSet).depth, fields: 1}
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
		total.fields = min(total.fields+size.fields, 1<<30)
	}
	return total
}

func (s *shape) directives(list ast.DirectiveList) {
	s.visits += len(list)
	s.hold(len(list), s.limits.Directives, "directives at one place")
}
