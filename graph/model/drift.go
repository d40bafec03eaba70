package model

import (
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
)

// MetadataProblemConnection is a page of resources with metadata that breaks
// its definitions.
type MetadataProblemConnection struct{ *resource.ProblemPage }

// Edges returns the resources with their cursors.
func (c *MetadataProblemConnection) Edges() []ResourceProblemsEdge {
	rows := page.Page[*resource.ResourceProblems]{Items: c.Nodes, Cursors: c.Cursors}
	return (&Connection[resource.ResourceProblems]{Page: rows}).Edges()
}

// PageInfo returns the cursors of the page and whether more pages follow.
func (c *MetadataProblemConnection) PageInfo() *PageInfo {
	info := &PageInfo{EndCursor: c.End, HasNext: c.HasMore}
	if len(c.Cursors) > 0 {
		info.StartCursor = &c.Cursors[0]
	}
	return info
}

// ProblemFilterOf returns a filter of problems; nil selects all.
func ProblemFilterOf(filter *MetadataProblemFilter) resource.ProblemFilter {
	if filter == nil {
		return resource.ProblemFilter{}
	}
	of := resource.ProblemFilter{Namespace: filter.Namespace.Value(), Key: filter.Key.Value(),
		Rule: RuleNamed(filter.Rule.Value())}
	if resources := filter.Resources.Value(); resources != nil {
		of.Resources = *resources
	}
	return of
}

// ProblemScanOf returns a scan for problems; nil is the first page of a scan
// without a filter.
func ProblemScanOf(scan *MetadataProblemScan) resource.ProblemScan {
	if scan == nil {
		return resource.ProblemScan{First: page.DefaultSize, Scan: resource.MaxScan}
	}
	return resource.ProblemScan{Filter: ProblemFilterOf(scan.Filter.Value()), First: scan.First,
		Scan: scan.Scan, After: scan.After.Value()}
}
