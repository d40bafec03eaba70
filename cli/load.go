package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Khan/genqlient/graphql"

	"github.com/cadastre-dev/cadastre/client"
)

// rowsFile are the flags of commands that load many things.
type rowsFile struct {
	File     string `arg:"" help:"A file with an object of JSON on each line, or - for standard input."`
	Update   bool   `help:"Change what is there to what its line says: of providers the inventories, traits and aggregates that the line has, of resources its metadata; all else stays."`
	Parallel int    `default:"4" min:"1" max:"16" help:"How many requests are under way at once; those whose parents others create wait for them."`
}

// The bounds of a request, which a server accepts: things, and what they consist
// of together with them, and bytes.
const (
	maxRows     = 1000
	maxObjects  = 9000
	maxRowBytes = 800 << 10
)

// rowRequest is a mutation for many rows.
type rowRequest struct {
	operation, query, field string
	// item returns the item of a line, nil for none.
	item func(line []byte) any
}

// rowKind is what a command loads.
type rowKind struct {
	noun    string
	create  rowRequest
	updates []rowRequest // of what is there, one after the other
	// of returns what a thing is called by others, whom it calls its parent, and how
	// many rows of the database it becomes.
	of func(line []byte) (names, parents []string, rows int)
}

// fileRow is a line of a file.
type fileRow struct {
	number         int
	text           json.RawMessage
	names, parents []string
	rows           int
}

// rowResult is what a server says of a row.
type rowResult struct {
	Errors []struct {
		Code    client.ErrorCode
		Field   *string
		Message string
	}
	refused string // the request of this row alone, for this
}

// rowLoad is one run of a command that loads many things.
type rowLoad struct {
	kind    rowKind
	file    rowsFile
	run     *session
	done    *progress
	started time.Time

	sending sync.WaitGroup
	free    chan struct{}

	mu       sync.Mutex
	underWay map[string]int // how many requests create what is called so
	created  int
	updated  int
	rows     int
	there    int
	failed   int
	err      error // that ends the command
}

// loadRows loads the lines of a file. A line that is refused fails alone, and makes
// the command fail; one of what is there already is counted.
func loadRows(run *session, kind rowKind, file rowsFile) error {
	in, total, err := file.open(run)
	if err != nil {
		return err
	}
	defer in.Close()
	l := &rowLoad{kind: kind, file: file, run: run, done: run.progress("loading", total), started: time.Now(),
		free: make(chan struct{}, file.Parallel), underWay: map[string]int{}}
	defer l.done.end()
	err = l.readAll(in)
	l.sending.Wait()
	l.done.end()
	if err = errors.Join(err, l.err); err != nil {
		return err
	}
	return l.summarize()
}

// open returns the file, and how many lines it has: -1 where that is not known.
func (f rowsFile) open(run *session) (io.ReadCloser, int, error) {
	if f.File == "-" {
		var in io.Reader = strings.NewReader("")
		if run.program.Stdin != nil {
			in = run.program.Stdin
		}
		return io.NopCloser(in), -1, nil
	}
	file, err := os.Open(f.File)
	if err != nil {
		return nil, 0, err
	}
	lines, buffer := 0, make([]byte, 64<<10)
	for {
		n, err := file.Read(buffer)
		lines += bytes.Count(buffer[:n], []byte("\n"))
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, 0, errors.Join(err, file.Close())
		}
	}
	_, err = file.Seek(0, io.SeekStart)
	return file, lines, err
}

// readAll sends the lines of a file in their order, as many together as a request
// may have.
func (l *rowLoad) readAll(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxRowBytes)
	var batch []fileRow
	size, objects := 0, 0
	for number := 1; lines.Scan() && l.isGoing(); number++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		row := fileRow{number: number, text: bytes.Clone(text)}
		if !json.Valid(text) || text[0] != '{' {
			l.fail(row, "is not an object of JSON")
			continue
		}
		row.names, row.parents, row.rows = l.kind.of(text)
		of := bytes.Count(text, []byte("{"))
		if len(batch) == maxRows || len(batch) > 0 && (size+len(text) > maxRowBytes || objects+of > maxObjects) {
			l.begin(batch)
			batch, size, objects = nil, 0, 0
		}
		batch, size, objects = append(batch, row), size+len(text), objects+of
	}
	if len(batch) > 0 {
		l.begin(batch)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", l.file.File, err)
	}
	return nil
}

func (l *rowLoad) isGoing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil && l.run.ctx.Err() == nil
}

