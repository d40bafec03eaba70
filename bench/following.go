package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// following configures the timing of commits, with and without subscriptions.
type following struct {
	subscriptions int
	commits       int // per second; 0 is no limit
	writers       int
	rounds        int
	each          time.Duration // of commits, with and without subscriptions
}

// socketShare is the number of subscriptions of one WebSocket.
const socketShare = 50

// follow times rounds on a target. Each round has commits without subscriptions and
// commits with them, in alternating order.
func (b *bench) follow(ctx context.Context, t *target) ([]measured.Line, error) {
	w := &commitWriter{following: b.following, target: t}
	var err error
	if _, w.queries, err = works(); err == nil {
		err = w.write(ctx, time.Second, &timing{}) // this fills caches
	}
	if err != nil {
		return nil, err
	}
	figures := map[string]float64{"subscriptions": float64(w.subscriptions), "wanted": float64(w.commits)}
	figures["memoryWithout"], _ = t.process.Memory()
	var alone, beside timing
	var heard heard
	for round := range w.rounds {
		for _, subscribed := range []bool{round%2 == 1, round%2 == 0} {
			if !subscribed {
				err = w.write(ctx, w.each, &alone)
			} else {
				err = w.subscribed(ctx, figures, &beside, &heard)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if len(heard.lags) == 0 {
		return nil, errors.New("no subscription had an event")
	}
	for name, of := range map[string]timing{"alone": alone, "beside": beside} {
		figures[name+"PerSecond"], figures[name+"MedianMs"] = measured.Median(of.rates), measured.Quantile(of.times, 50)
		figures[name+"P99Ms"] = measured.Quantile(of.times, 99)
	}
	var slower []float64
	for i := range alone.medians {
		slower = append(slower, beside.medians[i]/alone.medians[i])
	}
	figures["timesTheMedian"] = measured.Median(slower)
	figures["eventsPerSecond"] = float64(heard.events) / (time.Duration(w.rounds) * w.each).Seconds()
	figures["lagMedianMs"], figures["lagP99Ms"] = measured.Quantile(heard.lags, 50), measured.Quantile(heard.lags, 99)
	return []measured.Line{{Kind: measured.Followed, Database: t.database, Server: t.name, Figures: figures}}, nil
}

// commitWriter sends commits to a target.
type commitWriter struct {
	following
	target  *target
	queries []Question // of the subscriptions
	next    atomic.Int64
}

// write commits for some time, at the configured rate.
func (w *commitWriter) write(ctx context.Context, limit time.Duration, into *timing) error {
	var due atomic.Int64
	began := time.Now()
	pair := func() []local.Call { return w.pair(int(w.next.Add(1))) }
	return into.spend(ctx, limit, []*target{w.target}, w.writers, pair, func() {
		if w.commits > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(due.Add(1)) * time.Second / time.Duration(w.commits))))
		}
	})
}

// pair returns two requests with one commit each. The second undoes the first.
// One pair of five writes metadata of a resource, the others claim on a host.
func (w *commitWriter) pair(n int) []local.Call {
	of := w.target.world
	if n%5 != 0 {
		return of.claimAndRelease("followed", n, n, 1)
	}
	resource := of.resources[n*7%len(of.resources)]["uuid"]
	return []local.Call{
		local.Mutation("setMetadata",
			object{"resource": resource, "items": []object{{"key": "followed", "value": fmt.Sprint(n)}}}),
		local.Mutation("deleteMetadata", object{"resource": resource, "keys": []string{"followed"}}),
	}
}

// claimAndRelease returns a claim of some processors of freeProvider(from), and
// the request that undoes it. A kind and a number identify the consumer.
func (w *world) claimAndRelease(kind string, n, from, cpus int) []local.Call {
	consumer := w.uuid(kind, n)
	return []local.Call{
		local.Mutation("setAllocations",
			object{"consumers": []object{claim(consumer, w.freeProvider(from), cpus, 1_024, 10)}}),
		local.Mutation("deleteAllocations", object{"consumer": consumer}),
	}
}

// heard holds the events that subscriptions received.
type heard struct {
	counts atomic.Bool // whether events count
	mu     sync.Mutex
	events int
	lags   []time.Duration // from just before a commit until a client has the event
	err    error           // why a subscription or a WebSocket failed
}

