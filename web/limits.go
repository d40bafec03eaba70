package web

import (
	"time"

	"github.com/cadastre-dev/cadastre/graph/document"
)

// Limits bound what requests can cost. In each field zero means no limit;
// DefaultLimits returns the defaults that the comments state. docs/limits.md
// explains them to operators.
type Limits struct {
	// BodyBytes bounds the body of a request: 1 MiB. More is 413.
	BodyBytes int64
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
	// Places bounds the fields of an operation where its fragments are spread:
	// 10,000.
	Places int
	// Cost bounds the estimated work of an operation, in fields of an answer:
	// 2,000,000.
	Cost int64
	// AnswerBytes bounds the data of an answer: 16 MiB. The root field that goes
	// beyond it is null, and so are the ones after it.
	AnswerBytes int
	// ClientBytes is how many bytes a second a client takes of a long answer, after
	// five seconds: 64 KiB. Whoever takes less is cut.
	ClientBytes int
	// OperationTime bounds the time that an operation runs, statements included:
	// 10 s. Fields that are not resolved by then are errors of the code TIMEOUT.
	OperationTime time.Duration
	// Concurrent bounds the operations in progress: 256, a quarter of them of one
	// viewer and half of them of one project. Others wait for a second, then the
	// answer is 429 for those who have their share and 503 for all others.
	Concurrent int
	// PrincipalPoints is how many points a second a viewer (a user in a project)
	// may spend: 1,000, with a burst of four seconds of them. An operation costs
	// one point and one more for each 1,000 of its cost. More is 429.
	PrincipalPoints float64
	// ServicePoints and AdminPoints are the same of a viewer with the role of a
	// service, 10,000, and of an administrator, 5,000.
	ServicePoints float64
	AdminPoints   float64
	// AddressPoints is how many points a second the requests of one address may
	// spend before their tokens are checked: 5,000, with a burst of four seconds
	// of them. A request costs one point, and 50 more when its token is refused.
	AddressPoints float64
	// Sockets bounds the WebSockets and the event streams that are open at once:
	// 2,000, of which ViewerSockets of one viewer, 200. More are refused.
	Sockets, ViewerSockets int
	// SocketOperations bounds the operations of one WebSocket that are under way at
	// once: 100.
	SocketOperations int
	// Subscriptions bounds the subscriptions that are open at once: 10,000, of which
	// ViewerSubscriptions of one viewer, 1,000. More are refused.
	Subscriptions, ViewerSubscriptions int
	// DocumentBytes bounds the memory for parsed documents, roughly: 64 MiB.
	DocumentBytes int64
	// PersistedBytes bounds the memory for automatically persisted documents:
	// 16 MiB. Zero keeps none.
	PersistedBytes int64
}

// ofDocuments returns the limits of documents and their variables.
func (l Limits) ofDocuments() document.Limits {
	return document.Limits{
		Tokens: l.Tokens, Depth: l.Depth, Aliases: l.Aliases, RootFields: l.RootFields, Repeats: l.Repeats,
		Directives: l.Directives, ListMembers: l.ListMembers, Strings: true, Places: l.Places, Cost: l.Cost, KeptBytes: l.DocumentBytes,
	}
}

// DefaultLimits returns the limits of a server without options.
func DefaultLimits() Limits {
	documents := document.DefaultLimits()
	return Limits{
		BodyBytes:       1 << 20,
		Tokens:          documents.Tokens,
		Depth:           documents.Depth,
		Aliases:         documents.Aliases,
		RootFields:      documents.RootFields,
		Repeats:         documents.Repeats,
		Directives:      documents.Directives,
		ListMembers:     documents.ListMembers,
		Places:          documents.Places,
		Cost:            documents.Cost,
		AnswerBytes:     16 << 20,
		ClientBytes:     64 << 10,
		OperationTime:   10 * time.Second,
		Concurrent:      256,
		PrincipalPoints: 1000,
		ServicePoints:   10_000,
		AdminPoints:     5000,
		AddressPoints:   5000,
		Sockets:         2000, ViewerSockets: 200, SocketOperations: 100, Subscriptions: 10_000, ViewerSubscriptions: 1000,
		DocumentBytes:  documents.KeptBytes,
		PersistedBytes: 16 << 20,
	}
}

// ofFiles returns the limits of imports and exports: a price that follows the
// bytes of files bounds none of them.
func (l Limits) ofFiles() document.Limits {
	limits := l.ofDocuments()
	limits.Cost, limits.KeptBytes = 0, 1<<20
	return limits
}
