package document

// Limits bound what documents and variables can cost. In each field zero means
// no limit; DefaultLimits returns the defaults that the comments state.
type Limits struct {
	// Tokens bounds the tokens of a document: 3,000; a trusted one may have ten
	// times as many.
	Tokens int
	// Depth bounds the levels of fields: 15.
	Depth int
	// Aliases bounds the aliases in a document: 500.
	Aliases int
	// RootFields bounds the fields of the first level, aliased or not: 60.
	RootFields int
	// Repeats bounds how often one response name stands in a document: 600.
	// Validation compares those fields pair by pair.
	Repeats int
	// Directives bounds the directives at one place of a document: 5.
	Directives int
	// ListMembers bounds each list in the variables: 5,000.
	ListMembers int
	// Strings is whether strings in a document that no database stores are refused
	// with it, and not by the field that stores them: true.
	Strings bool
	// Places bounds the fields of an operation where its fragments are spread:
	// 10,000.
	Places int
	// Cost bounds the estimated work of an operation, in fields of an answer:
	// 2,000,000.
	Cost int64
	// KeptBytes bounds the memory for valid documents, roughly: 64 MiB. Zero keeps
	// none.
	KeptBytes int64
}

// DefaultLimits returns the limits of a server without options.
func DefaultLimits() Limits {
	return Limits{
		Tokens: 3000, Depth: 15, Aliases: 500, RootFields: 60, Repeats: 600, Directives: 5, ListMembers: 5000,
		Strings: true, Places: 10_000, Cost: 2_000_000, KeptBytes: 64 << 20,
	}
}
