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

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/metadef"
)

type loadCommand struct {
	remote
	deletion
	Mode             string `enum:"skip,merge,prefer-new,overwrite" default:"skip" help:"What to do with namespaces that exist: ${enum}. With --builtin, skip upgrades them and keeps local edits. Overwrite deletes what the files lack, after asking."`
	DryRun           bool   `help:"Report what would be done, and do nothing."`
	IncludeProtected bool   `help:"Delete from protected namespaces, too; only with --mode overwrite and prefer-new."`
	Builtin          bool   `help:"Load the definitions that come with the program, instead of files."`
	Path             string `arg:"" optional:"" type:"path" help:"A definition file, or a folder whose *.json files are loaded."`
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
	if !c.DryRun && (c.Mode == "overwrite" || c.IncludeProtected) {
		if err := c.confirm(run, "yes", "Delete what the files lack from the namespaces of %s that they define?", c.Server); err != nil {
			return err
		}
	}
	l := &load{command: c, run: run, to: c.client(), tally: map[client.ImportOutcome]int{}, done: run.progress("loading", len(files))}
	defer l.done.end()
	defining := map[string]string{} // the file of each namespace; a request does not see those of another
	files = slices.DeleteFunc(files, func(file definitionFile) bool {
		if file.err != nil {
			l.fail(file, file.err.Error())
			return true
		}
		document, _, problems := metadef.ParseDocument(file.text)
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
	total := len(files) + len(l.failed)
	for len(files) > 0 {
		n := batch(files)
		if err := l.send(files[:n]); err != nil {
			return err
		}
		files = files[n:]
	}
	l.done.end()
	what := ""
	if c.DryRun {
		what = " (dry run, nothing was done)"
	}
	err = run.printf("%s: %d created, %d updated, %d unchanged, %d skipped, %d failed%s\n", counted(total, "namespace"),
		l.tally[client.ImportOutcomeCreated], l.tally[client.ImportOutcomeUpdated], l.tally[client.ImportOutcomeUnchanged],
		l.tally[client.ImportOutcomeSkipped], len(l.failed), what)
	if len(l.failed) > 0 {
		return fmt.Errorf("%d of %s failed: %s", len(l.failed), counted(total, "file"), strings.Join(l.failed, ", "))
	}
	return err
}

// files returns those that the command names.
func (c *loadCommand) files() ([]definitionFile, error) {
	switch {
	case c.IncludeProtected && c.Mode != "overwrite" && c.Mode != "prefer-new":
		return nil, errors.New("--include-protected needs --mode overwrite or --mode prefer-new")
	case c.Builtin && c.Path != "":
		return nil, errors.New("--builtin and a path exclude each other")
	case c.Builtin:
		var files []definitionFile
		for _, text := range defaults.Definitions() {
			document, _, _ := metadef.ParseDocument(text) // the product's own are valid
			files = append(files, definitionFile{path: document.Name, text: text})
		}
		return files, nil
	case c.Path == "":
		return nil, errors.New("nothing to load: name a definition file, a folder with *.json files, or --builtin")
	}
	return definitionFiles(c.Path)
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
}

func (l *load) fail(file definitionFile, problems ...string) {
	for _, problem := range problems {
		l.done.notef("%s: %s\n", file.path, problem)
	}
	l.failed = append(l.failed, file.path)
}

// send loads the files of one request. A file that the server refuses to read
// fails alone; a server that cannot be reached ends the command.
func (l *load) send(files []definitionFile) error {
	input := &client.ImportNamespacesInput{
		Mode: client.ImportMode(strings.ToUpper(strings.ReplaceAll(l.command.Mode, "-", "_"))), DryRun: l.command.DryRun, IncludeProtected: l.command.IncludeProtected,
	}
	if l.command.Builtin {
		origin := metadef.OwnOrigin
		input.Origin = &origin
	}
	for _, file := range files {
		input.Documents = append(input.Documents, file.text)
	}
	answer, err := client.ImportNamespaces(l.run.ctx, l.to, input)
	if err != nil && len(files) == 1 && isAboutInput(err) {
		l.fail(files[0], refusals(err)...)
		return nil
	}
	if err != nil {
		return l.command.explained(err)
	}
	for i, report := range answer.ImportNamespaces.Reports {
		l.report(files[i], report)
	}
	l.done.add(len(files))
	return nil
}

type importReport = client.ImportNamespacesImportNamespacesImportNamespacesPayloadReportsImportReport

func (l *load) report(file definitionFile, report *importReport) {
	for _, warning := range report.Warnings {
		l.done.notef("%s: warning: %s\n", file.path, warning)
	}
	if report.Outcome == client.ImportOutcomeFailed {
		l.fail(file, report.Errors...)
		return
	}
	l.tally[report.Outcome]++
	if l.command.DryRun || report.Outcome == client.ImportOutcomeUpdated {
		l.done.notef("%s: %s %s\n", file.path, strings.ToLower(string(report.Outcome)), report.Namespace)
		for _, difference := range report.Differences {
			l.done.notef("    %s\n", difference)
		}
	}
}
