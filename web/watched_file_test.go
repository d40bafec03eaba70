package web

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAWatchedFileKeepsWhatItCouldRead changes a file, breaks it, removes it
// and restores it.
func TestAWatchedFileKeepsWhatItCouldRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	reads, modified := 0, time.Now()
	put := func(text string) {
		t.Helper()
		modified = modified.Add(time.Second)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600),
			os.Chtimes(path, modified, modified)); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path string) (string, error) {
		reads++
		text, err := os.ReadFile(path)
		if err == nil && string(text) == "broken" {
			err = errors.New("it is broken")
		}
		return string(text), err
	}
	if _, err := watchFile(path, 0, read); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a file that is not there: %v, want it named", err)
	}
	put("broken")
	if _, err := watchFile(path, 0, read); err == nil || !strings.Contains(err.Error(), path+": it is broken") {
		t.Errorf("a file that is broken: %v, want it named", err)
	}

	put("first")
	file, err := watchFile(path, 0, read)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	is := func(when, want string, wantReads, lines int) {
		t.Helper()
		reads = 0
		if got := file.content(log); got != want || reads != wantReads || strings.Count(out.String(), "\n") != lines {
			t.Errorf("%s: %q after %d reads, want %q after %d and %d lines in the log:\n%s", when, got, reads,
				want, wantReads, lines, out.String())
		}
	}
	is("unchanged", "first", 0, 0)
	put("second")
	is("changed", "second", 1, 0)
	put("broken")
	is("broken", "second", 1, 1)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	is("gone", "second", 0, 2)
	put("third")
	is("back", "third", 1, 2)

	file.interval = time.Hour
	put("fourth")
	is("within the interval", "third", 0, 2)
}
