package web

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"
)

// certificateInterval is the time between checks of the certificate file.
const certificateInterval = time.Minute

// Certificate is a certificate chain with its key. It reads both again when the
// file of the chain changes, so a renewed certificate needs no restart.
type Certificate struct {
	pair *watchedFile[*tls.Certificate]
}

// ReadCertificate returns the certificate of two files in PEM.
func ReadCertificate(certFile, keyFile string) (*Certificate, error) {
	pair, err := watchFile(certFile, certificateInterval, func(string) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		return &pair, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	return &Certificate{pair}, nil
}

// Reload reads the files again, even if they did not change, and describes the
// changes in words; empty means no change. If they cannot be read, the previous
// certificate stays in use.
func (c *Certificate) Reload() (changed string, err error) {
	before, now, err := c.pair.reload()
	if err != nil || bytes.Equal(before.Leaf.Raw, now.Leaf.Raw) {
		return "", err
	}
	return fmt.Sprintf("certificate: number %x, valid until %s, in place of number %x, valid until %s",
		now.Leaf.SerialNumber,
		now.Leaf.NotAfter.UTC().Format(time.RFC3339), before.Leaf.SerialNumber,
		before.Leaf.NotAfter.UTC().Format(time.RFC3339)), nil
}

// config returns the settings of a server with this certificate.
func (c *Certificate) config(log *slog.Logger) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.pair.content(log), nil
		}}
}
