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

// MetadataProblem is a metadata item with a rule that it breaks.
type MetadataProblem struct {
	metadef.KeyValue
	metadef.Violation
}

// ResourceProblems are the problems with the metadata of a resource.
type ResourceProblems struct {
	Resource *Resource
	Problems []*MetadataProblem
}

// ProblemsOf returns the problems in a report on items, in the order of the
// items.
func ProblemsOf(items []metadef.KeyValue, report *metadef.MetadataReport) []*MetadataProblem {
	var problems []*MetadataProblem
	for i, item := range report.Items {
		for _, violation := range item.Violations {
			problems = append(problems, &MetadataProblem{KeyValue: items[i], Violation: violation})
		}
	}
	return problems
}

// NewProblems returns the problems in after that are not in before, by key and
// rule. It clears their definitions, because the change of definitions is not
// stored.
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

// ProblemFilter selects problems. A nil field is no condition.
type ProblemFilter struct {
	Namespace *string // name of the definition's namespace
	Key       *string
	Rule      *string
	Resources Filter
}

// keeps reports whether the filter selects a problem.
func (f ProblemFilter) keeps(p *MetadataProblem) bool {
	is := func(wanted *string, value string) bool { return wanted == nil || *wanted == value }
	return is(f.Namespace, text.OrEmpty(p.Namespace)) && is(f.Key, p.Key) && is(f.Rule, p.Rule)
}

// MaxScan is the maximum number of resources that one scan for problems reads.
const MaxScan = 1000

// problemList marks the cursors of the list of resources with problems.
const problemList = "metadataProblems"

// ProblemScan is a request for the resources with problems, sorted by uuid.
type ProblemScan struct {
	Filter ProblemFilter
	First  int     // maximum number of resources with problems
	Scan   int     // maximum number of resources to read
	After  *string // a cursor
}

// Check adds the problems of the scan at a path, except for its filter of
// resources. It returns the uuid after which the scan starts, "" for the
// beginning.
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

// ProblemPage is the result of a scan.
type ProblemPage struct {
	Nodes    []*ResourceProblems
	Cursors  []string // one for each node
	Scanned  int      // resources
	Complete bool     // the scan reached the last resource
	// ScannedTo is the cursor of the last resource that the scan read, nil if
	// it read none.
	ScannedTo *string
	// End is the cursor after which the next page starts. HasMore reports
	// whether there may be one.
	End     *string
	HasMore bool
	found   []*ResourceProblems // including those beyond the page
	// Undefined has the keys without a definition, each with the number of scanned
	// resources that have it. UndefinedIn counts the resources with any such key.
	Undefined   map[string]int
	UndefinedIn int
}

// CountUndefined counts the keys without a definition in reports on all scanned
// resources.
func (p *ProblemPage) CountUndefined(reports map[int64]*metadef.MetadataReport) {
	p.Undefined = map[string]int{}
	for _, report := range reports {
		if slices.ContainsFunc(report.Items, func(item metadef.MetadataReportItem) bool { return item.IsCustom }) {
			p.UndefinedIn++
		}
		for _, item := range report.Items {
			if item.IsCustom {
				p.Undefined[item.Key]++
			}
		}
	}
}

// PageOf returns the page of a scan that read the given resources, sorted by
// uuid. problemsOf returns the problems of each, more reports whether further
// resources follow.
func (s ProblemScan) PageOf(scanned []*Resource, problemsOf func(*Resource) []*MetadataProblem,
	more bool) *ProblemPage {
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

// Definitions returns the definitions of the problems of the page, perhaps with
// duplicates.
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

// ResourceCount returns the number of scanned resources with problems that the
// filter keeps.
func (p *ProblemPage) ResourceCount() int { return len(p.found) }

// ProblemCount returns the number of problems of the scanned resources that the
// filter keeps.
func (p *ProblemPage) ProblemCount() int {
	count := 0
	for _, of := range p.found {
		count += len(of.Problems)
	}
	return count
}

// ProblemGrouping is a property by which problems are grouped.
type ProblemGrouping string

// The properties by which problems can be grouped.
const (
	ByNamespace ProblemGrouping = "NAMESPACE"
	ByKey       ProblemGrouping = "KEY"
	ByRule      ProblemGrouping = "RULE"
)

// ProblemCount is the number of problems in a group, and of resources with any of
// them. Namespace, Key or Rule is nil if problems are not grouped by it or do not
// have it.
type ProblemCount struct {
	Namespace, Key, Rule        *string
	ResourceCount, ProblemCount int
}

// group is the key of a group of problems. A field is "" if problems are not
// grouped by it or do not have it.
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

// Counts groups the problems of all scanned resources and returns the first
// groups. Groups with more resources come first. The error has the problems of by
// and first.
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
				count = &ProblemCount{Namespace: unlessEmpty(g.namespace),
					Key: unlessEmpty(g.key), Rule: unlessEmpty(g.rule)}
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
		return cmp.Or(cmp.Compare(b.ResourceCount, a.ResourceCount),
			cmp.Compare(text.OrEmpty(a.Namespace), text.OrEmpty(b.Namespace)),
			cmp.Compare(text.OrEmpty(a.Key), text.OrEmpty(b.Key)),
			cmp.Compare(text.OrEmpty(a.Rule), text.OrEmpty(b.Rule)))
	})
	return counts[:min(len(counts), first)], nil
}

func unlessEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
