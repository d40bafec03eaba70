package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/internal/lists"
)

// Bounds of a request, within the limits of a server: rows, objects in them,
// and bytes.
const (
	maxRows     = 1000
	maxObjects  = 9000
	maxRowBytes = 800 << 10
)

// rowRequest is a mutation of the client for many rows.
type rowRequest struct {
	operation string
	// item returns the item of a line, nil for none.
	item func(row *fileRow) any
}

// rowKind describes the objects that a command loads.
type rowKind struct {
	noun           string
	create         rowRequest
	updates        []rowRequest // of existing things, in this order
	names, parents []string     // members that name the object, and members that name its parent
	lists          []string     // members whose elements are database rows
}

// fileRow is a line of a file.
type fileRow struct {
	number    int
	members   map[string]json.RawMessage
	refused   []string // errors
	isThere   bool     // the object existed before
	isUpdated bool
}

// strings returns the members with these names that are non-empty strings.
func (r *fileRow) strings(names []string) (all []string) {
	for _, name := range names {
		var text string
		if json.Unmarshal(r.members[name], &text) == nil && text != "" { // the server reports errors
			all = append(all, text)
		}
	}
	return all
}

// size returns the number of database rows for a line.
func (k rowKind) size(row *fileRow) int {
	n := 1
	for _, name := range k.lists {
		var list []json.RawMessage
		_ = json.Unmarshal(row.members[name], &list) // the server reports errors
		n += len(list)
	}
	return n
}

// rowLoad is one run of a command that loads many things.
type rowLoad struct {
	*call
	kind rowKind
	file string
	done *progress

	ctx     context.Context // ends with the error that ends the command
	stop    context.CancelCauseFunc
	sending sync.WaitGroup
	free    chan struct{}

	underWay                              map[string]bool // names of objects in requests since the last wait
	mu                                    sync.Mutex
	created, updated, there, failed, rows int
}

// loadRows loads the lines of a file. A refused line does not stop the others,
// but makes the command fail. The line of an existing object is not refused.
func (c *call) loadRows(kind rowKind) error {
	in, size, err := c.open(c.text("file"))
	if err != nil {
		return err
	}
	defer in.Close()
	l := &rowLoad{call: c, kind: kind, file: c.text("file"), done: c.progress("loading", size),
		free: make(chan struct{}, c.number("parallel")), underWay: map[string]bool{}}
	l.ctx, l.stop = context.WithCancelCause(c.ctx)
	defer l.stop(nil)
	err = l.readAll(in)
	l.sending.Wait()
	if err = errors.Join(err, context.Cause(l.ctx)); err != nil && c.ctx.Err() == nil {
		return err
	}
	return l.summarize()
}

