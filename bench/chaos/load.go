package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// The numbers of clients of a load.
const (
	claimers  = 24
	askers    = 10
	followers = 100
)

// untrueAfter is how long /readyz may lag behind: a server notices that its
// database hangs when a statement times out, and checks it again after a while.
const untrueAfter = 12 * time.Second

// readyBefore is how long /readyz may report that the database accepts writes
// before a write succeeds: clients wait before they try again.
const readyBefore = 5 * time.Second

// load claims, imports, reads and follows on two servers, and keeps the answers.
type load struct {
	crowd  *crowd
	writes moments
	reads  []*moments // of the world, by server

	mu       sync.Mutex
	ready    []readiness
	imported map[string]bool // namespaces by name; true: acknowledged
	shown    map[string]bool
	gone     []string // shown by a server, and later not
	followed [][]string
	failed   []string // why streams ended
	start    string   // the cursor after which all streams start
	running  sync.WaitGroup
}

// readiness is an answer of /readyz.
type readiness struct {
	at   time.Time
	ok   bool
	text string
}

func newLoad(c *cloud) *load {
	l := &load{crowd: &crowd{cloud: c, codes: counts{}}, followed: make([][]string, followers),
		imported: map[string]bool{}, shown: map[string]bool{}}
	for range c.servers {
		l.reads = append(l.reads, &moments{})
	}
	return l
}

// begin starts all clients. stop ends them; the followers get time to read the
// rest.
func (l *load) begin(ctx context.Context) (stop func() error, err error) {
	c := l.crowd.cloud
	latest, err := client.LatestChange(ctx, c.reader(0), nil)
	if err != nil {
		return nil, err
	}
	l.start = *latest.Changes.Latest
	asking, end := context.WithCancel(ctx)
	following, unfollow := context.WithCancel(ctx)
	var streams sync.WaitGroup
	for i := range followers {
		streams.Go(func() { l.follow(following, i) })
	}
	for i := range claimers {
		l.running.Go(func() { l.claim(asking, i) })
	}
	for i := range askers {
		l.running.Go(func() { l.crowd.client(asking, 11*i) })
	}
	l.running.Go(func() { l.imports(asking) })
	for i := range c.servers {
		l.running.Go(func() { l.readWorld(asking, i) })
		l.running.Go(func() { l.readDefinitions(asking, i) })
		l.running.Go(func() { l.askReady(asking, i) })
	}
	return func() error {
		end()
		l.running.Wait()
		pause.For(ctx, 10*time.Second)
		unfollow()
		streams.Wait()
		return ctx.Err()
	}, nil
}

// reader returns a client of a server as a member of a project.
func (c *cloud) reader(number int) *client.Client {
	return client.New("http://"+c.servers[number%len(c.servers)].Host, client.WithToken(c.tokens.others[number]))
}

// follow follows all namespaces on one server.
func (l *load) follow(ctx context.Context, number int) {
	type event struct {
		NamespaceChanged struct {
			Change struct{ Key, What string }
		}
	}
	const document = `subscription($after: String) { namespaceChanged(after: $after) { cursor change { key what } } }`
	for one, err := range client.Follow[event](ctx, l.crowd.reader(number),
		document, map[string]any{"after": l.start}) {
		l.mu.Lock()
		if err != nil {
			l.failed = append(l.failed, err.Error())
		} else {
			l.followed[number] = append(l.followed[number],
				one.NamespaceChanged.Change.Key+" "+one.NamespaceChanged.Change.What)
		}
		l.mu.Unlock()
	}
}

// ask returns a client with one connection to a server.
func (l *load) ask(server int, token string) *local.Client {
	return local.NewClient(l.crowd.servers[server].Host, local.Bearing(token), othersAddress, 1, requestTime)
}

