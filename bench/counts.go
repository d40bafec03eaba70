package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// counts are what a server counts of itself, in one operation on average; nil is
// not counted.
type counts struct{ statements, allocations, bytes *float64 }

// metrics are the counters of a server that counts are made of, by name. A
// server of another version may lack some.
const (
	statementsMetric  = "cadastre_sql_statements_total"
	allocationsMetric = "go_memstats_mallocs_total"
	bytesMetric       = "go_memstats_alloc_bytes_total"
)

// How many operations are counted: reading the counters allocates, too, and not
// always the same, so that there are many of those that are short.
const (
	leastCounted = 20
	mostCounted  = 1_000
	countedTime  = 100 * time.Millisecond
)

// count counts some operations of the work, which are not timed.
func (s *series) count(ctx context.Context) error {
	if s.target.server == nil {
		return nil
	}
	clients := s.connect(s.work.clients)
	defer disconnect(clients)
	first := s.next
	_, took, err := s.send(ctx, clients, max(len(clients), leastCounted))
	if err != nil {
		return err
	}
	each := took / time.Duration(max(len(clients), leastCounted))
	operations := min(max(int(countedTime/each), leastCounted), mostCounted)
	var read [3]map[string]float64
	for i := range read {
		if i == 2 {
			if _, _, err := s.send(ctx, clients, operations); err != nil {
				return err
			}
		}
		if read[i], err = s.target.server.metrics(ctx); err != nil {
			return err
		}
	}
	// What lies between the first two is reading them.
	average := func(name string) *float64 {
		if _, ok := read[0][name]; !ok {
			return nil
		}
		return new((read[2][name] - 2*read[1][name] + read[0][name]) / float64(operations))
	}
	s.counted = counts{statements: average(statementsMetric), allocations: average(allocationsMetric), bytes: average(bytesMetric)}
	return s.takeBack(ctx, first)
}

// metrics returns the metrics of the server without labels, by name.
func (s *server) metrics(ctx context.Context) (map[string]float64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := s.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New("read the metrics: " + response.Status)
	}
	all := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, text, ok := strings.Cut(lines.Text(), " ")
		if !ok || strings.ContainsAny(name, "#{") {
			continue
		}
		if all[name], err = strconv.ParseFloat(text, 64); err != nil {
			return nil, fmt.Errorf("read the metric %s: %w", name, err)
		}
	}
	return all, lines.Err()
}
