package graph

import "github.com/cadastre-dev/cadastre/graph/document"

// bulkWorks is the work of the fields of mutations for many: a result for each
// item of the input, of which few have errors.
func bulkWorks() document.Works {
	results := document.Work{Given: resultsWork}
	errors := document.Work{Given: func(document.Call) document.Work { return document.Work{Length: 1} }}
	return document.Works{
		"CreateResourceProvidersPayload.results": results, "CreateResourceProvidersResult.errors": errors,
		"CreateResourcesPayload.results": results, "CreateResourcesResult.errors": errors,
		"SetOnResourceProvidersPayload.results": results, "SetOnResourceProvidersResult.errors": errors,
		"SetMetadataOnResourcesPayload.results": results, "SetMetadataOnResourcesResult.errors": errors,
	}
}

// resultsWork is the work of the results of the items of a mutation.
func resultsWork(c document.Call) document.Work {
	mutation, ok := c.Parent()
	if !ok {
		return document.Work{}
	}
	return document.Work{Length: lengthOf(objectOf(mutation.Argument("input"))["items"])}
}
