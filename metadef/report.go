package metadef

import (
	"errors"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// ImportRequest is a request to import definition files.
type ImportRequest struct {
	Documents []string // one file each
	// Atomic stores all documents in one transaction, or none.
	Atomic bool
	Mode   ImportMode
	// Origin names the bundle of the documents. If a namespace came from the
	// same origin, Skip applies the document as a three-way upgrade
	// (PlanUpgrade), and PreferNew as PlanFollow does.
	Origin           *string
	IncludeProtected bool // overwrites protected namespaces, too
	// IncludeUnloaded creates deleted namespaces of the product's own bundle
	// again.
	IncludeUnloaded bool
	DryRun          bool // only reports the outcomes
}

// TriedNamespaces returns the names of the namespaces in the documents of a dry
// run. It returns none if the request is not a dry run.
func (r ImportRequest) TriedNamespaces() (names []string) {
	if !r.DryRun {
		return nil
	}
	for _, text := range r.Documents {
		if document, _, _ := ParseDocument(text); document != nil {
			names = append(names, document.Name)
		}
	}
	return names
}

// OwnOrigin is the origin of the product's own definitions.
const OwnOrigin = "cadastre"

// StaysAway reports whether the import leaves out namespaces of the product's
// own bundle that were deleted.
func (r ImportRequest) StaysAway() bool {
	return r.Origin != nil && *r.Origin == OwnOrigin && !r.IncludeUnloaded
}

// MaxDocuments is the maximum number of documents that one request imports or
// exports.
const MaxDocuments = 1000

// ImportOutcome is the outcome of importing one document.
type ImportOutcome string

const (
	ImportCreated   ImportOutcome = "CREATED"
	ImportUpdated   ImportOutcome = "UPDATED"
	ImportUnchanged ImportOutcome = "UNCHANGED"
	ImportSkipped   ImportOutcome = "SKIPPED"
	ImportUnloaded  ImportOutcome = "UNLOADED"
	ImportFailed    ImportOutcome = "FAILED"
)

// ImportReport is the report on one imported document. Warnings and errors
// begin with their path in the document.
type ImportReport struct {
	Namespace   string
	Outcome     ImportOutcome
	Warnings    []string
	Errors      []string
	Problems    []ReportProblem // the same as Errors
	Differences []string        // from the namespace before to the one after; if skipped, to the file
	Edits       []ImportEdit    // local edits that an upgrade keeps, by path
}

// ImportEdit is a local edit that an upgrade keeps. Base is the value of the
// bundle at the last import, Here the current value, Shipped the new value of
// the bundle. Each is JSON, or empty if there is no value.
type ImportEdit struct {
	Path                string
	Base, Here, Shipped text.JSON
}

// UnloadRequest selects namespaces to delete: all, or the ones that meet every
// given condition.
type UnloadRequest struct {
	Names            []string // nil is no condition
	ResourceTypes    []string // nil is no condition
	Origin           *string
	All              bool
	IncludeProtected bool // deletes protected namespaces, too
}

// Check refuses a request that selects nothing, that combines All with
// conditions, or whose lists repeat a name or are too long.
func (r UnloadRequest) Check(path string) error {
	var problems problem.Problems
	chosen := r.Names != nil || r.ResourceTypes != nil || r.Origin != nil
	switch {
	case r.All && chosen:
		problems.Add(problem.Join(path, "all"), "cannot be combined with names, resourceTypes or origin")
	case !r.All && !chosen:
		problems.Add(path, "must select namespaces by names, resourceTypes, origin or all")
	}
	for _, list := range []struct {
		path  string
		names []string
	}{{problem.Join(path, "names"), r.Names}, {problem.Join(path, "resourceTypes"), r.ResourceTypes}} {
		text.CheckList(&problems, list.path, list.names, MaxDocuments)
		text.CheckDistinct(&problems, list.path, list.names)
	}
	if r.Origin != nil {
		text.Check(&problems, problem.Join(path, "origin"), *r.Origin, 1, MaxOrigin)
	}
	return problems.Err()
}

// UnloadOutcome is the outcome of unloading one namespace.
type UnloadOutcome string

const (
	Unloaded     UnloadOutcome = "UNLOADED"
	UnloadFailed UnloadOutcome = "FAILED"
)

// UnloadReport is the report on one unloaded namespace.
type UnloadReport struct {
	Namespace string
	Outcome   UnloadOutcome
	Errors    []string
	Problems  []ReportProblem // the same as Errors
}

// ReportProblem is the reason for a failure in a report.
type ReportProblem struct {
	Code    ReportCode
	Path    *string // in the document; nil without one
	Message string
}

// ReportCode is the kind of refusal of a ReportProblem.
type ReportCode string

// reportCodes maps kinds of refusal to the codes in reports. Any other problem
// is an invalid input.
var reportCodes = []struct {
	kind error
	code ReportCode
}{
	{problem.ErrForbidden, "FORBIDDEN"}, {problem.ErrNotFound, "NOT_FOUND"},
	{problem.ErrAlreadyExists, "ALREADY_EXISTS"},
	{problem.ErrConcurrentUpdate, "CONCURRENT_UPDATE"}, {problem.ErrInUse, "IN_USE"},
	{problem.ErrProtected, "PROTECTED"},
	{problem.ErrQuotaExceeded, "QUOTA_EXCEEDED"}, {problem.ErrRateLimited, "RATE_LIMITED"},
	{problem.ErrTimeout, "TIMEOUT"},
	{problem.ErrUnavailable, "UNAVAILABLE"}, {problem.ErrOutcomeUnknown, "OUTCOME_UNKNOWN"},
}

func reportCodeOf(kind error) ReportCode {
	for _, of := range reportCodes {
		if errors.Is(kind, of.kind) {
			return of.code
		}
	}
	return "BAD_USER_INPUT"
}

// Fail adds the problems that make a document fail.
func (r *ImportReport) Fail(problems problem.Problems) {
	for _, one := range problems {
		r.Errors = append(r.Errors, one.Reported())
		r.Problems = append(r.Problems,
			ReportProblem{Code: reportCodeOf(one.Kind), Path: &one.Field, Message: one.Message})
	}
}

// FailedUnload returns the report on a namespace that was not deleted.
func FailedUnload(namespace string, refusal *problem.Refusal) *UnloadReport {
	return &UnloadReport{
		Namespace: namespace, Outcome: UnloadFailed, Errors: []string{refusal.Reported()},
		Problems: []ReportProblem{{Code: reportCodeOf(refusal.Kind), Message: refusal.Message}},
	}
}