// begin sends a request beside those under way, after those that create parents of
// its things.
func (l *rowLoad) begin(batch []fileRow) {
	if l.waitsFor(batch) {
		l.sending.Wait()
	}
	if !l.isGoing() {
		return
	}
	l.free <- struct{}{}
	l.mark(batch, 1)
	l.sending.Go(func() {
		defer func() { <-l.free }()
		defer l.mark(batch, -1)
		if err := l.createOrUpdate(batch); err != nil {
			l.mu.Lock()
			l.err = cmp.Or(l.err, err)
			l.mu.Unlock()
		}
	})
}

// waitsFor reports whether a parent of a row is being created.
func (l *rowLoad) waitsFor(batch []fileRow) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, row := range batch {
		for _, parent := range row.parents {
			if l.underWay[parent] > 0 {
				return true
			}
		}
	}
	return false
}

func (l *rowLoad) mark(batch []fileRow, by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, row := range batch {
		for _, name := range row.names {
			if l.underWay[name] += by; l.underWay[name] == 0 {
				delete(l.underWay, name)
			}
		}
	}
}

// createOrUpdate creates what rows say, and updates what is there where that is asked
// for.
func (l *rowLoad) createOrUpdate(batch []fileRow) error {
	var there []fileRow
	err := l.send(batch, l.kind.create, func(row fileRow, result rowResult) {
		switch {
		case result.isThere():
			there = append(there, row)
		case l.isDone(row, result):
			l.count(&l.created, row)
		}
	})
	if err != nil {
		return err
	}
	said := make(map[int]bool, len(there)) // by lines, which say something of what is there
	for _, request := range l.kind.updates {
		if !l.file.Update {
			break
		}
		refused := map[int]bool{}
		some := slices.DeleteFunc(slices.Clone(there), func(row fileRow) bool { return request.item(row.text) == nil })
		err := l.send(some, request, func(row fileRow, result rowResult) {
			said[row.number], refused[row.number] = true, !l.isDone(row, result)
		})
		if err != nil {
			return err
		}
		there = slices.DeleteFunc(there, func(row fileRow) bool { return refused[row.number] })
	}
	for _, row := range there {
		if said[row.number] {
			l.count(&l.updated, row)
		} else {
			l.count(&l.there, fileRow{})
		}
	}
	return nil
}

// send sends a request, and notes what became of its rows. One that the server
// refuses as a whole is sent in halves, so that a row fails alone.
func (l *rowLoad) send(batch []fileRow, request rowRequest, note func(fileRow, rowResult)) error {
	if len(batch) == 0 {
		return nil
	}
	items := make([]any, len(batch))
	for i, row := range batch {
		items[i] = request.item(row.text)
	}
	var answer map[string]struct{ Results []rowResult }
	err := l.run.api.MakeRequest(l.run.ctx, &graphql.Request{OpName: request.operation, Query: request.query,
		Variables: map[string]any{"input": map[string]any{"items": items, "atomic": false}}}, &graphql.Response{Data: &answer})
	switch {
	case err == nil:
		for i, row := range batch {
			note(row, answer[request.field].Results[i])
		}
		return nil
	case !isAboutInput(err) && !isTooComplex(err) && client.Code(err) != client.ValidationFailed:
		return err
	case len(batch) == 1:
		note(batch[0], rowResult{refused: strings.Join(l.run.refusalsOf(err), "; ")})
		return nil
	}
	half := len(batch) / 2
	if err := l.send(batch[:half], request, note); err != nil {
		return err
	}
	return l.send(batch[half:], request, note)
}

// isDone reports whether nothing is wrong with a row, and says what is.
func (l *rowLoad) isDone(row fileRow, result rowResult) bool {
	if result.refused != "" {
		l.fail(row, result.refused)
		return false
	}
	if len(result.Errors) == 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range result.Errors {
		field := ""
		if one.Field != nil {
			_, field, _ = strings.Cut(*one.Field, "].")
		}
		l.done.notef("%s:%d: %s: %s: %s\n", l.file.File, row.number, one.Code, field, printable(one.Message))
	}
	l.failed++
	l.done.add(1)
	return false
}

// count counts a row that is done.
func (l *rowLoad) count(counter *int, row fileRow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*counter++
	l.rows += row.rows
	l.done.add(1)
}

// isThere reports whether all that is wrong with a row is that it is there.
func (r rowResult) isThere() bool {
	if len(r.Errors) == 0 {
		return false
	}
	for _, one := range r.Errors {
		if one.Code != client.AlreadyExists {
			return false
		}
	}
	return true
}

func (l *rowLoad) fail(row fileRow, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done.notef("%s:%d: %s\n", l.file.File, row.number, message)
	l.failed++
}

