package graph

import (
	"strings"

	"github.com/cadastre-dev/cadastre/graph/document"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
)

// problemWorks returns what the fields of problems of metadata do.
func problemWorks() document.Works {
	works := document.Works{
		"Query.metadataProblems":           {Statements: 2, World: true, Given: problemsWork},
		"MetadataProblemConnection.nodes":  {Given: problemNodesWork},
		"MetadataProblemConnection.edges":  {Given: problemNodesWork},
		"MetadataProblemConnection.counts": {Given: problemCountsWork},
		"MetadataProblem.message":          {Bytes: 100},
	}
	for _, field := range []string{"updateNamespace", "updateProperty", "updateObject", "updateResourceType"} {
		works["Mutation."+field] = document.Work{Given: dryRunWork}
	}
	works["Mutation.importNamespaces"] = document.Work{Given: importWork}
	return works
}

// importWork reads definition files, compares them with what is there, and writes
// what they define: about a row for each JSON object.
func importWork(c document.Call) document.Work {
	work := dryRunWork(c)
	documents, _ := objectOf(c.Argument("input"))["documents"].([]any)
	for _, text := range documents {
		text, _ := text.(string)
		work.Written += int64(strings.Count(text, "{"))
		work.Tests += int64(len(text) / 2)
	}
	return work
}

// dryRunWork judges resources twice, as definitions are and as they would be.
func dryRunWork(c document.Call) document.Work {
	if dryRun, _ := objectOf(c.Argument("input"))["dryRun"].(bool); !dryRun {
		return document.Work{}
	}
	scan := objectOf(c.Argument("problems"))
	work := scanWork(c, objectOf(scan["filter"]), scan["scan"])
	work.Statements = 0 // in the transaction of the mutation
	work.Read, work.Tests = work.Read+2*applied(c), 2*work.Tests
	return work
}

// problemNodesWork is as many resources as a page of problems has at most.
func problemNodesWork(c document.Call) document.Work {
	list, _ := c.Parent()
	rows := list.Page()
	if mutation, ok := list.Parent(); ok {
		if rows, ok = numberOf(objectOf(mutation.Argument("problems"))["first"]); !ok {
			rows = page.DefaultSize
		}
	}
	return document.Work{Length: max(1, min(rows, resource.MaxScan))}
}

// problemsWork judges the items of the resources that a scan looks through.
func problemsWork(c document.Call) document.Work {
	return scanWork(c, objectOf(c.Argument("filter")), c.Argument("scan"))
}

// scanWork is problemsWork for a filter and a number of resources.
func scanWork(c document.Call, filter map[string]any, scan any) document.Work {
	s := searchFor(c, objectOf(filter["resources"]))
	if filter["key"] != nil {
		s.add(c, []testGroup{{table: tableMetadataItems, tests: 1}})
	}
	work := judged(c, min(windowOf(scan), s.rows))
	work.Statements = s.statements
	if filter["namespace"] != nil {
		work.Scanned += c.Size(tableAssociations) + c.Size(tableNamespaces)
	}
	if s.whole {
		work.Scanned += s.rows
	}
	work.Scanned, work.Tests, work.AtMost = work.Scanned+s.scanned, work.Tests+s.tests, s.atMost
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