// claim claims and releases on one server.
func (l *load) claim(ctx context.Context, number int) {
	one := l.ask(number%len(l.crowd.servers), l.crowd.tokens.othersService[number])
	defer one.Close()
	w := l.crowd.newWriter(number)
	w.servers = []*local.Client{one}
	for pause.For(ctx, 100*time.Millisecond+time.Duration(w.chance.Int64N(int64(300*time.Millisecond)))) {
		if w.write() == local.Answered {
			l.writes.add()
		}
	}
}

// imports imports definitions, on the servers in turn.
func (l *load) imports(ctx context.Context) {
	var to []*local.Client
	for i := range l.crowd.servers {
		to = append(to, l.ask(i, l.crowd.tokens.admin))
		defer to[i].Close()
	}
	for n := 0; pause.For(ctx, 300*time.Millisecond); n++ {
		name := fmt.Sprintf("FailOver::%06d", n)
		document := fmt.Sprintf(`{"namespace": %q, "visibility": "public", "properties": {"p": {"title": "P", "type": "string"}}}`, name)
		l.mu.Lock()
		l.imported[name] = false
		l.mu.Unlock()
		got := to[n%len(to)].Send(context.Background(),
			local.Operation(`mutation($input: ImportNamespacesInput!) { importNamespaces(input: $input) { reports { outcome } } }`,
				object{"input": object{"documents": []string{document}}}), nil)
		if got.Code == local.Answered && strings.Contains(string(got.Body), "CREATED") {
			l.mu.Lock()
			l.imported[name] = true
			l.mu.Unlock()
		}
	}
}

// readWorld asks a server for candidates again and again, and records the times
// of answers. A server finds candidates in its memory.
func (l *load) readWorld(ctx context.Context, server int) {
	one := l.ask(server, l.crowd.tokens.calm)
	defer one.Close()
	call := local.Operation(`{ allocationCandidates(first: 1, resources: [{resourceClass: "VCPU", amount: 1}]) { nodes { allocations { provider { uuid } } } } }`, nil)
	for pause.For(ctx, 100*time.Millisecond) {
		if got := one.Send(context.Background(), call, nil); got.Code == local.Answered {
			l.reads[server].add()
		}
	}
}

// readDefinitions reads imported namespaces on a server. If one is missing that a
// server has shown before, it notes that as gone.
func (l *load) readDefinitions(ctx context.Context, server int) {
	one := l.ask(server, l.crowd.tokens.others[server+10])
	defer one.Close()
	for pause.For(ctx, 100*time.Millisecond) {
		l.mu.Lock()
		names := slices.Sorted(maps.Keys(l.imported))
		names = names[max(0, len(names)-20):]
		known := map[string]bool{}
		for _, name := range names {
			known[name] = l.shown[name]
		}
		l.mu.Unlock()
		got := one.Send(context.Background(), local.Operation(
			`query($names: [String!]!) { namespaces(first: 20, filter: {names: $names}) { nodes { name } } }`,
			object{"names": names},
		), nil)
		if got.Code != local.Answered {
			continue
		}
		l.mu.Lock()
		for _, name := range names {
			if bytes.Contains(got.Body, []byte(strconv.Quote(name))) {
				l.shown[name] = true
			} else if known[name] {
				l.gone = append(l.gone,
					fmt.Sprintf("%s at %s by server %d", name, time.Now().Format(time.TimeOnly), server))
			}
		}
		l.mu.Unlock()
	}
}

func (l *load) askReady(ctx context.Context, server int) {
	one := l.ask(server, "")
	defer one.Close()
	for pause.For(ctx, 250*time.Millisecond) {
		began := time.Now()
		got := one.Send(context.Background(), local.Call{Path: "/readyz"}, nil)
		l.mu.Lock()
		l.ready = append(l.ready,
			readiness{began, got.Status == 200, fmt.Sprintf("server %d: %.80s", server, got.Body)})
		l.mu.Unlock()
	}
}

