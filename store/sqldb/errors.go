package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/cadastre-dev/cadastre/problem"
)

// What the drivers' errors mean is known here and nowhere else, by their codes.

// When to try again what could not reach the database, and what somebody has to
// mend.
const (
	retryAfter       = time.Second
	retryAfterMended = 10 * time.Second
)

// Refused turns what a database refuses for its own reasons into a domain error
// that keeps the driver's as its cause: a statement that took too long, a
// database that cannot be reached. Every other error stays as it is, and so does
// one that was turned before.
func Refused(err error) error {
	switch {
	case err == nil || isRefusal(err):
		return err
	case isTimeout(err):
		return problem.Refuse(problem.ErrTimeout, "the request took too long").Because(err)
	case isAborted(err):
		return problem.Refuse(problem.ErrUnavailable, "another read of the operation failed, try again").After(retryAfter).Because(err)
	}
	if fault := faultOf(err); fault != "" {
		return fault.Refuse(err)
	}
	return err
}

// codesOf returns the code of a driver's error: one of PostgreSQL or one of
// SQLite, and the zero value of the other.
func codesOf(err error) (postgres pqerror.Code, lite int) {
	if of := new(pq.Error); errors.As(err, &of) {
		return of.Code, 0
	}
	if of := new(sqlite.Error); errors.As(err, &of) {
		return "", of.Code()
	}
	return "", 0
}

// isAborted reports whether a statement of the same transaction failed before.
func isAborted(err error) bool {
	postgres, _ := codesOf(err)
	return postgres == pqerror.InFailedSQLTransaction || errors.Is(err, sql.ErrTxDone)
}

// isTransient reports whether the database gave up a transaction for the sake
// of another, so that it can simply be tried again.
func isTransient(err error) bool {
	postgres, lite := codesOf(err)
	return errors.Is(err, ErrRetry) || postgres == pqerror.TRSerializationFailure || postgres == pqerror.TRDeadlockDetected ||
		lite&0xff == sqlite3.SQLITE_BUSY
}

// IsDuplicate reports whether a unique key refused a row.
func IsDuplicate(err error) bool {
	postgres, lite := codesOf(err)
	return postgres == pqerror.UniqueViolation ||
		lite == sqlite3.SQLITE_CONSTRAINT_UNIQUE || lite == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

// IsReferred reports whether a foreign key refused: a row that others refer to
// was to go, or a row was to refer to one that is not there.
func IsReferred(err error) bool {
	postgres, lite := codesOf(err)
	return postgres == pqerror.ForeignKeyViolation || postgres == pqerror.RestrictViolation ||
		lite == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY || lite == sqlite3.SQLITE_CONSTRAINT_TRIGGER
}

// isTimeout reports whether a statement ran into a time limit: the request's or
// the database's.
func isTimeout(err error) bool {
	if postgres, lite := codesOf(err); postgres != "" || lite != 0 {
		return postgres == pqerror.QueryCanceled || lite&0xff == sqlite3.SQLITE_INTERRUPT
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// isUnreachable reports whether there was no database to answer.
func isUnreachable(err error) bool {
	switch postgres, _ := codesOf(err); postgres {
	case "":
	case pqerror.AdminShutdown, pqerror.CrashShutdown, pqerror.CannotConnectNow, pqerror.TooManyConnections:
		return true
	default:
		return postgres.Class() == "08" // connection exceptions
	}
	network := new(net.OpError)
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone)
}

// ErrRetry says that a row changed since it was read and could not be locked, so
// that the transaction must start anew.
var ErrRetry = errors.New("row changed since it was read")
