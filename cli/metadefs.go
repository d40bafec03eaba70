package cli

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
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
	namespace  string // empty if the file does not say it
	isValid    bool
	err        error
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

// loadDefinitions loads the files in order and reports on each. A file that
// fails does not stop the others, but makes the command fail.
func loadDefinitions(c *call) error {
	deletes := slices.Contains([]string{"overwrite", "prefer-new"}, c.text("mode"))
	if c.is("include-protected") && !deletes {
		return usagef("--include-protected needs --mode overwrite or --mode prefer-new")
	}
	files, err := c.definitionFiles()
	if err != nil {
		return err
	}
	if !c.is("dry-run") && deletes {
		err := c.confirm("yes", "Delete content that is not in the files from their namespaces on %s?",
			c.server.address)
		if err != nil {
			return err
		}
	}
	total := len(files)
	l := &load{call: c, tally: map[string]int{}, broken: map[any]bool{}, done: c.progress("loading", total)}
	for files = l.readable(files); len(files) > 0; {
		n := batch(files)
		if err := l.request(files[:n]); err != nil {
			return err
		}
		files = files[n:]
	}
	err = l.summarize(total)
	if len(l.failed) > 0 {
		return fmt.Errorf("%d of %s failed: %s", len(l.failed), counted(total, "file"), strings.Join(l.failed, ", "))
	}
	return err
}

