package web

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// reloadTime is how long a certificate is used before its files are looked at
// again.
const reloadTime = time.Minute

// keyPair is a certificate that follows its files, so that a renewed one needs no
// restart.
type keyPair struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	loaded  *tls.Certificate
	changed time.Time // of the certificate file, when loaded
	looked  time.Time
}

func (p *keyPair) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loaded != nil && time.Since(p.looked) < reloadTime {
		return p.loaded, nil
	}
	p.looked = time.Now()
	if err := p.load(); err != nil {
		if p.loaded == nil {
			return nil, err
		}
		p.log.Error("the certificate could not be read again; the former one stays", "error", err)
	}
	return p.loaded, nil
}

func (p *keyPair) load() error {
	info, err := os.Stat(p.certFile)
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	if p.loaded != nil && info.ModTime().Equal(p.changed) {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(p.certFile, p.keyFile)
	if err != nil {
		return fmt.Errorf("read the certificate %s with the key %s: %w", p.certFile, p.keyFile, err)
	}
	p.loaded, p.changed = &pair, info.ModTime()
	return nil
}
