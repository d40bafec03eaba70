package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"
)

// following is how commits are timed alone and beside subscriptions, in turns.
type following struct {
	subscriptions int
	commits       int // a second; 0 is as many as there can be
	writers       int
	rounds        int
	each          time.Duration // for which commits go on, alone and beside
}

// followingName is what -works chooses this part by.
const followingName = "commits beside subscriptions"

// socketShare is how many subscriptions go over one WebSocket.
const socketShare = 50

// followed is what was measured of commits beside subscriptions.
type followed struct {
	Database      string `json:"database"`
	Server        string `json:"server"`
	Subscriptions int    `json:"subscriptions"`
	// Wanted is how many commits a second were tried; 0 is as many as there can be.
	Wanted int     `json:"commitsWanted"`
	Alone  commits `json:"alone"`
	Beside commits `json:"beside"`
	// Slower is how many times longer a commit takes beside the subscriptions: the
	// median of the rounds of the ratios of medians.
	Slower float64 `json:"timesTheMedian"`
	// Events a second, of all subscriptions together.
	Events float64 `json:"eventsPerSecond"`
	// Lag is from just before a commit until a client has the event, in milliseconds.
	LagMedian float64 `json:"lagMedianMs"`
	LagP99    float64 `json:"lagP99Ms"`
	// Memory is what the server's process holds, in MiB: before the first
	// subscription, with all of them before the first commit beside them, and the most
	// of what was read every second after that.
	MemoryBefore float64 `json:"memoryMiBWithout"`
	MemoryIdle   float64 `json:"memoryMiBIdle"`
	MemoryMost   float64 `json:"memoryMiBMost"`
}

// commits are the medians of rounds of commits.
type commits struct {
	PerSecond float64   `json:"perSecond"`
	Rates     []float64 `json:"rates"`
	Median    float64   `json:"medianMs"`
	P99       float64   `json:"p99Ms"`
	medians   []float64
	times     []time.Duration
}

