package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// source writes the files of an archive into a new folder.
func source(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"cadastre", "LICENSE", "README.md", "CHANGELOG.md"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("content of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestArchivesAreEqual checks that archives of equal files are equal, and have
// the program with its mode and the time of the commit.
func TestArchivesAreEqual(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	for system, want := range map[string]string{
		"linux": "c/cadastre -rwxr-xr-x", "windows": "c/cadastre.exe -rwxr-xr-x",
	} {
		first, second := t.TempDir(), t.TempDir()
		name, err := archive(source(t), first, "c", system, at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := archive(source(t), second, "c", system, at); err != nil {
			t.Fatal(err)
		}
		if err := compare([]string{name}, first, second); err != nil {
			t.Error(err)
		}
		files, err := listed(filepath.Join(first, name), at)
		if err != nil || len(files) != 4 || files[0] != want {
			t.Errorf("%s has %q, %v; want %q first", name, files, err, want)
		}
		if err := os.WriteFile(filepath.Join(second, name), []byte("other"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := compare([]string{name}, first, second); err == nil {
			t.Errorf("%s: a different file compares as equal", name)
		}
	}
}

// listed returns the names and modes of the files in an archive. A file with
// another time is an error.
func listed(path string, at time.Time) (files []string, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	add := func(name string, mode os.FileMode, modified time.Time) {
		files = append(files, fmt.Sprintf("%s %v", name, mode))
		if !modified.Equal(at) {
			err = fmt.Errorf("%s is of %v", name, modified)
		}
	}
	if strings.HasSuffix(path, ".zip") {
		archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return nil, err
		}
		for _, file := range archive.File {
			add(file.Name, file.Mode(), file.Modified)
		}
		return files, err
	}
	compressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	archive := tar.NewReader(compressed)
	for {
		header, next := archive.Next()
		if errors.Is(next, io.EOF) {
			return files, err
		}
		if next != nil {
			return nil, next
		}
		add(header.Name, header.FileInfo().Mode(), header.ModTime)
	}
}

// TestPackages checks that a bill has the packages that a console ships.
func TestPackages(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "lock.json")
	text := `{"packages": {"": {"version": "1.0.0"}, "node_modules/b": {"version": "2.0.0"},
		"node_modules/b/node_modules/@a/c": {"version": "1.0.0"}, "node_modules/d": {"version": "1.0.0", "dev": true},
		"../client": {"version": "3.0.0"}, "node_modules/client": {"link": true}}}`
	if err := os.WriteFile(lock, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	packages, err := packagesOf(lock)
	var urls []string
	for _, one := range packages {
		urls = append(urls, one.URL)
	}
	if want := []string{"pkg:npm/%40a/c@1.0.0", "pkg:npm/b@2.0.0"}; err != nil || !reflect.DeepEqual(urls, want) {
		t.Errorf("packages are %q, %v; want %q", urls, err, want)
	}
}

// TestVersions checks which versions are refused before anything is built.
func TestVersions(t *testing.T) {
	for version, isValid := range map[string]bool{
		"1.0.0": true, "1.0.0-rc.1": true, "": false, "v1.0.0": false, "1.0": false, "1.0.0 -X main.x=y": false,
	} {
		if versionForm.MatchString(version) != isValid {
			t.Errorf("the version %q is valid: %v, want %v", version, !isValid, isValid)
		}
	}
	err := release(t.Context(), options{version: "1"})
	if err == nil || !strings.Contains(err.Error(), "such as 1.0.0") {
		t.Errorf("version 1: %v", err)
	}
}
