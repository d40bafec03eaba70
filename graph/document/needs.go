package document

// Needs is the resource besides memory that an operation needs while it runs.
type Needs int

const (
	// NeedsNothing is for operations that memory answers.
	NeedsNothing Needs = iota
	// NeedsTransaction is for mutations that join a shared transaction, and
	// whose payloads memory answers.
	NeedsTransaction
	// NeedsDatabase is for operations that may run statements.
	NeedsDatabase
	// NeedsLong is for operations that may take long, in memory or in the
	// database. Few of them run at the same time.
	NeedsLong
)

// heavyCost is the cost above which an operation has NeedsLong: about 30 ms of
// a core.
const heavyCost = 300_000

func needsOf(o *Operation) Needs {
	switch {
	case o.Price.Heavy || o.Price.Cost > heavyCost:
		return NeedsLong
	case o.Price.Statements > 0 || o.Price.joined < o.Price.Mutations:
		return NeedsDatabase
	case o.Price.joined > 0:
		return NeedsTransaction
	}
	return NeedsNothing
}
