package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// gracePeriod is how long a stopping server continues to answer accepted
// requests.
const gracePeriod = 10 * time.Second

// TestNothingAcknowledgedIsLost builds the program, ends it with SIGTERM while
// clients change things, and looks for every acknowledged change.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	t.Parallel()
	program, tokens := built(t), tokenFile(t, anAdmin)
	storetest.EachURL(t, func(t *testing.T, url string) {
		server, process := spawn(t, program, "--database", url, "--tokens", tokens, configured(t, unlimited))
		writers := newWriters(server.address, patience.Of(t, gracePeriod+5*time.Second))
		select {
		case <-writers.middle:
		case <-writers.ended:
			t.Fatalf("the clients ended before the server\n%s", server.stderr)
		}
		told := time.Now()
		if err := process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		select {
		case <-server.ended:
			if server.err != nil {
				t.Errorf("the server ended with %v\n%s", server.err, server.stderr)
			}
		case <-time.After(patience.Of(t, gracePeriod+5*time.Second)):
			t.Fatalf("the server went on after its grace period\n%s", server.stderr)
		}
		took := time.Since(told)
		<-writers.ended
		if unexpected := writers.unexpected.Load(); unexpected != nil {
			t.Errorf("an answer that is neither done nor unavailable: %s", *unexpected)
		}

		kept, events := changesIn(t, url, tokens)
		lost := 0
		for _, name := range writers.names() {
			if !kept[name] {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%d of %d acknowledged changes are lost", lost, writers.acknowledged.Load())
		}
		if events != len(kept) {
			t.Errorf("%d changes are kept, with %d audit events", len(kept), events)
		}
		t.Logf("%d acknowledged, %d kept; the server ended %v after SIGTERM",
			writers.acknowledged.Load(), len(kept), took)
	})
}

const (
	writerCount     = 8
	writesPerWriter = 2000
	// middle is the number of acknowledged writes after which the server must
	// stop.
	middle = 300
)

// writers create traits, each one after the other, until the server takes no
// more requests.
type writers struct {
	done         [writerCount][]string
	acknowledged atomic.Int64
	unexpected   atomic.Pointer[string]
	middle       chan struct{} // closed once middle writes are acknowledged
	ended        chan struct{} // closed when no client writes any more
}

// newWriters starts clients that wait at most limit for each answer.
func newWriters(address string, limit time.Duration) *writers {
	w := &writers{middle: make(chan struct{}), ended: make(chan struct{})}
	var all sync.WaitGroup
	for i := range w.done {
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: limit}
			defer client.CloseIdleConnections()
			for n := range writesPerWriter {
				name := fmt.Sprintf("CUSTOM_%d_%d", i, n)
				done, err := w.create(client, address, name)
				if err != nil {
					return
				}
				if !done {
					continue
				}
				w.done[i] = append(w.done[i], name)
				if w.acknowledged.Add(1) == middle {
					close(w.middle)
				}
			}
		})
	}
	go func() {
		all.Wait()
		close(w.ended)
	}()
	return w
}

// create creates a trait and reports whether the server acknowledged it. The
// error is set if the request has no complete answer.
func (w *writers) create(client *http.Client, address, name string) (bool, error) {
	body := fmt.Sprintf(`{"query": "mutation { createTrait(input: {name: \"%s\"}) { trait { name } } }"}`, name)
	request, err := http.NewRequest(http.MethodPost, address+"/graphql", strings.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer secret")
	response, err := client.Do(request)
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return false, err
	}
	if done := response.StatusCode == http.StatusOK && bytes.Contains(text, []byte(`"name":"`+name+`"`)); done {
		return true, nil
	}
	if response.StatusCode != http.StatusServiceUnavailable {
		told := fmt.Sprintf("%d %s", response.StatusCode, text)
		w.unexpected.Store(&told)
	}
	return false, nil
}

// names returns the names of the acknowledged traits.
func (w *writers) names() []string {
	var names []string
	for _, done := range w.done {
		names = append(names, done...)
	}
	return names
}

// changesIn opens a database again. It returns the custom traits in it, and the
// number of audit events about their creation.
func changesIn(t *testing.T, url, tokens string) (kept map[string]bool, events int) {
	t.Helper()
	server, _ := boot(t, "--database", url, "--tokens", tokens)
	kept = map[string]bool{}
	for after := "null"; after != ""; {
		_, text := ask(t, server.address, "secret", fmt.Sprintf(`{ auditEvents(filter: {action: "createTrait"}, first: 0) { totalCount }
			traits(first: 1000, after: %s) { nodes { name } pageInfo { hasNextPage endCursor } } }`, after))
		var answer struct {
			Data struct {
				AuditEvents struct{ TotalCount int }
				Traits      struct {
					Nodes    []struct{ Name string }
					PageInfo struct {
						HasNextPage bool
						EndCursor   string
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Data.Traits.Nodes == nil {
			t.Fatalf("%v in %s", err, text)
		}
		for _, trait := range answer.Data.Traits.Nodes {
			if strings.HasPrefix(trait.Name, "CUSTOM_") {
				kept[trait.Name] = true
			}
		}
		events = answer.Data.AuditEvents.TotalCount
		after = ""
		if answer.Data.Traits.PageInfo.HasNextPage {
			after = fmt.Sprintf("%q", answer.Data.Traits.PageInfo.EndCursor)
		}
	}
	return kept, events
}
