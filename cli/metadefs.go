package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/client"
)

type metadefsCommand struct {
	Load loadCommand `cmd:"" help:"Load definition files into a server."`
}

type loadCommand struct {
	remote
	Path string `arg:"" type:"path" help:"A definition file, or a folder whose *.json files are loaded."`
}

// maxBatch bounds the text of the documents of one request, well below what a
// server accepts.
const maxBatch = 256 << 10

// definitionFile is a file and its text.
type definitionFile struct{ path, text string }

// Run loads the files in their order and reports on each. A file that fails does
// not stop the others, and makes the command fail.
func (c *loadCommand) Run(run *session) error {
	files, err := definitionFiles(c.Path)
	if err != nil {
		return err
	}
	done := run.progress("loading", len(files))
	defer done.end()
	tally := map[client.ImportOutcome]int{}
	var failed []string
	for batch := range batches(files) {
		reports, err := c.load(run.ctx, c.client(), batch)
		if err != nil {
			return c.explained(err)
		}
		for i, report := range reports {
			tally[report.Outcome]++
			for _, warning := range report.Warnings {
				done.printf("%s: warning: %s\n", batch[i].path, warning)
			}
			for _, problem := range report.Errors {
				done.printf("%s: %s\n", batch[i].path, problem)
			}
			if report.Outcome == client.ImportOutcomeFailed {
				failed = append(failed, batch[i].path)
			}
		}
		done.add(len(batch))
	}
	done.end()
	fmt.Fprintf(run.stdout, "%d %s: %d created, %d unchanged, %d skipped, %d failed\n", len(files),
		plural(len(files), "namespace"), tally[client.ImportOutcomeCreated], tally[client.ImportOutcomeUnchanged],
		tally[client.ImportOutcomeSkipped], tally[client.ImportOutcomeFailed])
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d files failed: %s", len(failed), len(files), strings.Join(failed, ", "))
	}
	return nil
}

type importReport = client.ImportNamespacesImportNamespacesImportNamespacesPayloadReportsImportReport

func (c *loadCommand) load(ctx context.Context, to graphql.Client, files []definitionFile) ([]*importReport, error) {
	documents := make([]string, len(files))
	for i, file := range files {
		documents[i] = file.text
	}
	answer, err := client.ImportNamespaces(ctx, to, documents, client.ImportModeSkip)
	if err != nil {
		return nil, err
	}
	return answer.ImportNamespaces.Reports, nil
}

// definitionFiles reads a file, or the *.json files of a folder by name.
func definitionFiles(path string) ([]definitionFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: name a definition file or a folder with *.json files", err)
	}
	paths := []string{path}
	if info.IsDir() {
		if paths, err = filepath.Glob(filepath.Join(path, "*.json")); err != nil {
			return nil, err
		}
		slices.Sort(paths)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s holds no *.json file: name a definition file or a folder with some", path)
	}
	files := make([]definitionFile, 0, len(paths))
	var unread error
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			unread = errors.Join(unread, err)
			continue
		}
		files = append(files, definitionFile{path: path, text: string(text)})
	}
	return files, unread
}

// batches gives the files in lots whose text together stays below maxBatch; a
// larger file goes alone.
func batches(files []definitionFile) func(yield func([]definitionFile) bool) {
	return func(yield func([]definitionFile) bool) {
		for len(files) > 0 {
			size, n := 0, 0
			for n < len(files) && (n == 0 || size+len(files[n].text) <= maxBatch) {
				size += len(files[n].text)
				n++
			}
			if !yield(files[:n]) {
				return
			}
			files = files[n:]
		}
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