// readable drops files that cannot be read, and files of a namespace that an
// earlier file defines. It reports them as failed.
func (l *load) readable(files []definitionFile) []definitionFile {
	defining := map[string]string{} // the file of each namespace; a server cannot compare files of several requests
	return slices.DeleteFunc(files, func(file definitionFile) bool {
		first, isAgain := defining[file.namespace]
		switch {
		case file.err != nil:
			l.fail(file, "", file.err.Error())
		case !file.isValid: // the server reports the problems
			return false
		case isAgain:
			l.fail(file, "", "$.namespace: is also defined by "+first)
		}
		defining[file.namespace] = file.path
		return file.err != nil || isAgain
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

// definitionFiles returns the files at the paths of the command, or the
// built-in ones. If the command names namespaces, it returns only their files,
// and a name without a file is an error.
func (c *call) definitionFiles() (files []definitionFile, err error) {
	paths, names := c.given["path"], slices.Clone(c.given["name"])
	switch {
	case c.is("builtin"):
		names, paths = append(names, paths...), nil
		for _, text := range defaults.Definitions() {
			files = append(files, definitionOfFile("", []byte(text), nil))
		}
	case len(paths) == 0:
		return nil, usagef("nothing to load: give definition files, folders with *.json files, or --builtin")
	}
	for _, path := range paths {
		more, err := filesAt(path)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	if len(names) == 0 {
		return files, nil
	}
	files = slices.DeleteFunc(files, func(file definitionFile) bool { return !slices.Contains(names, file.namespace) })
	missing := slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(files, func(file definitionFile) bool { return file.namespace == name })
	})
	if len(missing) > 0 {
		return nil, fmt.Errorf("no file defines the namespace %s", quoted(missing))
	}
	return files, nil
}

// filesAt returns a file, or the *.json files of a folder, sorted by name.
func filesAt(path string) ([]definitionFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	paths := []string{path}
	if info.IsDir() {
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		paths = nil
		for _, entry := range entries {
			if !entry.IsDir() && strings.HasSuffix(entry.Name(), ".json") {
				paths = append(paths, filepath.Join(path, entry.Name()))
			}
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("no *.json file in %s", path)
		}
	}
	return lists.Map(paths, func(path string) definitionFile {
		text, err := os.ReadFile(path)
		return definitionOfFile(path, text, err)
	}), nil
}

// definitionOfFile returns a file without the white space between its tokens,
// which can be most of the file. A file without a path is built in.
func definitionOfFile(path string, text []byte, err error) definitionFile {
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
	file := definitionFile{path: path, text: string(text), err: err}
	if document, _, problems := metadef.ParseDocument(file.text); document != nil {
		file.namespace, file.isValid = document.Name, len(problems) == 0
	}
	file.path = cmp.Or(path, file.namespace)
	return file
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

func (l *load) fail(file definitionFile, namespace any, problems ...any) {
	for _, problem := range problems {
		l.notef("%s: %v\n", file.path, problem)
	}
	l.failed = append(l.failed, file.path)
	row := map[string]any{"file": file.path, "namespace": namespace, "outcome": "FAILED", "errors": problems}
	l.rows = append(l.rows, row)
}

// request loads files and reports on each. In a dry run it reads all pages of
// the metadata that the change would break, and notes them. If the server
// refuses the input of a request with one file, only that file fails; other
// errors end the command.
func (l *load) request(files []definitionFile) error {
	input := map[string]any{"mode": constant(l.text("mode")), "dryRun": l.is("dry-run"),
		"includeProtected": l.is("include-protected")}
	if l.is("builtin") {
		input["origin"] = metadef.OwnOrigin
		input["includeUnloaded"] = len(l.given["name"])+len(l.given["path"]) > 0
	}
	server := *l.call
	if len(files[0].text) > maxBatch { // too large for an input
		server.ctx = client.WithFiles(l.ctx, files[0].text)
	} else {
		input["documents"] = lists.Map(files, func(file definitionFile) string { return file.text })
	}
	variables := map[string]any{"input": input}
	if l.is("dry-run") {
		variables["problems"] = map[string]any{"first": maxScan, "scan": maxScan}
	}
	for isFirst := true; ; isFirst = false {
		reports, answer, err := server.ask(operationNamed("ImportNamespaces"), variables, 0)
		switch {
		case err != nil && isFirst && len(files) == 1 && isAboutInput(err):
			l.fail(files[0], "", lists.Map(l.refusalsOf(err), func(line string) any { return line })...)
			return nil
		case err != nil:
			return err
		case isFirst:
			for i, report := range listOf(reports, "") {
				l.report(files[i], report)
			}
			l.done.add(len(files))
		}
		page := memberOf(answer, "problems")
		for _, item := range brokenItems(page) {
			l.notef("%s", wouldBreak(item))
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
		l.notef("%s: warning: %s\n", file.path, warning)
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
		l.notef("%s: skipped: it was unloaded or deleted here; --name %q loads it again\n", file.path, name)
		return
	}
	l.tally[outcome]++
	if l.is("dry-run") || l.is("verbose") || outcome != "CREATED" && outcome != "UNCHANGED" {
		l.notef("%s: %s %s\n", file.path, strings.ToLower(outcome), name)
		for _, difference := range listOf(report, "differences") {
			l.notef("    %s\n", difference)
		}
	}
}

// namespacesAtOnce is the number of namespaces that one request exports or
// deletes. It is small enough for the operation time of a server.
const namespacesAtOnce = 20

// exportDefinitions writes one file for each namespace. It replaces files with
// the same names and keeps others.
func exportDefinitions(c *call) error {
	folder, names := c.text("dir"), slices.Compact(slices.Sorted(slices.Values(c.given["name"])))
	if types := c.given["resource-type"]; len(names) == 0 || len(types) > 0 {
		listed, err := c.namespaceNames(types)
		if err != nil {
			return err
		}
		names = slices.DeleteFunc(listed, func(name string) bool {
			return len(names) > 0 && !slices.Contains(names, name)
		})
	}
	files := fileNames(names)
	done := c.progress("exporting", len(names))
	for chunk := range slices.Chunk(names, namespacesAtOnce) {
		texts, err := c.definitionsOf(chunk)
		if err == nil {
			err = os.MkdirAll(folder, 0o755)
		}
		if err != nil {
			return err
		}
		for _, text := range texts {
			document, _, _ := metadef.ParseDocument(text)
			if document == nil || files[document.Name] == "" {
				return errors.New("the server sent a definition file that is invalid or was not requested")
			}
			if err := os.WriteFile(filepath.Join(folder, files[document.Name]), []byte(text), 0o644); err != nil {
				return err
			}
		}
		done.add(len(chunk))
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { // even without namespaces
		return err
	}
	if c.out.isTable() {
		return c.printf("%s exported to %s\n", counted(len(names), "namespace"), folder)
	}
	return c.list("file namespace", lists.Map(names, func(name string) any {
		return map[string]any{"file": filepath.Join(folder, files[name]), "namespace": name}
	}))
}

// definitionsOf returns the files of namespaces from one answer. If the answer
// would be too large, it exports the namespaces one by one.
func (c *call) definitionsOf(names []string) (texts []string, err error) {
	answer, err := client.ExportNamespaces(c.ctx, c.api, names, nil, c.is("portable"))
	if err == nil {
		return answer.ExportNamespaces, nil
	}
	if client.Code(err) != client.QueryTooComplex {
		return nil, err
	}
	for _, name := range names {
		answer, err := client.ExportNamespaces(client.WithFileExport(c.ctx), c.api,
			[]string{name}, nil, c.is("portable"))
		if err != nil {
			return nil, err
		}
		texts = append(texts, answer.ExportNamespaces...)
	}
	return texts, nil
}

// namespaceNames returns the names of the namespaces for the resource types, or
// of all for nil.
func (c *call) namespaceNames(resourceTypes []string) ([]string, error) {
	var filter map[string]any
	if resourceTypes != nil {
		filter = map[string]any{"resourceTypes": resourceTypes}
	}
	found, err := c.named("namespace", filter, maxBegun)
	return lists.Map(found, func(of match) string { return of.name }), err
}

// maxFileName is the maximum length of a file name in bytes, without its hash
// and its extension.
const maxFileName = 200

// fileNames returns the file names of namespaces. It keeps letters, digits,
// dots and underscores, and replaces everything else with a dash. A name gets a
// part of its hash if it is cut, or equals another name ignoring case, and an
// underscore before a dot or dash at its beginning.
func fileNames(names []string) map[string]string {
	count, files := map[string]int{}, make(map[string]string, len(names))
	for _, name := range names {
		count[strings.ToLower(plainName(name))]++
	}
	for _, name := range names {
		file := plainName(name)
		if count[strings.ToLower(file)] > 1 || len(file) > maxFileName {
			sum := sha256.Sum256([]byte(name))
			file = strings.ToValidUTF8(file[:min(len(file), maxFileName)], "") + "-" + hex.EncodeToString(sum[:4])
		}
		files[name] = file + ".json"
	}
	return files
}

func plainName(name string) string {
	file := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '.' {
			return r
		}
		return '-'
	}, name)
	if file == "" || file[0] == '.' || file[0] == '-' {
		return "_" + file
	}
	return file
}

// unloadDefinitions deletes namespaces and reports on each. A namespace that
// stays, such as a protected one, makes the command fail. To delete all
// namespaces, it sends several requests with a transaction each, so that no
// request exceeds the operation time.
func unloadDefinitions(c *call) error {
	names, types, origin := c.given["names"], c.given["resource-type"], c.given["origin"]
	isChosen := len(names)+len(types)+len(origin) > 0
	switch {
	case c.is("all") && isChosen:
		return usagef("--all cannot be combined with names, --resource-type and --origin")
	case !c.is("all") && !isChosen:
		return usagef("nothing to unload: name namespaces, --resource-type, --origin or --all")
	}
	if err := c.confirmUnload(names, types, origin); err != nil {
		return err
	}
	input := map[string]any{"includeProtected": c.is("include-protected")}
	for name, list := range map[string][]string{"names": names, "resourceTypes": types} {
		if list != nil {
			input[name] = list
		}
	}
	if origin != nil {
		input["origin"] = origin[0]
	}
	inputs := []map[string]any{input}
	if c.is("all") {
		all, err := c.namespaceNames(nil)
		if err != nil {
			return err
		}
		inputs = nil
		for part := range slices.Chunk(all, namespacesAtOnce) {
			inputs = append(inputs, map[string]any{"names": part, "includeProtected": c.is("include-protected")})
		}
	}
	return c.unload(inputs)
}

// unload sends requests to delete namespaces, and shows the outcome for each.
func (c *call) unload(inputs []map[string]any) error {
	unloaded, failed, reports := 0, []string{}, []any{}
	done := c.progress("unloading", len(inputs))
	var err error
	for _, input := range inputs {
		var found any
		if found, err = c.query("UnloadNamespaces", map[string]any{"input": input}); err != nil {
			break
		}
		done.add(1)
		for _, report := range listOf(found, "") {
			reports = append(reports, report)
			if memberOf(report, "outcome") == string(client.UnloadOutcomeUnloaded) {
				unloaded++
				continue
			}
			failed = append(failed, wordOf(report, "namespace"))
			for _, problem := range listOf(report, "errors") {
				c.notef("%s: %s\n", wordOf(report, "namespace"), cell(problem, false))
			}
		}
	}
	if err != nil && unloaded == 0 {
		return err
	}
	if c.out.isTable() {
		err = errors.Join(err, c.printf("%s unloaded, %d failed\n", counted(unloaded, "namespace"), len(failed)))
	} else {
		err = errors.Join(err, c.list("namespace outcome errors", reports))
	}
	if len(failed) > 0 {
		stayed := counted(len(failed), "namespace")
		err = errors.Join(err, fmt.Errorf("%s not unloaded: %s", stayed, strings.Join(failed, ", ")))
	}
	return err
}

// confirmUnload asks whether to delete the chosen namespaces.
func (c *call) confirmUnload(names, types, origin []string) error {
	if c.is("all") {
		return c.confirm("all", "Delete all namespaces of %s, with everything in them?", c.server.address)
	}
	chosen := "namespaces"
	if len(names) > 0 {
		chosen = quoted(names)
	}
	if len(types) > 0 {
		chosen += " that apply to " + quoted(types)
	}
	if len(origin) > 0 {
		chosen += fmt.Sprintf(" of the origin %q", origin[0])
	}
	return c.confirm("yes", "Delete %s of %s, with everything in them?", chosen, c.server.address)
}