// follow times commits alone and beside subscriptions on every server of the large
// world.
func (b *bench) follow(ctx context.Context) ([]followed, error) {
	var all []followed
	for _, t := range b.targets {
		if t.server == nil || t.world != b.large || !b.isFollowed() {
			continue
		}
		one, err := b.following.measure(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", t, followingName, err)
		}
		all = append(all, *one)
		if _, err := fmt.Fprintf(b.progress, "%s: commits beside %d subscriptions\n", t, one.Subscriptions); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// isFollowed reports whether commits are timed beside subscriptions.
func (o options) isFollowed() bool {
	return o.following.subscriptions > 0 && o.isChosen(followingName)
}

// measure times rounds on a target, each with commits alone and then beside
// subscriptions, or the other way around.
func (f following) measure(ctx context.Context, t *target) (*followed, error) {
	one := &followed{Database: t.database, Server: t.name, Subscriptions: f.subscriptions, Wanted: f.commits}
	w := &commitWriter{following: f, target: t}
	if err := w.write(ctx, time.Second, &commits{}); err != nil { // what the first ones make for all
		return nil, err
	}
	var err error
	if one.MemoryBefore, err = t.memory(ctx); err != nil {
		return nil, err
	}
	var heard heard
	for round := range f.rounds {
		for _, beside := range []bool{round%2 == 1, round%2 == 0} {
			if !beside {
				err = w.write(ctx, f.each, &one.Alone)
			} else {
				err = w.beside(ctx, one, &heard)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	one.Alone.close()
	one.Beside.close()
	var slower []float64
	for i := range one.Alone.medians {
		slower = append(slower, one.Beside.medians[i]/one.Alone.medians[i])
	}
	one.Slower = median(slower)
	one.Alone.forget()
	one.Beside.forget()
	if len(heard.lags) == 0 {
		return nil, errors.New("no subscription was told anything")
	}
	slices.Sort(heard.lags)
	one.Events = float64(heard.events) / (time.Duration(f.rounds) * f.each).Seconds()
	one.LagMedian, one.LagP99 = milliseconds(quantile(heard.lags, 50)), milliseconds(quantile(heard.lags, 99))
	return one, nil
}

// close makes the numbers of all rounds.
func (c *commits) close() {
	slices.Sort(c.times)
	c.PerSecond, c.Median, c.P99 = median(c.Rates), milliseconds(quantile(c.times, 50)), milliseconds(quantile(c.times, 99))
}

// forget leaves the numbers of the report.
func (c *commits) forget() { c.medians, c.times = nil, nil }

// commitWriter sends commits to a target.
type commitWriter struct {
	following
	target *target
	next   atomic.Int64
}

// write commits for some time, at the rate that is wanted.
func (w *commitWriter) write(ctx context.Context, limit time.Duration, into *commits) error {
	var mu sync.Mutex
	var times []time.Duration
	var due atomic.Int64
	group, writing := errgroup.WithContext(ctx)
	began := time.Now()
	for range w.writers {
		group.Go(func() error {
			c := &connection{to: w.target}
			defer c.close()
			var own []time.Duration
			for writing.Err() == nil && time.Since(began) < limit {
				n := int(w.next.Add(1))
				for _, body := range w.pair(n) {
					if w.commits > 0 {
						time.Sleep(time.Until(began.Add(time.Duration(due.Add(1)) * time.Second / time.Duration(w.commits))))
					}
					took, err := w.commit(c, body)
					if err != nil {
						return err
					}
					own = append(own, took)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, own...)
			return writing.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	into.Rates = append(into.Rates, float64(len(times))/time.Since(began).Seconds())
	slices.Sort(times)
	into.medians = append(into.medians, milliseconds(quantile(times, 50)))
	into.times = append(into.times, times...)
	return nil
}

// pair returns two requests, each of one commit, of which the second takes back the
// first: claims of a host or, one time in five, metadata of a resource.
func (w *commitWriter) pair(n int) []request {
	of := w.target.world
	if n%5 == 0 {
		resource := of.resources[n*7%len(of.resources)]["uuid"]
		const set = `mutation($resource: UUID!, $value: String!) { setMetadata(input: {resource: $resource, items: [{key: "followed", value: $value}]}) { resource { revision } } }`
		return []request{{Query: set, Variables: object{"resource": resource, "value": fmt.Sprint(n)}},
			{Query: `mutation($resource: UUID!) { deleteMetadata(input: {resource: $resource, keys: ["followed"]}) { resource { revision } } }`, Variables: object{"resource": resource}}}
	}
	consumer := of.uuid("followed", n)
	input := object{"consumers": []object{claim(consumer, of.freeProvider(n), 1, 1_024, 10)}}
	return []request{{Query: claiming, Variables: object{"input": input}}, {Query: unclaiming, Variables: object{"input": object{"consumer": consumer}}}}
}

// commit sends a request and returns how long it took.
func (w *commitWriter) commit(c *connection, r request) (time.Duration, error) {
	body, err := r.body()
	if err != nil {
		return 0, err
	}
	message := w.target.message(call{method: "POST", path: "/graphql", body: body})
	began := time.Now()
	answer, err := c.exchange(message)
	took := time.Since(began)
	if err == nil {
		_, err = dataOf(answer)
	}
	return took, err
}

// heard is what subscriptions were told.
type heard struct {
	counts atomic.Bool // whether events are noted
	mu     sync.Mutex
	events int
	lags   []time.Duration
	err    error // what a server refused
}

// beside opens the subscriptions, commits, and closes them.
func (w *commitWriter) beside(ctx context.Context, one *followed, heard *heard) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var reading sync.WaitGroup
	defer reading.Wait()
	defer stop()
	for first := 0; first < w.subscriptions; first += socketShare {
		socket, err := w.open(ctx, first, min(first+socketShare, w.subscriptions))
		if err != nil {
			return err
		}
		reading.Go(func() {
			defer func() { _ = socket.CloseNow() }()
			heard.read(ctx, socket, w.subscribe)
		})
	}
	if err := w.awaitOpen(ctx, heard); err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // for the first events of those who have one at once
	if one.MemoryIdle == 0 {
		if one.MemoryIdle, err = w.target.memory(ctx); err != nil {
			return err
		}
	}
	looking := make(chan error, 1)
	done := make(chan struct{})
	go func() { looking <- w.watchMemory(ctx, done, one) }()
	heard.counts.Store(true)
	err = w.write(ctx, w.each, &one.Beside)
	heard.counts.Store(false)
	close(done)
	heard.mu.Lock()
	defer heard.mu.Unlock()
	return errors.Join(err, <-looking, heard.err)
}

// watchMemory reads how much the server holds every second, and at the end.
func (w *commitWriter) watchMemory(ctx context.Context, done <-chan struct{}, one *followed) error {
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-time.After(time.Second):
		}
		memory, err := w.target.memory(ctx)
		if err != nil {
			return err
		}
		one.MemoryMost = max(one.MemoryMost, memory)
	}
	return nil
}

// open opens a WebSocket with the subscriptions of some numbers.
func (w *commitWriter) open(ctx context.Context, from, to int) (*websocket.Conn, error) {
	socket, _, err := websocket.Dial(ctx, "ws://"+w.target.address+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		return nil, err
	}
	socket.SetReadLimit(-1)
	err = send(ctx, socket, object{"type": "connection_init", "payload": object{"Authorization": "Bearer " + w.target.server.follower}})
	for n := from; n < to && err == nil; n++ {
		err = w.subscribe(ctx, socket, n)
	}
	if err != nil {
		return nil, errors.Join(err, socket.CloseNow())
	}
	return socket, nil
}

// subscribe asks for a subscription by its number, and leaves the server some time.
func (w *commitWriter) subscribe(ctx context.Context, socket *websocket.Conn, n int) error {
	time.Sleep(2 * time.Millisecond)
	return send(ctx, socket, object{"type": "subscribe", "id": fmt.Sprint(n), "payload": w.subscription(n)})
}

// send sends a message.
func send(ctx context.Context, socket *websocket.Conn, message object) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return socket.Write(ctx, websocket.MessageText, text)
}

// awaitOpen waits until all subscriptions are open.
func (w *commitWriter) awaitOpen(ctx context.Context, heard *heard) error {
	for deadline := time.Now().Add(requestTime); ; time.Sleep(100 * time.Millisecond) {
		all, err := w.target.server.metrics(ctx)
		if err != nil || int(all["cadastre_subscriptions_open"]) >= w.subscriptions {
			return err
		}
		heard.mu.Lock()
		err = heard.err
		heard.mu.Unlock()
		if err == nil && time.Now().After(deadline) {
			err = fmt.Errorf("%v of %d subscriptions are open", all["cadastre_subscriptions_open"], w.subscriptions)
		}
		if err != nil {
			return err
		}
	}
}

// subscription returns one of the subscriptions: of ten, six follow ten hosts each,
// two ten resources each, one the capacity of all, and one candidates.
func (w *commitWriter) subscription(n int) request {
	of := w.target.world
	uuids := func(all int, uuid func(int) any) (some []any) {
		for i := range 10 {
			some = append(some, uuid((n*10+i)%all))
		}
		return some
	}
	switch n % 10 {
	case 6, 7:
		return request{Query: `subscription($uuids: [UUID!]) { resourceChanged(uuids: $uuids) { cursor change { what key changedAt } resource { name revision } } }`,
			Variables: object{"uuids": uuids(len(of.resources), func(i int) any { return of.resources[i]["uuid"] })}}
	case 8:
		return request{Query: `subscription { capacityChanged { cursor capacity { nodes { resourceClass capacity used free } } } }`}
	case 9:
		return request{Query: `subscription($resources: [ResourceAmountInput!]!) { allocationCandidatesChanged(resources: $resources) {
			cursor allocationCandidates(first: 10) { nodes { allocations { provider { uuid } } } } } }`,
			Variables: object{"resources": amounts(1+n/10%10, 1_024, 10)}}
	}
	return request{Query: `subscription($uuids: [UUID!]) { resourceProviderChanged(uuids: $uuids) { cursor change { what key changedAt } resourceProvider { name generation } } }`,
		Variables: object{"uuids": uuids(len(of.providers), func(i int) any { return of.providers[i].uuid })}}
}

var changedAt = regexp.MustCompile(`"changedAt":"([^"]*)"`)

// refusedForNow is what a server says that is to be asked again.
var refusedForNow = regexp.MustCompile(`^\{"id":"(\d+)","type":"error".*"RATE_LIMITED"`)

// read notes the events of a WebSocket until the context ends, and asks again for
// what the server has no place for at the moment.
func (h *heard) read(ctx context.Context, socket *websocket.Conn, subscribe func(context.Context, *websocket.Conn, int) error) {
	for {
		_, text, err := socket.Read(ctx)
		if ctx.Err() != nil {
			return
		}
		if found := refusedForNow.FindSubmatch(text); found != nil {
			n, _ := strconv.Atoi(string(found[1]))
			time.Sleep(50 * time.Millisecond)
			h.note(time.Now(), nil, subscribe(ctx, socket, n))
			continue
		}
		if err == nil && bytes.Contains(text, []byte(`"errors":[`)) || bytes.Contains(text, []byte(`"type":"error"`)) {
			err = fmt.Errorf("a subscription is refused: %s", beginning(text))
		}
		h.note(time.Now(), text, err)
		if err != nil {
			return
		}
	}
}

// note notes an event.
func (h *heard) note(now time.Time, text []byte, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err = errors.Join(h.err, err); err != nil || !h.counts.Load() || !bytes.Contains(text, []byte(`"type":"next"`)) {
		return
	}
	h.events++
	if found := changedAt.FindSubmatch(text); found != nil {
		if at, err := time.Parse(time.RFC3339Nano, string(found[1])); err == nil {
			h.lags = append(h.lags, now.Sub(at))
		}
	}
}

// memory returns how much the server's process holds, in MiB.
func (t *target) memory(ctx context.Context) (float64, error) {
	all, err := t.server.metrics(ctx)
	return all["process_resident_memory_bytes"] / (1 << 20), err
}
