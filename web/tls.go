package web

import (
	"crypto/tls"
	"time"
)

// certificateInterval is how long a certificate is used before its file is
// looked at again.
const certificateInterval = time.Minute

// watchCertificate returns the certificate of a chain and its key, read again
// when the file of the chain changed, so that a renewed one needs no restart.
func watchCertificate(certFile, keyFile string) (*watchedFile[*tls.Certificate], error) {
	return watchFile(certFile, certificateInterval, func(string) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		return &pair, err
	})
}
