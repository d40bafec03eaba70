package web

import (
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// watchedFile is the content of a file that is read again when the file
// changed. One of its readers looks at the file once an interval, while the
// others go on with the content that they have. A content that cannot be read
// is logged, and the former one stays.
type watchedFile[T any] struct {
	path     string
	interval time.Duration
	read     func(path string) (T, error)

	current atomic.Pointer[fileContent[T]]
	checked atomic.Int64 // unix nanoseconds
}

// fileContent is what a file held at one time. It does not change.
type fileContent[T any] struct {
	value    T
	modified time.Time
}

// watchFile returns the file that read reads. A file that cannot be read is an
// error now; later it is not.
func watchFile[T any](path string, interval time.Duration, read func(path string) (T, error)) (*watchedFile[T], error) {
	f := &watchedFile[T]{path: path, interval: interval, read: read}
	f.checked.Store(time.Now().UnixNano())
	return f, f.load()
}

// load reads the file, unless it is the one that was read last.
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

// reload reads the file, and returns what it held when it was read last and what
// it holds now. Only an error changes nothing.
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

// content returns the latest content that could be read.
func (f *watchedFile[T]) content(log *slog.Logger) T {
	now, checked := time.Now().UnixNano(), f.checked.Load()
	if now-checked >= int64(f.interval) && f.checked.CompareAndSwap(checked, now) {
		if err := f.load(); err != nil {
			log.Error("a changed file could not be read; its former content stays", "file", f.path, "error", err)
		}
	}
	return f.current.Load().value
}
