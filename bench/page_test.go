package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPagesSayWhatReportsSay writes the pages and drawings of the reports that are
// kept: whoever changes one of them, and not the others, is told.
func TestPagesSayWhatReportsSay(t *testing.T) {
	t.Parallel()
	const kept = "../docs"
	folder := writtenPages(t, kept)
	files := pagesOfReports()
	drawings, err := filepath.Glob(filepath.Join(folder, "images", "*.svg"))
	if err != nil || len(drawings) < 4 {
		t.Fatalf("%d drawings: %v", len(drawings), err)
	}
	var shown strings.Builder
	for _, page := range pagesOfReports() {
		text, err := os.ReadFile(filepath.Join(folder, page))
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(text)
	}
	for _, drawing := range drawings {
		name := filepath.Join("images", filepath.Base(drawing))
		files = append(files, name)
		if !strings.Contains(shown.String(), "("+name+")") {
			t.Errorf("no page shows %s", name)
		}
		checkXML(t, drawing)
	}
	for _, name := range files {
		want, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(kept, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/%s is not what the reports in docs/measured say (%v): run `go run ./bench page`", name, err)
		}
	}
}

// writtenPages returns a folder with the pages of another one, written from the
// reports that are kept there.
func writtenPages(t *testing.T, kept string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "images"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, page := range pagesOfReports() {
		text, err := os.ReadFile(filepath.Join(kept, page))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, page), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := runPage([]string{"-from", filepath.Join(kept, "measured"), "-to", folder}, io.Discard); err != nil {
		t.Fatal(err)
	}
	return folder
}

// checkXML checks that a drawing can be read.
func checkXML(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for decoder := xml.NewDecoder(file); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
	}
}

func TestPartsStandBetweenTheirMarks(t *testing.T) {
	t.Parallel()
	parts := map[string]string{"one": "first\n", "two": "second"}
	got, err := fill("a\n<!-- measured: one -->\nold\n<!-- measured -->\nb <!-- measured: two --><!-- measured --> c", parts)
	want := "a\n<!-- measured: one -->\n\nfirst\n\n<!-- measured -->\nb <!-- measured: two -->\n\nsecond\n\n<!-- measured --> c"
	if err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, page := range []string{"no mark", "<!-- measured: one --> without an end", "<!-- measured: three --><!-- measured -->", "<!-- measured: one --><!-- measured: two --><!-- measured -->"} {
		if got, err := fill(page, parts); err == nil {
			t.Errorf("%q: got %q, want an error", page, got)
		}
	}
}

func TestScaledFiguresFollowTheLargestSizes(t *testing.T) {
	t.Parallel()
	heap := func(f footprint) float64 { return f.Heap }
	measured := []sizedFootprint{{footprint{Heap: 1}, 1}, {footprint{Heap: 100}, 100}, {footprint{Heap: 1100}, 1100}}
	for size, want := range map[int]string{100: "100", 1100: "1100", 2100: "about 2100"} {
		if got := scale(measured, size, "%.0f", 1, heap); got != want {
			t.Errorf("at %d: got %s, want %s", size, got, want)
		}
	}
	if got := scale(measured[:1], 2, "%.0f", 1, heap); got != "-" {
		t.Errorf("of one size: got %s", got)
	}
}

// TestAxesHoldTheirNumbers draws lines and finds the points of them on the paper.
func TestAxesHoldTheirNumbers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		numbers []float64
		want    axis
	}{
		{[]float64{1000, 100_000}, axis{1e3, 1e4, 1e5}}, {[]float64{0.07, 3}, axis{0.01, 0.1, 1, 10}}, {[]float64{10}, axis{10, 100}}, {[]float64{999, 1001}, axis{100, 1e3, 1e4}},
	} {
		if got := powersFor(test.numbers); !slices.Equal(got, test.want) {
			t.Errorf("%v: got %v, want %v", test.numbers, got, test.want)
		}
	}
	if got := [][]float64{eachOf([]float64{4, 1, 2, 1}), eachOf([]float64{7})}; !slices.Equal(got[0], []float64{1, 2, 4}) || !slices.Equal(got[1], []float64{7, 70}) {
		t.Errorf("got %v", got)
	}
	a := axis{1e3, 1e5}
	if got := []float64{a.at(1000, 10, 110), a.at(10_000, 10, 110), a.at(100_000, 110, 10)}; !slices.Equal(got, []float64{10, 60, 10}) {
		t.Errorf("got %v", got)
	}
}
