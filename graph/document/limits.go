package document

// Limits bound the cost of documents and variables. Zero means no limit, except
// in DocumentBytes. The comments state the defaults, which DefaultLimits
// returns.
type Limits struct {
	// Tokens bounds the tokens of a document: 3,000. A trusted document may
	// have ten times as many.
	Tokens int
	// Depth bounds the levels of fields: 15.
	Depth int
	// Aliases bounds the aliases in a document: 500.
	Aliases int
	// RootFields bounds the root fields of an operation, aliased or not: 60.
	RootFields int
	// Repeats bounds the fields with the same response name in a document: 600.
	// Validation compares these fields pair by pair.
	Repeats int
	// Directives bounds the directives at one location of a document: 5.
	Directives int
	// ListMembers bounds each list in the variables: 5,000.
	ListMembers int
	// Strings makes the reader refuse a document with a string that no database
	// stores: true. Otherwise the field that stores the string refuses it.
	Strings bool
	// Places bounds the fields of an operation after its fragments are
	// expanded: 10,000.
	Places int
	// Cost bounds the estimated work of an operation, in fields of an answer:
	// 2,000,000.
	Cost int64
	// DocumentBytes bounds the approximate memory of cached documents: 64 MiB. Zero
	// disables the cache.
	DocumentBytes int64
}

// DefaultLimits returns the limits of a server without options.
func DefaultLimits() Limits {
	return Limits{
		Tokens: 3000, Depth: 15, Aliases: 500, RootFields: 60, Repeats: 600, Directives: 5, ListMembers: 5000,
		Strings: true, Places: 10_000, Cost: 2_000_000, DocumentBytes: 64 << 20,
	}
}
