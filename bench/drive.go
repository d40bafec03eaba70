package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cadastre-dev/cadastre/bench/local"
	"github.com/cadastre-dev/cadastre/bench/measured"
)

// drive is the load of several concurrent clients. Each client sends one
// request after the other.
type drive struct {
	clients   []*local.Client
	next      func() []operation // the next operations of a client; none at the end
	before    func()             // waits until an operation is due; nil for no wait
	check     func(answer []byte, err error) error
	conflicts *atomic.Int64 // of operations of several requests; nil without such operations
}

// operation is one or several requests. Later ones can use earlier answers.
type operation []local.Call

// run sends the requests. It returns the latency of each operation and the
// duration of the run.
func (d drive) run(ctx context.Context) ([]time.Duration, time.Duration, error) {
	var mu sync.Mutex
	var times []time.Duration
	group, sending := errgroup.WithContext(ctx)
	began := time.Now()
	for _, c := range d.clients {
		group.Go(func() error {
			var own []time.Duration
			var answer bytes.Buffer
			for some := d.next(); len(some) > 0 && sending.Err() == nil; some = d.next() {
				for _, one := range some {
					if d.before != nil {
						d.before()
					}
					sent := time.Now()
					body, err := d.send(sending, c, one, &answer)
					own = append(own, time.Since(sent))
					if d.check != nil {
						err = d.check(body, err)
					}
					if err != nil {
						return err
					}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, own...)
			return sending.Err()
		})
	}
	err := group.Wait()
	return times, time.Since(began), err
}

// chosen is replaced in a body by the first allocations that the previous answer offers.
const chosen = `"$chosen"`

// send sends the requests of an operation, and returns the last answer. If a
// request after the first one meets a conflict, the operation begins again.
func (d drive) send(
	ctx context.Context, c *local.Client, of operation, into *bytes.Buffer,
) (body []byte, err error) {
	for i := 0; i < len(of); i++ {
		call := of[i]
		if bytes.Contains(call.Body, []byte(chosen)) {
			var offered struct {
				Requests []struct{ Allocations json.RawMessage } `json:"allocation_requests"`
			}
			if err := json.Unmarshal(body, &offered); err != nil || len(offered.Requests) == 0 {
				return nil, fmt.Errorf("no candidate in %.500q (%v)", body, err)
			}
			call.Body = bytes.Replace(call.Body, []byte(chosen), offered.Requests[0].Allocations, 1)
		}
		body, err = c.Insist(ctx, call, into)
		var refused local.Answer
		if i > 0 && errors.As(err, &refused) && refused.Status == http.StatusConflict {
			d.conflicts.Add(1)
			i = -1
		} else if err != nil {
			return nil, err
		}
	}
	return body, nil
}

// timing holds the measurements of rounds.
type timing struct {
	rates, medians []float64
	times          []time.Duration
	cpu            cpu
}

// add runs a drive on servers and adds its measurements.
func (t *timing) add(ctx context.Context, servers []*target, d drive) error {
	before, err := cpuOf(servers)
	if err != nil {
		return err
	}
	times, took, err := d.run(ctx)
	if err != nil {
		return err
	}
	after, err := cpuOf(servers)
	t.rates = append(t.rates, float64(len(times))/took.Seconds())
	t.medians = append(t.medians, measured.Quantile(times, 50))
	t.times = append(t.times, times...)
	t.cpu.server += after.server - before.server
	t.cpu.database += max(0, after.database-before.database) // an ended process is counted in whole ticks
	return err
}

// spend sends requests of administrators until the time limit, and adds the
// measurements. Each client has one of the servers, and sends one group of requests
// after the other.
func (t *timing) spend(ctx context.Context, limit time.Duration, servers []*target, clients int,
	requests func() []local.Call, before func(),
) error {
	d := drive{clients: connect(servers, admin, clients), before: before}
	defer d.close()
	began := time.Now()
	d.next = func() (some []operation) {
		if time.Since(began) < limit {
			for _, r := range requests() {
				some = append(some, operation{r})
			}
		}
		return some
	}
	return t.add(ctx, servers, d)
}

// figures returns the measurements on a target.
func (t *timing) figures(on *target) map[string]float64 {
	count := float64(len(t.times))
	of := map[string]float64{
		"operations": count, "perSecond": measured.Median(t.rates),
		"medianMs": measured.Quantile(t.times, 50), "p99Ms": measured.Quantile(t.times, 99),
	}
	if t.cpu.server > 0 {
		of["serverCpuMs"] = t.cpu.server.Seconds() * 1000 / count
		if on.cluster != nil {
			of["databaseCpuMs"] = t.cpu.database.Seconds() * 1000 / count
		}
	}
	return of
}
