package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/Khan/genqlient/graphql"
	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/metadef"
)

type loadCommand struct {
	common
	deletion
	Mode             string   `enum:"skip,merge,prefer-new,overwrite" default:"skip" help:"What to do with namespaces that exist: ${enum}. With --builtin, skip upgrades them and keeps local edits. Overwrite deletes what the files lack, and prefer-new what their objects lack; both ask before."`
	DryRun           bool     `help:"Report what would be done, and which metadata would break definitions, and do nothing."`
	IncludeProtected bool     `help:"Delete from protected namespaces, too; only with --mode overwrite and prefer-new."`
	Builtin          bool     `help:"Load the definitions that come with the program, instead of files: those that were unloaded here only by name."`
	Names            []string `name:"name" sep:"none" help:"Only the namespace of this name; can be given several times."`
	Verbose          bool     `short:"v" help:"Say of every file what became of it, of unchanged ones, too."`
	Paths            []string `arg:"" optional:"" name:"path" help:"Definition files, and folders whose *.json files are loaded; with --builtin, names of namespaces."`
}

// The bounds of one request, well below what a server accepts and finishes in
// its time.
const (
	maxBatch      = 256 << 10 // bytes of text
	maxBatchFiles = 50
)

// definitionFile is a file and its text, or why it cannot be read.
type definitionFile struct {
	path, text string
	err        error
}

