package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
	"github.com/cadastre-dev/cadastre/internal/pause"
)

// failure is a way for a cluster to lose its primary or etcd, with the effect in
// each round.
type failure struct {
	name string
	do   func(ctx context.Context, p *patroni, primary *node) error
	// away is how long writes may wait besides Patroni's ttl and 5 seconds.
	away time.Duration

	without []float64 // seconds without writes, by round
	unread  float64   // longest time without an answer to readWorld, in seconds
	untrue  int       // untrue answers of /readyz
}

// goneFor is how long a node or etcd is away, longer than Patroni's ttl.
const goneFor = patroniTTL + 10*time.Second

func failures() []*failure {
	return []*failure{
		{name: "the primary is killed", do: killPrimary},
		{name: "the primary is stopped (SIGSTOP) and continues", do: suspendPrimary},
		{name: "the network of the primary is cut and heals", do: cutPrimary},
		{name: "switch-over", do: switchOver},
		{name: "etcd is gone and returns", do: withoutEtcd, away: goneFor},
	}
}

// killPrimary kills Patroni and PostgreSQL, and starts Patroni again.
func killPrimary(ctx context.Context, p *patroni, primary *node) error {
	all, err := primary.database()
	if err != nil {
		return err
	}
	err = errors.Join(syscall.Kill(primary.PID, syscall.SIGKILL), syscall.Kill(all[0], syscall.SIGKILL))
	<-primary.Ended()
	if err != nil || !pause.For(ctx, goneFor) {
		return err
	}
	return p.startNode(primary)
}

// suspendPrimary stops all processes of a node. PostgreSQL continues before
// Patroni, and does not know yet that it is no longer the primary.
func suspendPrimary(ctx context.Context, _ *patroni, primary *node) error {
	all, err := primary.database()
	if err != nil {
		return err
	}
	all = append(all, primary.PID)
	send := func(signal syscall.Signal, pids ...int) {
		for _, pid := range pids {
			_ = syscall.Kill(pid, signal) // a session may have ended
		}
	}
	send(syscall.SIGSTOP, all...)
	pause.For(ctx, goneFor)
	send(syscall.SIGCONT, all[:len(all)-1]...)
	pause.For(ctx, 500*time.Millisecond)
	send(syscall.SIGCONT, all...)
	return nil
}

func cutPrimary(ctx context.Context, _ *patroni, primary *node) error {
	for _, one := range primary.proxies() {
		one.Swallow(true)
	}
	pause.For(ctx, goneFor)
	for _, one := range primary.proxies() {
		one.Swallow(false)
		one.Cut(false)
	}
	return nil
}

func switchOver(ctx context.Context, p *patroni, primary *node) error {
	command := []string{"-c", p.Nodes[0].config(), "switchover", "--master", primary.Name, "--force"}
	one, err := p.run("switchover", "TERM", append([]string{"patronictl"}, command...)...)
	if err != nil {
		return err
	}
	<-one.Ended()
	pause.For(ctx, patroniLoop)
	return nil
}

func withoutEtcd(ctx context.Context, p *patroni, _ *node) error {
	if err := p.etcd.Stop(); err != nil {
		return err
	}
	pause.For(ctx, goneFor)
	return p.startEtcd(ctx)
}

// failOver lets the primary of a cluster fail in some rounds, under load.
func failOver(ctx context.Context, o options, progress io.Writer) (err error) {
	lab, err := local.NewLab(ctx, "failover-", o.binary, progress)
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = lab.Close()
		} else {
			err = fmt.Errorf("%w\nthe logs are in %s", err, lab.Folder)
		}
	}()
	p, err := startPatroni(ctx, lab.Folder, o.nodes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	o.memory, o.think = 0, 800*time.Millisecond
	c, err := newCloud(lab, o, postgres)
	if err != nil {
		return err
	}
	c.database = p.proxied()
	defer func() { err = errors.Join(err, c.stopServers()) }()
	if err := c.fill(ctx); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	if err := c.add(ctx, "direct", p.direct()); err != nil {
		return err
	}
	settings := lab.Folder + "/pooled.yaml"
	text := fmt.Sprintf("database-listen: %s\ndatabase-read: %s\nno-prepared-statements: true\n", p.proxied(),
		p.direct())
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		return err
	}
	c.flags = append(slices.Clone(c.flags), "--config", settings)
	if err := c.add(ctx, "pooled", p.pooled()); err != nil {
		return err
	}
	return p.failUnder(ctx, newLoad(c))
}

