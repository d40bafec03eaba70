package sqldb

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// explainTLS adds advice to the error of the first connection to PostgreSQL if
// sslmode caused it.
func explainTLS(err error, mode pq.SSLMode) error {
	code, _ := codesOf(err)
	switch {
	case errors.Is(err, pq.ErrSSLNotSupported):
		return fmt.Errorf("%w: sslmode=%s needs TLS, as the default does; turn it on there, or add sslmode=disable "+
			"to the database URL, as ?sslmode=disable at its end, if the network between the two is trusted", err, mode)
	case isUnverified(err):
		return fmt.Errorf("%w: sslmode=%s checks the certificate of the server; name that of its authority as sslrootcert=FILE in the database URL, "+
			"or write sslmode=require, which encrypts without checking whom it talks to", err, mode)
	case code == pqerror.InvalidAuthorizationSpecification && mode == pq.SSLModeDisable:
		return fmt.Errorf("%w: the database URL has sslmode=disable; if the server accepts encrypted connections only, write sslmode=require", err)
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
