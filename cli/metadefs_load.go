package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
)

// The bounds of one request, well below the limits and the operation time of a
// server.
const (
	maxBatch      = 256 << 10 // bytes of text
	maxBatchFiles = 50
)

// definitionFile is a file and its text, or the error of reading it.
type definitionFile struct {
	path, text string
	err        error
}

// loadDefinitions loads the files in order and reports on each. A file that
// fails does not stop the others, but makes the command fail.
func loadDefinitions(c *call) error {
	files, err := c.definitionFiles()
	if err != nil {
		return err
	}
	deletes := c.is("include-protected") || slices.Contains([]string{"overwrite", "prefer-new"}, c.text("mode"))
	if !c.is("dry-run") && deletes {
		err := c.confirm("yes", "Delete content that is not in the files from their namespaces on %s?",
			c.server.address)
		if err != nil {
			return err
		}
	}
	l := &load{call: c, tally: map[string]int{}, broken: map[any]bool{}, done: c.progress("loading", len(files))}
	defer l.done.end()
	files = l.readable(files)
	total := len(files) + len(l.failed)
	for len(files) > 0 {
		n := batch(files)
		send := l.send
		if len(files[0].text) > maxBatch {
			send = l.sendFile
		}
		if err := send(files[:n]); err != nil {
			return err
		}
		files = files[n:]
	}
	l.done.end()
	err = l.summarize(total)
	if len(l.failed) > 0 {
		return fmt.Errorf("%d of %s failed: %s", len(l.failed), counted(total, "file"), strings.Join(l.failed, ", "))
	}
	return err
}

// readable drops files that cannot be read, and files of a namespace that an
// earlier file defines.
func (l *load) readable(files []definitionFile) []definitionFile {
	defining := map[string]string{} // the file of each namespace; a server cannot compare files of several requests
	return slices.DeleteFunc(files, func(file definitionFile) bool {
		if file.err != nil {
			l.fail(file, "", file.err.Error())
			return true
		}
		document, _, problems := metadef.ParseDocument(file.text)
		if len(problems) > 0 { // the server reports them
			return false
		}
		first, ok := defining[document.Name]
		if ok {
			l.fail(file, "", fmt.Sprintf("$.namespace: is also defined by %s", first))
			return true
		}
		defining[document.Name] = file.path
		return false
	})
}

// summarize shows the outcomes of the files.
func (l *load) summarize(total int) error {
	what := ""
	if l.is("dry-run") {
		what = " (dry run, nothing was changed)"
		if len(l.broken) > 0 {
			what = fmt.Sprintf("; metadata of %s would break definitions", counted(len(l.broken), "resource")) + what
		}
	}
	if !l.out.isTable() {
		return l.list("file namespace outcome warnings errors +differences", l.rows)
	}
	return l.printf("%s: %d created, %d updated, %d unchanged, %d skipped, %d failed%s\n", counted(total, "namespace"),
		l.tally["CREATED"], l.tally["UPDATED"], l.tally["UNCHANGED"], l.tally["SKIPPED"], len(l.failed), what)
}

// definitionFiles returns the files that the command names.
func (c *call) definitionFiles() (files []definitionFile, err error) {
	paths, names := c.given["path"], c.given["name"]
	switch {
	case c.is("include-protected") && c.text("mode") != "overwrite" && c.text("mode") != "prefer-new":
		return nil, usagef("--include-protected needs --mode overwrite or --mode prefer-new")
	case c.is("builtin"):
		names = slices.Concat(names, paths)
		for _, text := range defaults.Definitions() {
			document, _, _ := metadef.ParseDocument(text) // builtin definitions are valid
			files = append(files, definitionFile{path: document.Name, text: text})
		}
		return only(files, names)
	case len(paths) == 0:
		return nil, usagef("nothing to load: name definition files, folders with *.json files, or --builtin")
	}
	for _, path := range paths {
		more, err := filesAt(path)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return only(files, names)
}

// only returns the files of the namespaces with these names, or all files
// without names. A name without a file is an error.
func only(files []definitionFile, names []string) ([]definitionFile, error) {
	if len(names) == 0 {
		return files, nil
	}
	found := map[string]bool{}
	files = slices.DeleteFunc(files, func(file definitionFile) bool {
		document, _, _ := metadef.ParseDocument(file.text)
		if document == nil || !slices.Contains(names, document.Name) {
			return true
		}
		found[document.Name] = true
		return false
	})
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return found[name] })
	if len(missing) > 0 {
		return nil, fmt.Errorf("no file defines the namespace %s", quoted(missing))
	}
	return files, nil
}

