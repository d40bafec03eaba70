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