// summarize says what became of all rows, and how fast where that took a while.
func (l *rowLoad) summarize() error {
	speed, updated := "", ""
	if took := time.Since(l.started); took >= time.Second {
		speed = fmt.Sprintf("; %.0f %ss/s, %.0f rows/s", float64(l.created+l.updated)/took.Seconds(), l.kind.noun, float64(l.rows)/took.Seconds())
	}
	if l.file.Update {
		updated = fmt.Sprintf(", %d updated", l.updated)
	}
	total := l.created + l.updated + l.there + l.failed
	if err := l.run.printf("%s: %d created%s, %d exist, %d failed%s\n", counted(total, l.kind.noun), l.created, updated, l.there, l.failed, speed); err != nil {
		return err
	}
	if l.failed > 0 {
		return fmt.Errorf("%d of %s failed", l.failed, counted(total, l.kind.noun))
	}
	return context.Cause(l.run.ctx)
}

type providerLoadCommand struct {
	common
	rowsFile
}

// Run loads providers.
func (c *providerLoadCommand) Run(run *session) error {
	return loadRows(run, rowKind{noun: "provider",
		create:  rowRequest{"CreateResourceProviders", client.CreateResourceProviders_Operation, "createResourceProviders", lineItself},
		updates: []rowRequest{{"SetOnResourceProviders", client.SetOnResourceProviders_Operation, "setOnResourceProviders", replacementOf}},
		of: func(line []byte) (names, parents []string, rows int) {
			var of struct {
				Name, UUID, Parent, ParentName  string
				Inventories, Traits, Aggregates []json.RawMessage
			}
			_ = json.Unmarshal(line, &of) // the server says what is wrong
			return namedBy(of.Name, of.UUID), namedBy(of.Parent, of.ParentName), 1 + len(of.Inventories) + len(of.Traits) + len(of.Aggregates)
		}}, c.rowsFile)
}

func lineItself(line []byte) any { return json.RawMessage(line) }

// replacementOf returns what a line says of a provider that is there, nil for
// nothing.
func replacementOf(line []byte) any {
	var of struct{ Name, UUID, Inventories, Traits, Aggregates json.RawMessage }
	_ = json.Unmarshal(line, &of)
	item := map[string]json.RawMessage{}
	for name, value := range map[string]json.RawMessage{"inventories": of.Inventories, "traits": of.Traits, "aggregates": of.Aggregates} {
		if value != nil {
			item[name] = value
		}
	}
	switch {
	case len(item) == 0:
		return nil
	case of.UUID != nil:
		item["provider"] = of.UUID
	default:
		item["providerName"] = of.Name
	}
	return item
}

type resourceLoadCommand struct {
	common
	rowsFile
}

// Run loads resources.
func (c *resourceLoadCommand) Run(run *session) error {
	set := func(item func(line []byte) any) rowRequest {
		return rowRequest{"SetMetadataOfMany", client.SetMetadataOfMany_Operation, "setMetadataOnResources", item}
	}
	return loadRows(run, rowKind{noun: "resource",
		create:  rowRequest{"CreateResources", client.CreateResources_Operation, "createResources", lineItself},
		updates: []rowRequest{set(metadataOf), set(serviceMetadataOf)},
		of: func(line []byte) (names, parents []string, rows int) {
			var of struct {
				UUID, Parent                                  string
				Metadata, ServiceMetadata, Capabilities, Tags []json.RawMessage
			}
			_ = json.Unmarshal(line, &of) // the server says what is wrong
			return namedBy(of.UUID), namedBy(of.Parent), 1 + len(of.Metadata) + len(of.ServiceMetadata) + len(of.Capabilities) + len(of.Tags)
		}}, c.rowsFile)
}

// metadataOf returns the metadata that a line says a resource has, nil for none.
func metadataOf(line []byte) any {
	var of struct{ UUID, Metadata json.RawMessage }
	if _ = json.Unmarshal(line, &of); of.Metadata == nil {
		return nil
	}
	return map[string]any{"resource": of.UUID, "items": of.Metadata}
}

// serviceMetadataOf is metadataOf for what only services change.
func serviceMetadataOf(line []byte) any {
	var of struct{ UUID, ServiceMetadata json.RawMessage }
	if _ = json.Unmarshal(line, &of); of.ServiceMetadata == nil {
		return nil
	}
	return map[string]any{"resource": of.UUID, "items": of.ServiceMetadata, "userModifiable": false}
}

// namedBy returns the texts that are not empty.
func namedBy(texts ...string) (some []string) {
	for _, text := range texts {
		if text != "" {
			some = append(some, text)
		}
	}
	return some
}