// filesAt returns a file, or the *.json files of a folder by name.
func filesAt(path string) ([]definitionFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []definitionFile{readDefinition(path)}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []definitionFile
	for _, entry := range entries {
		if !entry.IsDir() && strings.HasSuffix(entry.Name(), ".json") {
			files = append(files, readDefinition(filepath.Join(path, entry.Name())))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no *.json file in %s", path)
	}
	return files, nil
}

// readDefinition returns a file without the white space between its tokens,
// which can be most of the file.
func readDefinition(path string) definitionFile {
	text, err := os.ReadFile(path)
	if err == nil && !utf8.Valid(text) {
		err = errors.New("$: is not text in UTF-8")
	}
	var compact bytes.Buffer
	if json.Compact(&compact, text) == nil { // the server reports invalid JSON
		text = compact.Bytes()
	}
	if err == nil && len(text) > metadef.MaxDocument {
		err = fmt.Errorf("$: has %d bytes without the white space between its tokens, more than the %d that a file "+
			"may have", len(text), metadef.MaxDocument)
	}
	return definitionFile{path: path, text: string(text), err: err}
}

// batch returns the number of files in the next request: at least one.
func batch(files []definitionFile) int {
	size, n := 0, 0
	for n < min(len(files), maxBatchFiles) && (n == 0 || size+len(files[n].text) <= maxBatch) {
		size += len(files[n].text)
		n++
	}
	return n
}

// load is one run of loadDefinitions.
type load struct {
	*call
	done   *progress
	tally  map[string]int // files by outcome
	failed []string
	rows   []any
	broken map[any]bool // resources whose metadata would break definitions, by uuid
}

func (l *load) fail(file definitionFile, namespace any, problems ...any) {
	for _, problem := range problems {
		l.done.notef("%s: %v\n", file.path, problem)
	}
	l.failed = append(l.failed, file.path)
	row := map[string]any{"file": file.path, "namespace": namespace, "outcome": "FAILED", "errors": problems}
	l.rows = append(l.rows, row)
}

// send loads the files of one request. If the server refuses a single file,
// only that file fails; other errors end the command.
func (l *load) send(files []definitionFile) error {
	input := l.input()
	input["documents"] = lists.Map(files, func(file definitionFile) string { return file.text })
	return l.request(files, input)
}

// input returns a request without files.
func (l *load) input() map[string]any {
	input := map[string]any{"mode": constant(l.text("mode")), "dryRun": l.is("dry-run"),
		"includeProtected": l.is("include-protected")}
	if l.is("builtin") {
		input["origin"] = metadef.OwnOrigin
		input["includeUnloaded"] = len(l.given["name"])+len(l.given["path"]) > 0
	}
	return input
}

// sendFile loads a file that is too large for a request.
func (l *load) sendFile(files []definitionFile) error {
	ctx := l.ctx
	l.ctx = client.WithFiles(ctx, files[0].text)
	defer func() { l.ctx = ctx }()
	return l.request(files[:1], l.input())
}

// unlessRefused marks a file as failed if the server refused it, and returns
// any other error.
func (l *load) unlessRefused(file definitionFile, err error) error {
	if !isAboutInput(err) {
		return err
	}
	l.fail(file, "", lists.Map(l.refusalsOf(err), func(line string) any { return line })...)
	return nil
}

// request loads the files of an input, reports on each, and notes the metadata
// that a dry run would break, page by page.
func (l *load) request(files []definitionFile, input map[string]any) error {
	variables := map[string]any{"input": input}
	if l.is("dry-run") {
		variables["problems"] = map[string]any{"first": maxScan, "scan": maxScan}
	}
	for isFirst := true; ; isFirst = false {
		reports, answer, err := l.ask(operationNamed("ImportNamespaces"), variables, 0)
		if err != nil && isFirst && len(files) == 1 {
			return l.unlessRefused(files[0], err)
		}
		if err != nil {
			return err
		}
		if isFirst {
			for i, report := range listOf(reports, "") {
				l.report(files[i], report)
			}
			l.done.add(len(files))
		}
		page := memberOf(answer, "problems")
		for _, item := range brokenItems(page) {
			l.done.notef("%s", wouldBreak(item))
			l.broken[memberOf(item, "resource")] = true
		}
		if page == nil || memberOf(page, "complete") == true {
			return nil
		}
		assign(variables, "problems.after", memberOf(page, "scannedTo"))
	}
}

func (l *load) report(file definitionFile, report any) {
	for _, warning := range listOf(report, "warnings") {
		l.done.notef("%s: warning: %s\n", file.path, warning)
	}
	name, outcome := memberOf(report, "namespace"), wordOf(report, "outcome")
	if outcome == "FAILED" {
		l.fail(file, name, listOf(report, "errors")...)
		return
	}
	row := report.(map[string]any)
	row["file"] = file.path
	l.rows = append(l.rows, row)
	if outcome == "UNLOADED" {
		l.tally["SKIPPED"]++
		l.done.notef("%s: skipped: it was unloaded or deleted here; --name %q loads it again\n", file.path, name)
		return
	}
	l.tally[outcome]++
	if l.is("dry-run") || l.is("verbose") || outcome != "CREATED" && outcome != "UNCHANGED" {
		l.done.notef("%s: %s %s\n", file.path, strings.ToLower(outcome), name)
		for _, difference := range listOf(report, "differences") {
			l.done.notef("    %s\n", difference)
		}
	}
}
