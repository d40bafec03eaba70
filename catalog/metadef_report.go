package catalog

// ImportOutcome is what an import did with one document.
type ImportOutcome string

const (
	ImportCreated   ImportOutcome = "CREATED"
	ImportUnchanged ImportOutcome = "UNCHANGED"
	ImportSkipped   ImportOutcome = "SKIPPED"
	ImportFailed    ImportOutcome = "FAILED"
)

// ImportReport tells what became of one imported document. Warnings and errors
// begin with their path in the document.
type ImportReport struct {
	Namespace string
	Outcome   ImportOutcome
	Warnings  []string
	Errors    []string
}
