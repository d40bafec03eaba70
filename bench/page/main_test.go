package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestDocumentsAreDrawnFromMeasurements draws the documents and compares them with
// the committed ones.
func TestDocumentsAreDrawnFromMeasurements(t *testing.T) {
	t.Parallel()
	const docs = "../../docs"
	to := t.TempDir()
	for _, folder := range []string{"images", "measured"} {
		if err := os.Mkdir(filepath.Join(to, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := draw(docs, to); err != nil {
		t.Fatal(err)
	}
	drawn := 0
	err := filepath.WalkDir(to, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		drawn++
		name, _ := filepath.Rel(to, path)
		want, err := os.ReadFile(path)
		if got, err := os.ReadFile(filepath.Join(docs, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/%s differs from docs/measured (%v): run `go -C bench run ./page`", name, err)
		}
		if filepath.Ext(path) == ".svg" {
			checkXML(t, name, want)
		}
		return err
	})
	if err != nil || drawn != 11 {
		t.Errorf("%d documents are drawn: %v", drawn, err)
	}
}

// checkXML checks that a drawing is XML.
func checkXML(t *testing.T, name string, text []byte) {
	t.Helper()
	for decoder := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
	}
}

func TestPartsStandBetweenTheirMarks(t *testing.T) {
	t.Parallel()
	parts := map[string]string{"one": "first\n", "two": "second"}
	got, err := fill("a\n<!--Measured:one-->\nold\n<!--Measured-->\nb <!--Measured:two--><!--Measured--> c", parts)
	want := "a\n<!--Measured:one-->\n\nfirst\n\n<!--Measured-->\nb <!--Measured:two-->\n\nsecond\n\n<!--Measured--> c"
	if err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, page := range []string{"no mark", "<!--Measured:one--> without an end",
		"<!--Measured:three--><!--Measured-->", "<!--Measured:one--><!--Measured:two--><!--Measured-->"} {
		if got, err := fill(page, parts); err == nil {
			t.Errorf("%q: got %q, want an error", page, got)
		}
	}
}

// TestAxesHoldTheirNumbers finds the numbers of axes, and points between them.
func TestAxesHoldTheirNumbers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		points []point
		x, y   axis
	}{
		{[]point{{1000, 1000}, {10, 100_000}}, axis{10, 1000}, axis{1e3, 1e4, 1e5}},
		{[]point{{7, 0.07}, {7, 3}}, axis{7, 70}, axis{0.01, 0.1, 1, 10}},
		{[]point{{4, 999}, {1, 1001}, {2, 1000}}, axis{1, 2, 4}, axis{100, 1e3, 1e4}},
	} {
		if x, y := axes([]line{{Points: test.points}}); !slices.Equal(x, test.x) || !slices.Equal(y, test.y) {
			t.Errorf("%v: got %v and %v", test.points, x, y)
		}
	}
	a := axis{1e3, 1e5}
	if got := []float64{a.at(1000, 10, 110), a.at(10_000, 10, 110),
		a.at(100_000, 110, 10)}; !slices.Equal(got, []float64{10, 60, 10}) {
		t.Errorf("got %v", got)
	}
}