// untrue returns the wrong answers of /readyz: a yes between from and to, where
// no write succeeded, and a no between to and ended, where writes succeeded.
func (l *load) untrue(from, to, ended time.Time) (texts []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.ready {
		without := one.at.After(from.Add(untrueAfter)) && one.at.Before(to.Add(-readyBefore))
		with := one.at.After(to.Add(untrueAfter)) && one.at.Before(ended)
		if without && one.ok || with && !one.ok {
			texts = append(texts, fmt.Sprintf("%v %.1f s after the beginning, %.1f s after the end", one.text,
				one.at.Sub(from).Seconds(), one.at.Sub(to).Seconds()))
		}
	}
	return texts
}

// judge compares the database with the answers that clients have. It returns
// the counts in words, and the promises that are broken.
func (l *load) judge(ctx context.Context) (text string, p promises, err error) {
	c := l.crowd.cloud
	events, err := l.events(ctx)
	if err != nil {
		return "", p, err
	}
	claims, err := c.judge(ctx) // ends the servers
	if err != nil {
		return "", p, err
	}
	stored, err := local.Text(ctx, c.database, "SELECT coalesce(string_agg(name, ' '), '') FROM namespaces")
	if err != nil {
		return "", p, err
	}
	names := strings.Fields(stored)
	lost, acknowledged := 0, 0
	for name, isAcknowledged := range l.imported {
		isStored := slices.Contains(names, name)
		if isAcknowledged {
			acknowledged++
		}
		if isAcknowledged && !isStored {
			lost++
		}
		if l.shown[name] && !isStored {
			l.gone = append(l.gone, name)
		}
	}
	skipped, twice, received, unreal := l.compare(events)
	text = fmt.Sprintf("%d requests of claims, %d consumers acknowledged, %d lost, %d refused and made, %d over capacity; "+
		"%d imports acknowledged, %d lost; %d events to %d followers, %d skipped, %d twice; %d shown and then gone; "+
		"%d INTERNAL; the doctor found %d", claims.Claims, claims.Acknowledged, len(claims.Lost), len(claims.Unasked),
		len(claims.OverAllocated), acknowledged, lost, received, followers, skipped, twice, len(l.gone)+unreal,
		len(l.crowd.internal), len(claims.Found))
	p = claims.promises("fail-overs")
	p.hold(lost == 0, "%d imports are lost", lost)
	p.hold(skipped+twice == 0, "events were skipped or came twice")
	p.hold(len(l.gone)+unreal == 0, "shown and then gone: %v", l.gone)
	p.hold(len(l.failed) == 0, "streams ended: %v", l.failed[:min(3, len(l.failed))])
	p.hold(len(l.crowd.internal) == 0, "INTERNAL: %.600q", l.crowd.internal[:min(3, len(l.crowd.internal))])
	return text, p, nil
}

// compare compares the events of all followers with the changes in the log. It
// counts skipped and repeated events, all received events, and events without a
// change.
func (l *load) compare(events []string) (skipped, twice, received, unreal int) {
	for _, got := range l.followed {
		received += len(got)
		seen := map[string]int{}
		for _, one := range got {
			if seen[one]++; seen[one] > 1 {
				twice++
			}
		}
		for _, one := range events {
			if seen[one] == 0 {
				skipped++
			}
		}
		if !slices.Equal(got, events) && len(got) == len(events) {
			skipped++ // another order
		}
		unreal += max(0, len(seen)-len(events))
	}
	return skipped, twice, received, unreal
}

// events returns all changes of namespaces since the beginning.
func (l *load) events(ctx context.Context) (all []string, err error) {
	namespaces := &client.ChangeFilter{Kinds: optional.Value([]client.ChangeKind{client.ChangeKindNamespace})}
	for one, err := range client.Changes(ctx, l.crowd.reader(0), namespaces, &l.start, nil) {
		if err != nil {
			return nil, err
		}
		all = append(all, fmt.Sprint(one.Key, " ", one.What))
	}
	return all, nil
}