func (h *heard) failed() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// subscribed opens the subscriptions, commits, and closes them.
func (w *commitWriter) subscribed(ctx context.Context, figures map[string]float64,
	into *timing, heard *heard) (err error) {
	ctx, stop := context.WithCancel(ctx)
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
	pause.For(ctx, 2*time.Second) // for the immediate first events
	if _, ok := figures["memoryIdle"]; !ok {
		figures["memoryIdle"], _ = w.target.process.Memory()
	}
	w.target.process.ResetPeak()
	heard.counts.Store(true)
	err = w.write(ctx, w.each, into)
	heard.counts.Store(false)
	_, peak := w.target.process.Memory()
	figures["memoryMost"] = max(figures["memoryMost"], peak)
	return errors.Join(err, heard.failed())
}

// open opens a WebSocket with the subscriptions [from, to). Each WebSocket has
// one viewer and one address.
func (w *commitWriter) open(ctx context.Context, from, to int) (*websocket.Conn, error) {
	viewer := from / socketShare % maxClients
	socket, _, err := local.Dial(ctx, w.target.address, addressOf(viewer), nil)
	if err != nil {
		return nil, err
	}
	socket.SetReadLimit(-1)
	token := object{"Authorization": "Bearer " + w.target.tokens["reader"][viewer]}
	err = wsjson.Write(ctx, socket, object{"type": "connection_init", "payload": token})
	for n := from; n < to && err == nil; n++ {
		err = w.subscribe(ctx, socket, n)
	}
	if err != nil {
		return nil, errors.Join(err, socket.CloseNow())
	}
	return socket, nil
}

// subscribe pauses for a moment and then opens the n-th subscription.
func (w *commitWriter) subscribe(ctx context.Context, socket *websocket.Conn, n int) error {
	time.Sleep(2 * time.Millisecond)
	return wsjson.Write(ctx, socket, object{"type": "subscribe", "id": fmt.Sprint(n),
		"payload": json.RawMessage(w.subscription(n).Body)})
}

// awaitOpen waits until all subscriptions are open.
func (w *commitWriter) awaitOpen(ctx context.Context, heard *heard) error {
	for deadline := time.Now().Add(requestTime); ; time.Sleep(100 * time.Millisecond) {
		all, err := w.target.operator.Metrics(ctx)
		open := int(all["cadastre_subscriptions_open"])
		if err != nil || open >= w.subscriptions {
			return err
		}
		if err = heard.failed(); err == nil && time.Now().After(deadline) {
			err = fmt.Errorf("%d of %d subscriptions are open", open, w.subscriptions)
		}
		if err != nil {
			return err
		}
	}
}

// subscription returns the n-th subscription, which is one of works.yaml. Six
// of ten follow ten hosts each, two follow ten resources each, one follows the
// total capacity, and one follows candidates.
func (w *commitWriter) subscription(n int) local.Call {
	return w.target.call(w.queries[max(0, n%10-5)], n)
}

var (
	changedAt     = regexp.MustCompile(`"changedAt":"([^"]*)"`)
	refusedForNow = regexp.MustCompile(`^\{"id":"(\d+)","type":"error".*"(?:RATE_LIMITED|UNAVAILABLE)"`)
)

// read records the events of a WebSocket until the context ends or a subscription
// fails. If the server is temporarily full, it subscribes again.
func (h *heard) read(ctx context.Context, socket *websocket.Conn,
	subscribe func(context.Context, *websocket.Conn, int) error) {
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
			err = fmt.Errorf("a subscription is refused: %.500s", text)
		}
		h.note(time.Now(), text, err)
		if err != nil {
			return
		}
	}
}

// note records an error, or an event while events count.
func (h *heard) note(now time.Time, text []byte, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err = errors.Join(h.err, err); err != nil || !h.counts.Load() ||
		!bytes.Contains(text, []byte(`"type":"next"`)) {
		return
	}
	h.events++
	if found := changedAt.FindSubmatch(text); found != nil {
		if at, err := time.Parse(time.RFC3339Nano, string(found[1])); err == nil {
			h.lags = append(h.lags, now.Sub(at))
		}
	}
}
