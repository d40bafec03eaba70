package graph

import "github.com/cadastre-dev/cadastre/graph/document"

// namedIn returns how many names of resource types and of namespaces a value has,
// an argument or what is in it, that are looked up before the field reads.
func namedIn(name string, value any) (types, namespaces int64) {
	switch name {
	case "types", "resourceType", "resourceTypes":
		return lengthOf(value), 0
	case "namespace", "namespaces":
		return 0, lengthOf(value)
	}
	for name, value := range objectOf(value) {
		if name == "where" { // conditions name neither
			continue
		}
		t, n := namedIn(name, value)
		types, namespaces = types+t, namespaces+n
	}
	return types, namespaces
}

// namesWork looks the names of some arguments up: one statement for those that
// the operation did not look up before.
func namesWork(arguments ...string) func(document.Call) document.Work {
	return func(c document.Call) document.Work {
		var types, namespaces int64
		for _, name := range arguments {
			t, n := namedIn(name, c.Argument(name))
			types, namespaces = types+t, namespaces+n
		}
		if types+namespaces == 0 {
			return document.Work{}
		}
		work := document.Work{Statements: 1}
		if types > 0 {
			work.Read, work.Scanned = types, c.Size(tableResourceTypes)
		}
		if namespaces > 0 {
			found := readOf(c, namespaces, tableNamespaces)
			work.Read, work.Scanned = work.Read+found.Read, work.Scanned+found.Scanned
		}
		return work
	}
}

// withNames adds to works that of looking up the names in the arguments.
func withNames(works document.Works) document.Works {
	for field, arguments := range map[string][]string{
		"Query.namespaces": {"filter"}, "Query.resources": {"filter"}, "Query.explainResources": {"filter"},
		"Query.metadataKeys": {"filter", "resourceType"}, "Query.metadataProblems": {"filter"}, "Query.exportNamespaces": {"resourceTypes"},
		"Query.resourceProviders": {"filter"}, "Query.capacity": {"filter"}, "Query.allocationCandidates": {"hosts"},
		"Resource.children": {"filter"}, "ResourceType.resources": {"filter"}, "ResourceType.associations": {"filter"},
		"Namespace.resourceTypeAssociations": {"filter"}, "Namespace.properties": {"resourceType"}, "Namespace.property": {"resourceType"},
		"Namespace.propertyConnection": {"resourceType"}, "Namespace.objects": {"resourceType"}, "Namespace.object": {"resourceType"},
		"Namespace.objectConnection": {"resourceType"},
	} {
		works[field] = both(works[field], namesWork(arguments...))
	}
	works["Query.resourceTypes"] = both(works["Query.resourceTypes"], func(c document.Call) document.Work {
		names := objectOf(c.Argument("filter"))["names"]
		if lengthOf(names) == 0 {
			return document.Work{}
		}
		return document.Work{Statements: 1, Read: lengthOf(names), Scanned: c.Size(tableResourceTypes)}
	})
	works["Query.definitions"] = both(works["Query.definitions"], func(c document.Call) document.Work {
		work := namesWork("resourceType")(c)
		work.Fallback = work.Statements // memory knows the name, too
		return work
	})
	for _, field := range []string{"Query.traits", "Query.resourceClasses"} { // whose names are in memory
		works[field] = both(works[field], func(c document.Call) document.Work {
			return document.Work{World: objectOf(c.Argument("filter"))["names"] != nil}
		})
	}
	return works
}

// both returns the work of a field and more for its arguments.
func both(work document.Work, more func(document.Call) document.Work) document.Work {
	given := work.Given
	work.Given = func(c document.Call) document.Work {
		if given == nil {
			return more(c)
		}
		return given(c).Plus(more(c))
	}
	return work
}
