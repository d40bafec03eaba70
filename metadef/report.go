package metadef

import (
	"errors"

	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/text"
)

// ImportRequest asks to import definition files.
type ImportRequest struct {
	Documents []string // the text of one file each
	// Atomic stores either all documents, in one transaction, or none.
	Atomic bool
	Mode   ImportMode
	// Origin says where the documents come from as a bundle. A namespace that
	// the same origin brought takes them, under Skip, as a three-way upgrade.
	Origin           *string
	IncludeProtected bool // overwrites protected namespaces, too
	// IncludeUnloaded creates what came with the product's own bundle and was
	// deleted since.
	IncludeUnloaded bool
	DryRun          bool // reports what would be done and does nothing
}

// TriedNamespaces returns the names of the namespaces that the documents of a dry
// run define, none for an import.
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

// StaysAway reports whether a namespace that does not exist, and was deleted after
// the product's own bundle brought it, is left alone.
func (r ImportRequest) StaysAway() bool {
	return r.Origin != nil && *r.Origin == OwnOrigin && !r.IncludeUnloaded
}

// MaxDocuments is how many documents one request imports or exports.
const MaxDocuments = 1000

// ImportOutcome is what an import did with one document.
type ImportOutcome string

const (
	ImportCreated   ImportOutcome = "CREATED"
	ImportUpdated   ImportOutcome = "UPDATED"
	ImportUnchanged ImportOutcome = "UNCHANGED"
	ImportSkipped   ImportOutcome = "SKIPPED"
	ImportUnloaded  ImportOutcome = "UNLOADED"
	ImportFailed    ImportOutcome = "FAILED"
)

// ImportReport is what became of one imported document. Warnings and errors
// begin with their path in the document.
type ImportReport struct {
	Namespace   string
	Outcome     ImportOutcome
	Warnings    []string
	Errors      []string
	Problems    []ReportProblem // the same as Errors
	Differences []string        // from what was there to what is, or would be
	Edits       []ImportEdit    // of here, that an upgrade keeps, by their paths in the document
}

// ImportEdit is what an upgrade leaves as it was edited here: what the bundle had
// there when it was last imported, what is there, and what the bundle has now.
// Each is JSON, empty where there is nothing.
type ImportEdit struct {
	Path                string
	Base, Here, Shipped text.JSON
}

// UnloadRequest chooses namespaces to delete: all, or those for which every
// condition given holds.
type UnloadRequest struct {
	Names            []string // nil is no condition
	ResourceTypes    []string // nil is no condition
	Origin           *string
	All              bool
	IncludeProtected bool // deletes protected namespaces, too
}

// Check refuses a request that chooses nothing, or all and something, or names
// anything twice.
func (r UnloadRequest) Check(path string) error {
	var problems problem.Problems
	chosen := r.Names != nil || r.ResourceTypes != nil || r.Origin != nil
	switch {
	case r.All && chosen:
		problems.Add(problem.Join(path, "all"), "cannot be combined with names, resourceTypes or origin")
	case !r.All && !chosen:
		problems.Add(path, "must choose namespaces: by names, resourceTypes or origin, or all")
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

// UnloadOutcome is what an unload did with one namespace.
type UnloadOutcome string

const (
	Unloaded     UnloadOutcome = "UNLOADED"
	UnloadFailed UnloadOutcome = "FAILED"
)

// UnloadReport is what became of one namespace.
type UnloadReport struct {
	Namespace string
	Outcome   UnloadOutcome
	Errors    []string
	Problems  []ReportProblem // the same as Errors
}

// ReportProblem is why something in a report was not done.
type ReportProblem struct {
	Code    ReportCode
	Path    *string // in the document; nil where there is none
	Message string
}

// ReportCode is the kind of refusal of a ReportProblem.
type ReportCode string

// reportCodes are the codes of the kinds of refusal that are in reports. Whatever
// else is wrong is an invalid input.
var reportCodes = []struct {
	kind error
	code ReportCode
}{
	{problem.ErrForbidden, "FORBIDDEN"}, {problem.ErrNotFound, "NOT_FOUND"}, {problem.ErrAlreadyExists, "ALREADY_EXISTS"},
	{problem.ErrConcurrentUpdate, "CONCURRENT_UPDATE"}, {problem.ErrInUse, "IN_USE"}, {problem.ErrProtected, "PROTECTED"},
	{problem.ErrQuotaExceeded, "QUOTA_EXCEEDED"}, {problem.ErrRateLimited, "RATE_LIMITED"}, {problem.ErrTimeout, "TIMEOUT"},
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

// Fail adds why a document failed.
func (r *ImportReport) Fail(problems problem.Problems) {
	for _, one := range problems {
		r.Errors = append(r.Errors, one.Reported())
		r.Problems = append(r.Problems, ReportProblem{Code: reportCodeOf(one.Kind), Path: &one.Field, Message: one.Message})
	}
}

// FailedUnload returns the report on a namespace that was not deleted.
func FailedUnload(namespace string, refusal *problem.Refusal) *UnloadReport {
	return &UnloadReport{
		Namespace: namespace, Outcome: UnloadFailed, Errors: []string{refusal.Reported()},
		Problems: []ReportProblem{{Code: reportCodeOf(refusal.Kind), Message: refusal.Message}},
	}
}