// open returns a file and its size in bytes: -1 for the standard input.
func (c *call) open(path string) (io.ReadCloser, int, error) {
	if path == "-" {
		return io.NopCloser(c.input()), -1, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, int(info.Size()), nil
}

// readAll sends the lines of a file in order, in requests as large as the
// bounds allow.
func (l *rowLoad) readAll(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxRowBytes)
	var batch []*fileRow
	size, objects := 0, 0
	number := 1
	for ; lines.Scan() && l.ctx.Err() == nil; number++ {
		text := bytes.TrimSpace(lines.Bytes())
		l.done.add(len(lines.Bytes()) + 1)
		if len(text) == 0 {
			continue
		}
		row := &fileRow{number: number}
		if err := json.Unmarshal(text, &row.members); err != nil || row.members == nil {
			row.refused = []string{"is not a JSON object"}
			l.count([]*fileRow{row})
			continue
		}
		maps.DeleteFunc(row.members, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
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
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%s:%d: longer than %d bytes", l.file, number, maxRowBytes)
	} else if err != nil {
		return fmt.Errorf("read %s: %w", l.file, err)
	}
	return nil
}

// begin sends a request in the background. It first waits for all other
// requests if one of them may create a parent of an object in this one.
func (l *rowLoad) begin(batch []*fileRow) {
	if slices.ContainsFunc(batch, func(row *fileRow) bool {
		return slices.ContainsFunc(row.strings(l.kind.parents), func(parent string) bool { return l.underWay[parent] })
	}) {
		l.sending.Wait()
		clear(l.underWay)
	}
	for _, row := range batch {
		for _, name := range row.strings(l.kind.names) {
			l.underWay[name] = true
		}
	}
	l.free <- struct{}{}
	l.sending.Go(func() {
		defer func() { <-l.free }()
		if l.ctx.Err() != nil {
			return
		}
		if err := l.createOrUpdate(batch); err != nil {
			l.stop(err)
		}
	})
}

// createOrUpdate creates the objects of rows, and with --update it updates
// existing objects. Then it counts the rows.
func (l *rowLoad) createOrUpdate(batch []*fileRow) error {
	if err := l.send(batch, l.kind.create); err != nil {
		return err
	}
	for _, row := range batch {
		if row.isThere {
			row.refused = nil
		}
	}
	for _, request := range l.kind.updates {
		some := slices.DeleteFunc(slices.Clone(batch), func(row *fileRow) bool {
			return !row.isThere || row.refused != nil || !l.is("update") || request.item(row) == nil
		})
		if err := l.send(some, request); err != nil {
			return err
		}
		for _, row := range some {
			row.isUpdated = true
		}
	}
	l.count(batch)
	return nil
}

// send sends a request, and notes the errors of its rows. If the server refuses
// the whole request, send sends its halves, so that one row does not fail
// others.
func (l *rowLoad) send(batch []*fileRow, request rowRequest) error {
	if len(batch) == 0 {
		return nil
	}
	items := lists.Map(batch, request.item)
	variables := map[string]any{"input": map[string]any{"items": items, "atomic": false}}
	_, answer, err := l.ask(operationNamed(request.operation), variables, 0)
	switch code := client.Code(err); {
	case err == nil:
		for i, result := range listOf(answer, "results") {
			batch[i].judge(listOf(result, "errors"))
		}
		return nil
	case !isAboutInput(err) && code != client.QueryTooComplex && code != client.ValidationFailed:
		return err
	case len(batch) == 1:
		batch[0].refused = []string{strings.Join(l.refusalsOf(err), "; ")}
		return nil
	}
	half := len(batch) / 2
	if err := l.send(batch[:half], request); err != nil {
		return err
	}
	return l.send(batch[half:], request)
}

// judge notes the errors of a row, and whether they only say that it exists.
func (r *fileRow) judge(problems []any) {
	r.isThere = r.isThere || len(problems) > 0
	for _, one := range problems {
		code := wordOf(one, "code")
		_, field, _ := strings.Cut(wordOf(one, "field"), "].")
		r.refused = append(r.refused, fmt.Sprintf("%s: %s: %s", code, field, wordOf(one, "message")))
		r.isThere = r.isThere && code == string(client.AlreadyExists)
	}
}

// count counts rows by outcome, and prints the errors of failed rows.
func (l *rowLoad) count(rows []*fileRow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, row := range rows {
		for _, problem := range row.refused {
			l.notef("%s:%d: %s\n", l.file, row.number, problem)
		}
		switch {
		case row.refused != nil:
			l.failed++
		case row.isThere && !row.isUpdated:
			l.there++
		case row.isThere:
			l.updated, l.rows = l.updated+1, l.rows+l.kind.size(row)
		default:
			l.created, l.rows = l.created+1, l.rows+l.kind.size(row)
		}
	}
}

// summarize prints the counts, and after a second or more the speed.
func (l *rowLoad) summarize() error {
	speed, updated := "", ""
	if took := time.Since(l.done.started).Seconds(); took >= 1 {
		speed = fmt.Sprintf("; %.0f %s/s, %.0f rows/s", float64(l.created+l.updated)/took, plural(l.kind.noun),
			float64(l.rows)/took)
	}
	if l.is("update") {
		updated = fmt.Sprintf(", %d updated", l.updated)
	}
	total := counted(l.created+l.updated+l.there+l.failed, l.kind.noun)
	err := l.printf("%s: %d created%s, %d exist, %d failed%s\n", total, l.created, updated, l.there, l.failed, speed)
	if err == nil && l.failed > 0 {
		err = fmt.Errorf("%d of %s failed", l.failed, total)
	}
	if err == nil {
		err = context.Cause(l.ctx)
	}
	return err
}

func wholeRow(row *fileRow) any { return row.members }

func loadProviders(c *call) error {
	lists := []string{"inventories", "traits", "aggregates"}
	return c.loadRows(rowKind{noun: "provider", names: []string{"name", "uuid"},
		parents: []string{"parent", "parentName"}, lists: lists,
		create: rowRequest{"CreateResourceProviders", wholeRow},
		updates: []rowRequest{{"SetOnResourceProviders", func(row *fileRow) any {
			item := map[string]any{}
			for _, name := range lists {
				if value, ok := row.members[name]; ok {
					item[name] = value
				}
			}
			if len(item) == 0 {
				return nil
			}
			if item["provider"] = row.members["uuid"]; row.members["uuid"] == nil {
				delete(item, "provider")
				item["providerName"] = row.members["name"]
			}
			return item
		}}}})
}

func loadResources(c *call) error {
	set := func(member string, isOfUsers bool) rowRequest {
		return rowRequest{"SetMetadataOfMany", func(row *fileRow) any {
			if row.members[member] == nil {
				return nil
			}
			item := map[string]any{"resource": row.members["uuid"], "items": row.members[member]}
			if !isOfUsers {
				item["userModifiable"] = false
			}
			return item
		}}
	}
	return c.loadRows(rowKind{noun: "resource", names: []string{"uuid"}, parents: []string{"parent"},
		lists:   []string{"metadata", "serviceMetadata", "capabilities", "tags"},
		create:  rowRequest{"CreateResources", wholeRow},
		updates: []rowRequest{set("metadata", true), set("serviceMetadata", false)}})
}
