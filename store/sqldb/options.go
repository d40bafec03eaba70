package sqldb

import (
	"context"
	"log/slog"
	"time"
)

// Options say which database to open and how.
type Options struct {
	// URL is sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/NAME.
	URL string
	// Unprepared sends every statement to PostgreSQL as it is, for poolers that
	// give each transaction another connection.
	Unprepared bool
	// Now is the clock; nil is the real one.
	Now func() time.Time
	// RequestID returns the id of the request in a context, for the log; nil
	// returns none.
	RequestID func(context.Context) string
	// Log receives what an operator should know; nil is slog.Default().
	Log *slog.Logger
}
