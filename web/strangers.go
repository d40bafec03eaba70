package web

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/cadastre-dev/cadastre/graph"
)

// strangers bounds the WebSockets without a verified viewer, in total and by
// address. They have no part in the limit of verified WebSockets. A limit of 0
// means no limit.
type strangers struct {
	limit, ofOne int

	mu    sync.Mutex
	total int
	from  map[string][]*stranger // by address, the oldest first
}

// stranger is a WebSocket without a verified viewer.
type stranger struct{ end context.CancelCauseFunc }

func newStrangers(limits Limits) *strangers {
	s := &strangers{ofOne: limits.ViewerSockets, from: map[string][]*stranger{}}
	if limits.Sockets > 0 {
		s.limit = max(1, limits.Sockets/4)
	}
	return s
}

// enter counts a WebSocket of an address until the caller calls leave. If the
// pool is full, enter ends the oldest stranger of the address that has the
// most. It refuses if the caller's address has strangers and no address has at
// least two more. Otherwise addresses would end each other's strangers forever.
func (s *strangers) enter(address string, end context.CancelCauseFunc) (leave func(), refused *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := len(s.from[address])
	if s.ofOne > 0 && own >= s.ofOne {
		return nil, &refusal{status: http.StatusTooManyRequests, code: graph.CodeRateLimited, retryAfter: 3,
			message: "your address has too many WebSockets open without a valid token; send a token in the handshake"}
	}
	if s.limit > 0 && s.total >= s.limit {
		most := address
		for other, of := range s.from {
			if len(of) > len(s.from[most]) {
				most = other
			}
		}
		if own > 0 && len(s.from[most]) <= own+1 {
			return nil, &refusal{status: http.StatusServiceUnavailable, code: graph.CodeUnavailable, retryAfter: 3,
				message: "the server has too many WebSockets open without a valid token; send a token in the handshake"}
		}
		oldest := s.from[most][0]
		s.remove(most, oldest)
		oldest.end(errCrowded)
	}
	entered := &stranger{end}
	s.from[address] = append(s.from[address], entered)
	s.total++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.remove(address, entered)
	}, nil
}

// remove removes a stranger, if it is still counted.
func (s *strangers) remove(address string, of *stranger) {
	i := slices.Index(s.from[address], of)
	if i < 0 {
		return
	}
	s.total--
	if s.from[address] = slices.Delete(s.from[address], i, i+1); len(s.from[address]) == 0 {
		delete(s.from, address)
	}
}

func (s *strangers) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}
