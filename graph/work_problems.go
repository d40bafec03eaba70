package graph

import (
	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/resource"
)

// problemWorks returns what the fields of problems of metadata do.
func problemWorks() document.Works {
	return document.Works{
		"Query.metadataProblems":           {Statements: 7, Given: problemsWork},
		"MetadataProblemConnection.counts": {Given: problemCountsWork},
		"MetadataProblem.message":          {Bytes: 100},
	}
}

// problemsWork judges the items of the resources that a scan looks through.
func problemsWork(c document.Call) document.Work {
	filter := objectOf(c.Argument("filter"))
	s := searchFor(c, objectOf(filter["resources"]))
	if filter["key"] != nil {
		s.add(c, []testGroup{{tableMetadataItems, 1}})
	}
	work := judged(c, min(windowOf(c.Argument("scan")), s.rows))
	work.Statements = s.statements
	if filter["namespace"] != nil {
		work.Scanned += c.Size(tableAssociations) + c.Size(tableNamespaces)
	}
	if s.whole {
		work.Scanned += s.rows
	}
	work.Scanned, work.Tests = work.Scanned+s.scanned, work.Tests+s.tests
	return work
}

// windowOf returns how many resources a scan looks through at most, and one more
// that says whether there are others.
func windowOf(scan any) int64 {
	number, ok := numberOf(scan)
	if !ok {
		number = resource.MaxScan
	}
	return min(max(number, 0), resource.MaxScan) + 1
}

// problemCountsWork is as many groups as are asked for, of the problems that a
// scan may find.
func problemCountsWork(c document.Call) document.Work {
	return document.Work{Length: max(1, min(c.Page(), atMost(c, resource.MaxScan, tableMetadataItems)))}
}
