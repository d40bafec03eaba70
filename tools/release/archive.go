package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"
)

// adder adds a file to an archive.
type adder func(name string, mode int64, content []byte) error

// archive writes to out an archive with the program and the documents in
// folder: zip for Windows, otherwise tar.gz. All files have the same time. It
// returns the name of the archive.
func archive(folder, out, base, system string, at time.Time) (name string, err error) {
	form, name, program := tarFile, base+".tar.gz", "cadastre"
	if system == "windows" {
		form, name, program = zipFile, base+".zip", "cadastre.exe"
	}
	file, err := os.Create(filepath.Join(out, name))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	add, finish := form(file, at)
	for _, one := range []struct {
		source, name string
		mode         int64
	}{
		{"cadastre", program, 0o755},
		{"LICENSE", "LICENSE", 0o644}, {"README.md", "README.md", 0o644}, {"CHANGELOG.md", "CHANGELOG.md", 0o644},
	} {
		content, err := os.ReadFile(filepath.Join(folder, one.source))
		if err != nil {
			return "", err
		}
		if err := add(base+"/"+one.name, one.mode, content); err != nil {
			return "", err
		}
	}
	return name, finish()
}

// tarFile returns the functions that add files to a tar.gz and finish it.
func tarFile(into io.Writer, at time.Time) (add adder, finish func() error) {
	compressed := gzip.NewWriter(into)
	archive := tar.NewWriter(compressed)
	add = func(name string, mode int64, content []byte) error {
		header := &tar.Header{Name: name, Mode: mode, Size: int64(len(content)), ModTime: at, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	}
	return add, func() error { return errors.Join(archive.Close(), compressed.Close()) }
}

// zipFile returns the functions that add files to a zip and finish it.
func zipFile(into io.Writer, at time.Time) (add adder, finish func() error) {
	archive := zip.NewWriter(into)
	add = func(name string, mode int64, content []byte) error {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at}
		header.SetMode(os.FileMode(mode))
		file, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		_, err = file.Write(content)
		return err
	}
	return add, archive.Close
}