// failUnder runs the rounds under a load. At the end it judges the load, even
// after a round that failed.
func (p *patroni) failUnder(ctx context.Context, l *load) error {
	stop, err := l.begin(ctx)
	if err != nil {
		return err
	}
	o := l.crowd.options
	chosen := slices.DeleteFunc(failures(), func(f *failure) bool { return !o.choice.Has(f.name) })
	rounds := 0
	for began := time.Now(); rounds < o.failovers && (o.within == 0 || time.Since(began) < o.within); rounds++ {
		one := chosen[rounds%len(chosen)]
		if err = p.round(ctx, one, l); err != nil {
			err = fmt.Errorf("round %d, %s: %w", rounds, one.name, err)
			break
		}
	}
	if ended := stop(); ended != nil {
		return errors.Join(err, ended)
	}
	text, of, unjudged := l.judge(ctx)
	if unjudged != nil {
		return errors.Join(err, unjudged)
	}
	happened := slices.DeleteFunc(chosen, func(f *failure) bool { return f.without == nil })
	fmt.Print(tableOf(happened))
	fmt.Printf("\n%d rounds on %d nodes: %s\n", rounds, o.nodes, text)
	for _, one := range happened {
		longest := (patroniTTL + 5*time.Second + one.away).Seconds()
		of.hold(slices.Max(one.without) <= longest, "%s: no writes for too long", one.name)
		of.hold(one.untrue == 0, "%s: /readyz was untrue", one.name)
	}
	return errors.Join(err, of.err())
}

// settled is how long a cluster rests before and after a failure.
const settled = 3 * time.Second

// round lets one failure happen, waits until the cluster is whole, and records the
// effect.
func (p *patroni) round(ctx context.Context, of *failure, l *load) error {
	primary, err := p.healthy(ctx)
	if err != nil {
		return err
	}
	pause.For(ctx, settled)
	began := time.Now()
	if err := of.do(ctx, p, primary); err != nil {
		return err
	}
	leader, err := p.healthy(ctx)
	if err != nil {
		return err
	}
	for time.Since(l.writes.last()) > time.Second && time.Since(began) < 5*time.Minute {
		pause.For(ctx, 100*time.Millisecond)
	}
	pause.For(ctx, settled+untrueAfter)
	ended := time.Now()
	from, to := l.writes.longest(began, ended)
	unread := 0.0
	for _, reads := range l.reads {
		from, to := reads.longest(began, ended)
		unread = max(unread, to.Sub(from).Seconds())
	}
	untrue, without := l.untrue(from, to, ended), to.Sub(from).Seconds()
	if len(untrue) > 0 {
		l.crowd.Say("untrue: %v", untrue)
	}
	of.without, of.unread = append(of.without, without), max(of.unread, unread)
	of.untrue += len(untrue)
	l.crowd.Say("%s %s: %s -> %s, %.1f s without writes, %.1f s without a world, %d untrue of /readyz, %d INTERNAL",
		ended.Format(time.TimeOnly), of.name, primary.Name, leader.Name, without,
		unread, len(untrue), len(l.crowd.internal))
	return nil
}

// tableOf returns the table of docs/robustness.md.
func tableOf(all []*failure) string {
	rows := [][]string{{
		"failure", "rounds", "s without writes: median", "worst", "s without a world, worst", "untrue `/readyz`",
	}}
	for _, one := range all {
		rows = append(rows, []string{
			one.name, fmt.Sprint(len(one.without)), fmt.Sprintf("%.1f", measured.Median(one.without)),
			fmt.Sprintf("%.1f", slices.Max(one.without)), fmt.Sprintf("%.1f", one.unread), fmt.Sprint(one.untrue),
		})
	}
	return measured.Grid(rows)
}

// moments are the times at which something succeeded.
type moments struct {
	mu sync.Mutex
	at []time.Time
}

func (m *moments) add() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = append(m.at, time.Now())
}

func (m *moments) last() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.at) == 0 {
		return time.Time{}
	}
	return m.at[len(m.at)-1]
}

// longest returns the ends of the longest time without a success between began
// and ended.
func (m *moments) longest(began, ended time.Time) (from, to time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := began
	for _, at := range append(slices.Clone(m.at), ended) {
		if at.Before(began) || at.After(ended) {
			continue
		}
		if at.Sub(last) > to.Sub(from) {
			from, to = last, at
		}
		last = at
	}
	return from, to
}
