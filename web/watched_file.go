package web

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// watchedFile is the content of a file, read again when the file changes. Once
// an interval, one of its readers checks the file while the other readers use
// the current content. If the file cannot be read, watchedFile logs the error
// and keeps the previous content.
type watchedFile[T any] struct {
	path     string
	interval time.Duration
	read     func(path string) (T, error)

	current atomic.Pointer[fileContent[T]]
	checked atomic.Int64 // unix nanoseconds
}

// fileContent is the content of a file at one time. It is immutable.
type fileContent[T any] struct {
	value    T
	modified time.Time
}

// watchFile returns a watched file. If the first read fails, watchFile returns
// the error; later failures are only logged.
func watchFile[T any](path string, interval time.Duration, read func(path string) (T, error)) (*watchedFile[T], error) {
	f := &watchedFile[T]{path: path, interval: interval, read: read}
	f.checked.Store(time.Now().UnixNano())
	return f, f.load()
}

// load reads the file if its modification time has changed.
func (f *watchedFile[T]) load() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	if current := f.current.Load(); current != nil && current.modified.Equal(info.ModTime()) {
		return nil
	}
	_, _, err = f.reload()
	return err
}

// reload reads the file, and returns its previous and its new content. On an
// error it changes nothing.
func (f *watchedFile[T]) reload() (before, now T, err error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return before, now, err
	}
	value, err := f.read(f.path)
	if err != nil {
		return before, now, fmt.Errorf("%s: %w", f.path, err)
	}
	if former := f.current.Swap(&fileContent[T]{value: value, modified: info.ModTime()}); former != nil {
		before = former.value
	}
	return before, value, nil
}

// content returns the last content that could be read.
func (f *watchedFile[T]) content(log *slog.Logger) T {
	now, checked := time.Now().UnixNano(), f.checked.Load()
	if now-checked >= int64(f.interval) && f.checked.CompareAndSwap(checked, now) {
		if err := f.load(); err != nil {
			log.Error("cannot read the file again; its previous content stays in use", "file", f.path, "error", err)
		}
	}
	return f.current.Load().value
}

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
