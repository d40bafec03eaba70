package sqldb

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/cadastre-dev/cadastre/problem"
)

// Only this file and fault.go know the error codes of the drivers.

// When clients should retry: soon if the database was unreachable, later if an
// operator must repair something.
const (
	retryAfter       = time.Second
	retryAfterMended = 10 * time.Second
)

// Refused converts an operational error of the database, such as a timeout or a
// lost connection, into a domain error with the driver's error as its cause. It
// returns all other errors unchanged, and errors that are already converted.
func Refused(err error) error {
	switch {
	case err == nil || isRefusal(err):
		return err
	case isTimeout(err):
		return problem.Refuse(problem.ErrTimeout, "the request took too long").Because(err)
	case isAborted(err):
		return problem.Refuse(problem.ErrUnavailable, "another read of the operation failed, try again").
			After(retryAfter).Because(err)
	}
	if fault := faultOf(err); fault != "" {
		return fault.refuse(err)
	}
	return err
}

// codesOf returns the code of a driver's error. At least one of the results is
// zero: the error comes from PostgreSQL, from SQLite, or from neither.
func codesOf(err error) (postgres pqerror.Code, lite int) {
	if of := new(pq.Error); errors.As(err, &of) {
		return of.Code, 0
	}
	if of := new(sqlite.Error); errors.As(err, &of) {
		return "", of.Code()
	}
	return "", 0
}

// isAborted reports whether an earlier statement of the transaction failed, or
// the transaction has ended.
func isAborted(err error) bool {
	postgres, _ := codesOf(err)
	return postgres == pqerror.InFailedSQLTransaction || errors.Is(err, sql.ErrTxDone)
}

// isTransient reports whether the database aborted the transaction in favor of
// another one, or err is ErrRetry, so that a retry can succeed.
func isTransient(err error) bool {
	postgres, lite := codesOf(err)
	return errors.Is(err, ErrRetry) || postgres == pqerror.TRSerializationFailure ||
		postgres == pqerror.TRDeadlockDetected ||
		lite&0xff == sqlite3.SQLITE_BUSY
}

// IsDuplicate reports whether err is a violation of a unique key.
func IsDuplicate(err error) bool {
	postgres, lite := codesOf(err)
	return postgres == pqerror.UniqueViolation ||
		lite == sqlite3.SQLITE_CONSTRAINT_UNIQUE || lite == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

// IsReferred reports whether err is a violation of a foreign key: the deleted
// row is still referenced, or the row refers to a missing one.
func IsReferred(err error) bool {
	postgres, lite := codesOf(err)
	return postgres == pqerror.ForeignKeyViolation || postgres == pqerror.RestrictViolation ||
		lite == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY || lite == sqlite3.SQLITE_CONSTRAINT_TRIGGER
}

// isTimeout reports whether a statement exceeded the time limit of the request
// or of the database, or was canceled.
func isTimeout(err error) bool {
	if postgres, lite := codesOf(err); postgres != "" || lite != 0 {
		return postgres == pqerror.QueryCanceled || lite&0xff == sqlite3.SQLITE_INTERRUPT
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// isUnreachable reports whether the database could not be reached, refused a
// connection or lost it.
func isUnreachable(err error) bool {
	switch postgres, _ := codesOf(err); postgres {
	case "":
	case pqerror.AdminShutdown, pqerror.CrashShutdown, pqerror.CannotConnectNow, pqerror.TooManyConnections:
		return true
	default:
		return postgres.Class() == "08" // connection exceptions
	}
	network := new(net.OpError)
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone)
}

// ErrRetry means that a row changed between reading and locking it. The
// transaction must start over.
var ErrRetry = errors.New("row changed since it was read")

// explainTLS adds advice to the error of the first connection to PostgreSQL if
// sslmode caused it.
func explainTLS(err error, mode pq.SSLMode) error {
	code, _ := codesOf(err)
	switch {
	case errors.Is(err, pq.ErrSSLNotSupported):
		return fmt.Errorf("%w: sslmode=%s requires TLS: enable it on the database server, or, if the network is trusted, add ?sslmode=disable "+
			"to the end of the database URL", err, mode)
	case isUnverified(err):
		return fmt.Errorf("%w: sslmode=%s verifies the certificate of the server: add sslrootcert=FILE with its authority to the database URL, "+
			"or use sslmode=require, which encrypts without verification", err, mode)
	case code == pqerror.InvalidAuthorizationSpecification && mode == pq.SSLModeDisable:
		return fmt.Errorf("%w: the database URL has sslmode=disable; if the server accepts only encrypted connections, use sslmode=require", err)
	}
	return err
}

// isUnverified reports whether a certificate could not be verified.
func isUnverified(err error) bool {
	var (
		inHandshake *tls.CertificateVerificationError
		unknown     x509.UnknownAuthorityError
		name        x509.HostnameError
		invalid     x509.CertificateInvalidError
	)
	return errors.As(err, &inHandshake) || errors.As(err, &unknown) || errors.As(err, &name) || errors.As(err, &invalid)
}
