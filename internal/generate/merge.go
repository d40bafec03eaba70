package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
)

// mergedFile is the file with the whole schema.
const mergedFile = "schema/merged/schema.graphql"

// firstSource is the first source in the merged file: it describes the schema
// as a whole.
const firstSource = "schema/common.graphql"

// writeMerged writes the sources as one file without extensions, for clients,
// and a compressed copy, which the program embeds.
func writeMerged(sources []*ast.Source) error {
	merged, err := merge(sources)
	if err != nil {
		return err
	}
	var zipped bytes.Buffer
	to, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, written := to.Write([]byte(merged))
	return errors.Join(written, to.Close(), os.WriteFile(mergedFile, []byte(merged), 0o644),
		os.WriteFile(mergedFile+".gz", zipped.Bytes(), 0o644))
}

// workFile declares the directive for the work of fields, and workSaid matches
// its uses.
const workFile = "schema/work.graphql"

var workSaid = regexp.MustCompile(` @work\([^)]*\)`)

// published returns the sources without the directives for prices.
func published(sources []*ast.Source) []*ast.Source {
	var out []*ast.Source
	for _, source := range sources {
		if source.Name != workFile {
			out = append(out, &ast.Source{Name: source.Name, Input: workSaid.ReplaceAllString(source.Input, "")})
		}
	}
	return out
}

// merge returns one text with the definitions of all sources. It keeps their
// text, and moves the fields of each extension to the end of the extended
// definition. It fails if the result does not mean the same as the sources.
func merge(sources []*ast.Source) (string, error) {
	sources = slices.Clone(sources)
	slices.SortStableFunc(sources, func(a, b *ast.Source) int {
		return strings.Compare(sortKey(a.Name), sortKey(b.Name))
	})
	lines := []string{"# Code generated from the files beside its folder; DO NOT EDIT.", ""}
	var extensions []extension
	for i, source := range sources {
		rest, found := splitExtensions(source.Input)
		extensions = append(extensions, found...)
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, rest...)
	}
	for _, one := range extensions {
		var err error
		if lines, err = extend(lines, one); err != nil {
			return "", err
		}
	}
	merged := strings.Join(lines, "\n") + "\n"
	return merged, sameMeaning(sources, merged)
}

func sortKey(name string) string {
	if name == firstSource {
		return ""
	}
	return name
}

// extension is the text of one extension: the extended definition, for example
// `type Query`, and the lines of its fields.
type extension struct {
	of     string
	fields []string
}

// splitExtensions returns the lines of a source without its extensions, and
// the extensions.
func splitExtensions(text string) (rest []string, found []extension) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := 0; i < len(lines); i++ {
		of, ok := strings.CutPrefix(lines[i], "extend ")
		if !ok {
			rest = append(rest, lines[i])
			continue
		}
		end := i + slices.Index(lines[i:], "}")
		found = append(found, extension{strings.TrimSuffix(of, " {"), lines[i+1 : max(end, i+1)]})
		i = max(end, i)
		if i+1 < len(lines) && lines[i+1] == "" {
			i++ // the empty line after it
		}
	}
	for len(rest) > 0 && rest[len(rest)-1] == "" {
		rest = rest[:len(rest)-1]
	}
	return rest, found
}

// extend adds the fields of an extension at the end of the extended definition,
// which may have had no fields.
func extend(lines []string, by extension) ([]string, error) {
	at := slices.IndexFunc(lines, func(line string) bool {
		return line == by.of || strings.HasPrefix(line, by.of+" ")
	})
	if at < 0 {
		return nil, fmt.Errorf("extend %s: nothing of that name begins a line of %s/*.graphql", by.of, "schema")
	}
	if !strings.HasSuffix(lines[at], "{") {
		lines = slices.Insert(lines, at+1, "}")
		lines[at] += " {"
	}
	end := at + slices.Index(lines[at:], "}")
	return slices.Insert(lines, end, by.fields...), nil
}

// sameMeaning returns an error unless the merged text, with its descriptions
// and directives, equals the schema of the sources.
func sameMeaning(sources []*ast.Source, merged string) error {
	whole, err := gqlparser.LoadSchema(&ast.Source{Name: mergedFile, Input: merged})
	if err != nil {
		return err
	}
	parts, err := gqlparser.LoadSchema(sources...)
	if err != nil {
		return err
	}
	if whole.Description != parts.Description || formatted(whole) != formatted(parts) {
		return fmt.Errorf("%s differs from its sources", mergedFile)
	}
	return nil
}

// formatted returns a schema as text in a canonical order. It sorts the fields
// of the schema itself.
func formatted(schema *ast.Schema) string {
	for _, definition := range schema.Types {
		slices.SortFunc(definition.Fields, func(a, b *ast.FieldDefinition) int {
			return strings.Compare(a.Name, b.Name)
		})
	}
	var out bytes.Buffer
	formatter.NewFormatter(&out).FormatSchema(schema)
	return out.String()
}
