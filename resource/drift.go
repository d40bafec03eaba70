package resource

import (
	"cmp"
	"slices"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// MetadataProblem is a rule that an item of metadata breaks.
type MetadataProblem struct {
	metadef.KeyValue
	metadef.Violation
}

// ResourceProblems are a resource and what is wrong with its metadata.
type ResourceProblems struct {
	Resource *Resource
	Problems []*MetadataProblem
}

// ProblemsOf returns what a report on items says is wrong with them, in their
// order.
func ProblemsOf(items []metadef.KeyValue, report *metadef.MetadataReport) []*MetadataProblem {
	var problems []*MetadataProblem
	for i, item := range report.Items {
		for _, violation := range item.Violations {
			problems = append(problems, &MetadataProblem{KeyValue: items[i], Violation: violation})
		}
	}
	return problems
}

// NewProblems returns those problems after a change of definitions that were not
// there before: of keys that break another rule. They have no definition, for it is
// not stored like that.
func NewProblems(before, after []*MetadataProblem) []*MetadataProblem {
	rule := func(p *MetadataProblem) [2]string { return [2]string{p.Key, p.Rule} }
	broken := lists.Set(before, rule)
	var anew []*MetadataProblem
	for _, p := range after {
		if !broken[rule(p)] {
			undefined := *p
			undefined.Definition = nil
			anew = append(anew, &undefined)
		}
	}
	return anew
}

// ProblemFilter says which problems are wanted; nil is no condition.
type ProblemFilter struct {
	Namespace *string // the name of that of the definition
	Key       *string
	Rule      *string
	Resources Filter
}

// keeps reports whether a problem is wanted.
func (f ProblemFilter) keeps(p *MetadataProblem) bool {
	is := func(wanted *string, value string) bool { return wanted == nil || *wanted == value }
	return is(f.Namespace, text.OrEmpty(p.Namespace)) && is(f.Key, p.Key) && is(f.Rule, p.Rule)
}

// MaxScan is how many resources one scan for problems looks through.
const MaxScan = 1000

// problemList is the name of the list of resources with problems in its cursors.
const problemList = "metadataProblems"

// ProblemScan asks for the resources with problems among some resources by uuid.
type ProblemScan struct {
	Filter ProblemFilter
	First  int     // of the resources with problems, at most
	Scan   int     // of the resources looked through, at most
	After  *string // a cursor
}

// Check adds what is wrong with the scan at a path, but for its filter of
// resources, and returns the uuid that it begins after; empty is the start.
func (s ProblemScan) Check(problems *problem.Problems, path string) (after string) {
	filter := problem.Join(path, "filter")
	text.Check(problems, problem.Join(filter, "namespace"), text.OrEmpty(s.Filter.Namespace), 0, text.MaxName)
	text.Check(problems, problem.Join(filter, "key"), text.OrEmpty(s.Filter.Key), 0, metadef.MaxMetadataKey)
	if s.First < 0 || s.First > page.MaxSize {
		problems.Add(problem.Join(path, "first"), "must be from 0 to %d", page.MaxSize)
	}
	if s.Scan < 1 || s.Scan > MaxScan {
		problems.Add(problem.Join(path, "scan"), "must be from 1 to %d", MaxScan)
	}
	if s.After == nil {
		return ""
	}
	position, ok := page.ParsePosition(*s.After, problemList)
	var bad problem.Problems
	if text.Check(&bad, "", position.ID, 1, 36); !ok || len(bad) > 0 { // a uuid
		problems.Add(problem.Join(path, "after"), "is not a cursor of this list")
	}
	return position.ID
}

// ProblemPage is what a scan found.
type ProblemPage struct {
	Nodes    []*ResourceProblems
	Cursors  []string // one for each node
	Scanned  int      // resources
	Complete bool     // the last resource was looked at
	// ScannedTo is the cursor of the last resource that was looked at, nil for
	// none.
	ScannedTo *string
	// End is the cursor after which the next page begins, and HasMore whether
	// there may be one.
	End     *string
	HasMore bool
	found   []*ResourceProblems // those beyond the page, too
}

// PageOf returns what the scan finds in the resources that it looks through, by
// uuid, given what is wrong with each of them. More says that there are others
// after them.
func (s ProblemScan) PageOf(scanned []*Resource, problemsOf func(*Resource) []*MetadataProblem, more bool) *ProblemPage {
	p := &ProblemPage{Scanned: len(scanned), Complete: !more}
	for _, of := range scanned {
		problems := slices.DeleteFunc(problemsOf(of), func(p *MetadataProblem) bool { return !s.Filter.keeps(p) })
		if len(problems) > 0 {
			p.found = append(p.found, &ResourceProblems{of, problems})
		}
	}
	p.Nodes = p.found[:min(len(p.found), s.First)]
	p.Cursors = lists.Map(p.Nodes, func(of *ResourceProblems) string { return problemCursor(of.Resource) })
	if len(scanned) > 0 {
		p.ScannedTo = new(problemCursor(scanned[len(scanned)-1]))
	}
	p.End, p.HasMore = p.ScannedTo, more
	if len(p.found) > len(p.Nodes) {
		p.End, p.HasMore = s.After, true
		if len(p.Nodes) > 0 {
			p.End = &p.Cursors[len(p.Nodes)-1]
		}
	}
	return p
}

func problemCursor(of *Resource) string {
	return page.Position{List: problemList, ID: of.UUID}.Cursor()
}

// Resources returns the resources of the page.
func (p *ProblemPage) Resources() []*Resource {
	return lists.Map(p.Nodes, func(of *ResourceProblems) *Resource { return of.Resource })
}

// Definitions returns the definitions that problems of the page are about.
func (p *ProblemPage) Definitions() []*metadef.PropertyDefinition {
	var definitions []*metadef.PropertyDefinition
	for _, node := range p.Nodes {
		for _, problem := range node.Problems {
			if problem.Definition != nil {
				definitions = append(definitions, problem.Definition)
			}
		}
	}
	return definitions
}

// ResourceCount returns how many of the resources that were looked through have
// problems.
func (p *ProblemPage) ResourceCount() int { return len(p.found) }

// ProblemCount returns how many problems they have.
func (p *ProblemPage) ProblemCount() int {
	count := 0
	for _, of := range p.found {
		count += len(of.Problems)
	}
	return count
}

// ProblemGrouping says what the problems of one group have in common.
type ProblemGrouping string

// What problems can be counted by.
const (
	ByNamespace ProblemGrouping = "NAMESPACE"
	ByKey       ProblemGrouping = "KEY"
	ByRule      ProblemGrouping = "RULE"
)

// ProblemCount is how many problems a group has; nil is what problems are not
// grouped by, or do not have.
type ProblemCount struct {
	Namespace, Key, Rule        *string
	ResourceCount, ProblemCount int
}

// group is what the problems of one group have in common; empty is what they are
// not grouped by, or do not have.
type group struct{ namespace, key, rule string }

func groupOf(p *MetadataProblem, by []ProblemGrouping) (g group) {
	for _, grouping := range by {
		switch grouping {
		case ByNamespace:
			g.namespace = text.OrEmpty(p.Namespace)
		case ByKey:
			g.key = p.Key
		case ByRule:
			g.rule = p.Rule
		}
	}
	return g
}

// Counts returns the first groups of the problems of all resources that were
// looked through, those of most resources first.
func (p *ProblemPage) Counts(by []ProblemGrouping, first int) ([]*ProblemCount, error) {
	var problems problem.Problems
	text.CheckDistinct(&problems, "by", by)
	page.Request{First: &first}.Check(&problems)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	groups := map[group]*ProblemCount{}
	counts := []*ProblemCount{}
	for _, of := range p.found {
		seen := map[group]bool{}
		for _, problem := range of.Problems {
			g := groupOf(problem, by)
			count := groups[g]
			if count == nil {
				count = &ProblemCount{Namespace: unlessEmpty(g.namespace), Key: unlessEmpty(g.key), Rule: unlessEmpty(g.rule)}
				groups[g], counts = count, append(counts, count)
			}
			count.ProblemCount++
			if !seen[g] {
				seen[g] = true
				count.ResourceCount++
			}
		}
	}
	slices.SortFunc(counts, func(a, b *ProblemCount) int {
		return cmp.Or(cmp.Compare(b.ResourceCount, a.ResourceCount), cmp.Compare(text.OrEmpty(a.Namespace), text.OrEmpty(b.Namespace)),
			cmp.Compare(text.OrEmpty(a.Key), text.OrEmpty(b.Key)), cmp.Compare(text.OrEmpty(a.Rule), text.OrEmpty(b.Rule)))
	})
	return counts[:min(len(counts), first)], nil
}

func unlessEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