// Run loads the files in their order and reports on each. A file that fails
// does not stop the others, and makes the command fail.
func (c *loadCommand) Run(run *session) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	if !c.DryRun && (c.Mode == "overwrite" || c.Mode == "prefer-new" || c.IncludeProtected) {
		if err := c.confirm(run, "yes", "Delete what the files lack from the namespaces of %s that they define?", run.server.address); err != nil {
			return err
		}
	}
	l := &load{command: c, run: run, to: run.api, tally: map[client.ImportOutcome]int{}, broken: map[string]bool{}, done: run.progress("loading", len(files))}
	defer l.done.end()
	files = l.readable(files)
	total := len(files) + len(l.failed)
	for len(files) > 0 {
		n := batch(files)
		send := l.send
		if len(files[0].text) > maxBatch {
			send = l.sendParts
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

// readable returns the files without those that cannot be read, and those of a
// namespace that another defines, too.
func (l *load) readable(files []definitionFile) []definitionFile {
	defining := map[string]string{} // the file of each namespace; a request does not see those of another
	return slices.DeleteFunc(files, func(file definitionFile) bool {
		if file.err != nil {
			l.fail(file, file.err.Error())
			return true
		}
		document, _, problems := metadef.ParseFile(file.text)
		if len(problems) > 0 { // the server reports them
			return false
		}
		first, ok := defining[document.Name]
		if ok {
			l.fail(file, fmt.Sprintf("$.namespace: is defined by %s as well", first))
			return true
		}
		defining[document.Name] = file.path
		return false
	})
}

// summarize shows what became of the files.
func (l *load) summarize(total int) error {
	what := ""
	if l.command.DryRun {
		what = " (dry run, nothing was done)"
		if len(l.broken) > 0 {
			what = fmt.Sprintf("; metadata of %s would break definitions", counted(len(l.broken), "resource")) + what
		}
	}
	if !l.run.out.isTable() {
		return list(l.run, columnsOf("file namespace outcome warnings errors +differences"), l.rows)
	}
	return l.run.printf("%s: %d created, %d updated, %d unchanged, %d skipped, %d failed%s\n", counted(total, "namespace"),
		l.tally[client.ImportOutcomeCreated], l.tally[client.ImportOutcomeUpdated], l.tally[client.ImportOutcomeUnchanged],
		l.tally[client.ImportOutcomeSkipped], len(l.failed), what)
}

// files returns those that the command names.
func (c *loadCommand) files() ([]definitionFile, error) {
	switch {
	case c.IncludeProtected && c.Mode != "overwrite" && c.Mode != "prefer-new":
		return nil, usagef("--include-protected needs --mode overwrite or --mode prefer-new")
	case !c.Builtin && len(c.Paths) == 0:
		return nil, usagef("nothing to load: name definition files, folders with *.json files, or --builtin")
	}
	var files []definitionFile
	names := c.Names
	if c.Builtin {
		names = append(slices.Clone(names), c.Paths...)
		for _, text := range defaults.Definitions() {
			document, _, _ := metadef.ParseDocument(text) // the product's own are valid
			files = append(files, definitionFile{path: document.Name, text: text})
		}
	} else {
		for _, path := range c.Paths {
			more, err := definitionFiles(path)
			if err != nil {
				return nil, err
			}
			files = append(files, more...)
		}
	}
	return only(files, names)
}

// only returns the files of the namespaces with these names, all of them where
// none are given. A name that no file has is an error.
func only(files []definitionFile, names []string) ([]definitionFile, error) {
	if len(names) == 0 {
		return files, nil
	}
	found := map[string]bool{}
	files = slices.DeleteFunc(files, func(file definitionFile) bool {
		document, _, _ := metadef.ParseFile(file.text)
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

// definitionFiles returns a file, or the *.json files of a folder by name.
func definitionFiles(path string) ([]definitionFile, error) {
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
// which means nothing and can be most of the file.
func readDefinition(path string) definitionFile {
	text, err := os.ReadFile(path)
	if err == nil && !utf8.Valid(text) {
		err = errors.New("$: is not text in UTF-8")
	}
	var compact bytes.Buffer
	if json.Compact(&compact, text) == nil { // the server reports what is not JSON
		text = compact.Bytes()
	}
	if err == nil && len(text) > metadef.MaxNamespace {
		err = fmt.Errorf("$: has %d bytes without the white space between its tokens, more than the %d that a file may have", len(text), metadef.MaxNamespace)
	}
	return definitionFile{path: path, text: string(text), err: err}
}

// batch returns how many of the files go into the next request: one at least.
func batch(files []definitionFile) int {
	size, n := 0, 0
	for n < min(len(files), maxBatchFiles) && (n == 0 || size+len(files[n].text) <= maxBatch) {
		size += len(files[n].text)
		n++
	}
	return n
}

// load is one run of loadCommand.
type load struct {
	command *loadCommand
	run     *session
	to      graphql.Client
	done    *progress
	tally   map[client.ImportOutcome]int
	failed  []string
	rows    []loadedFile
	broken  map[string]bool // resources whose metadata would break definitions, by uuid
}

func (l *load) fail(file definitionFile, problems ...string) {
	for _, problem := range problems {
		l.done.notef("%s: %s\n", file.path, problem)
	}
	l.failed = append(l.failed, file.path)
	l.rows = append(l.rows, loadedFile{File: file.path, Outcome: string(client.ImportOutcomeFailed), Errors: problems})
}

// send loads the files of one request. A file that the server refuses to read
// fails alone; a server that cannot be reached ends the command.
func (l *load) send(files []definitionFile) error {
	input := l.input()
	texts := []string{}
	for _, file := range files {
		texts = append(texts, file.text)
	}
	input.Documents = optional.Value(texts)
	return l.request(files, input)
}

// input returns a request without files.
func (l *load) input() *client.ImportNamespacesInput {
	input := &client.ImportNamespacesInput{
		Mode: optional.Value(client.ImportMode(strings.ToUpper(strings.ReplaceAll(l.command.Mode, "-", "_")))), DryRun: optional.Value(l.command.DryRun), IncludeProtected: optional.Value(l.command.IncludeProtected),
	}
	if l.command.Builtin {
		input.Origin = optional.Value(metadef.OwnOrigin)
		input.IncludeUnloaded = optional.Value(len(l.command.Names)+len(l.command.Paths) > 0)
	}
	return input
}

// sendParts loads a file that is larger than a request: its parts are staged, and
// imported together.
func (l *load) sendParts(files []definitionFile) error {
	file := files[0]
	parts, problems := metadef.SplitDocument(file.text, maxBatch)
	if len(problems) > 0 {
		for _, problem := range problems {
			l.fail(file, problem.Field+": "+problem.Message)
		}
		return nil
	}
	upload := uuid.NewSHA1(uuid.Nil, []byte(file.text)).String() // a dry run leaves the parts to what follows
	for i, part := range parts {
		_, err := client.StageNamespacePart(l.run.ctx, l.to, &client.StageNamespacePartInput{Upload: upload, Part: i, Text: part})
		if err != nil && isAboutInput(err) {
			l.fail(file, l.run.refusalsOf(err)...)
			return nil
		}
		if err != nil {
			return err
		}
	}
	input := l.input()
	input.Uploads = optional.Value([]*client.StagedFileInput{{Upload: upload, Parts: len(parts)}})
	return l.request(files, input)
}

// request loads the files of an input and reports on each.
func (l *load) request(files []definitionFile, input *client.ImportNamespacesInput) error {
	answer, err := client.ImportNamespaces(l.run.ctx, l.to, input, l.scan(nil))
	if err != nil && len(files) == 1 && isAboutInput(err) {
		l.fail(files[0], l.run.refusalsOf(err)...)
		return nil
	}
	if err != nil {
		return err
	}
	for i, report := range answer.ImportNamespaces.Reports {
		l.report(files[i], report)
	}
	if err := l.noteProblems(input, answer.ImportNamespaces.Problems); err != nil {
		return err
	}
	l.done.add(len(files))
	return nil
}

// scan returns which problems a dry run asks for; nil for an import.
func (l *load) scan(after *string) *client.MetadataProblemScan {
	if !l.command.DryRun {
		return nil
	}
	return &client.MetadataProblemScan{First: optional.Value(1000), Scan: optional.Value(1000), After: optional.From(after)}
}

// noteProblems notes what a dry run would break, page by page.
func (l *load) noteProblems(input *client.ImportNamespacesInput, page *client.BrokenMetadata) error {
	for page != nil {
		for _, item := range brokenItems(page.Nodes) {
			l.done.notef("%s", item.wouldBreak())
		}
		for _, node := range page.Nodes {
			l.broken[node.Resource.Uuid] = true
		}
		if page.Complete {
			return nil
		}
		answer, err := client.ImportNamespaces(l.run.ctx, l.to, input, l.scan(page.ScannedTo))
		if err != nil {
			return err
		}
		page = answer.ImportNamespaces.Problems
	}
	return nil
}

type importReport = client.ImportNamespacesImportNamespacesImportNamespacesPayloadReportsImportReport

// loadedFile is a file and what became of it.
type loadedFile struct {
	File        string   `json:"file"`
	Namespace   string   `json:"namespace"`
	Outcome     string   `json:"outcome"`
	Warnings    []string `json:"warnings"`
	Errors      []string `json:"errors"`
	Differences []string `json:"differences"`
}

func (l *load) report(file definitionFile, report *importReport) {
	for _, warning := range report.Warnings {
		l.done.notef("%s: warning: %s\n", file.path, warning)
	}
	if report.Outcome == client.ImportOutcomeFailed {
		l.fail(file, report.Errors...)
		l.rows[len(l.rows)-1].Namespace = report.Namespace
		return
	}
	l.rows = append(l.rows, loadedFile{file.path, report.Namespace, string(report.Outcome), report.Warnings, nil, report.Differences})
	if report.Outcome == client.ImportOutcomeUnloaded {
		l.tally[client.ImportOutcomeSkipped]++
		l.done.notef("%s: skipped: it was unloaded or deleted here; --name %s loads it again\n", file.path, strconv.Quote(report.Namespace))
		return
	}
	l.tally[report.Outcome]++
	quiet := report.Outcome == client.ImportOutcomeCreated || report.Outcome == client.ImportOutcomeUnchanged
	if l.command.DryRun || l.command.Verbose || !quiet {
		l.done.notef("%s: %s %s\n", file.path, strings.ToLower(string(report.Outcome)), report.Namespace)
		for _, difference := range report.Differences {
			l.done.notef("    %s\n", difference)
		}
	}
}
