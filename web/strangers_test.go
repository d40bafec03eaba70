package web

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestStrangersShareTheirPool lets addresses open and close WebSockets at
// random. A full pool ends a WebSocket of the address with the most, and only
// for an address without any or with at least two fewer.
func TestStrangersShareTheirPool(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		chance := rand.New(rand.NewPCG(seed, 0))
		limits := Limits{Sockets: 4 * (1 + chance.IntN(12)), ViewerSockets: 1 + chance.IntN(8)}
		s, leaves, addresses := newStrangers(limits), map[string]map[int]func(){}, 1+chance.IntN(8)
		for id := range 200 {
			address := fmt.Sprint(chance.IntN(addresses))
			if leaves[address] == nil {
				leaves[address] = map[int]func(){}
			}
			if chance.IntN(4) == 0 {
				for id, leave := range leaves[address] {
					leave()
					delete(leaves[address], id)
					break
				}
				continue
			}
			own, most, total := len(leaves[address]), 0, 0
			for _, of := range leaves {
				most, total = max(most, len(of)), total+len(of)
			}
			room := own < limits.ViewerSockets
			leave, refused := s.enter(address, func(error) { delete(leaves[address], id) })
			if total == limits.Sockets/4 {
				room = room && (own == 0 || own+2 <= most)
			}
			if (refused == nil) != room {
				t.Fatalf("seed %d: an address with %d of %d, with at most %d: refused %v", seed, own, total, most,
					refused)
			}
			if refused == nil {
				leaves[address][id] = leave
			}
			held := 0
			for _, of := range leaves {
				held += len(of)
			}
			if s.open() != held || held > limits.Sockets/4 {
				t.Fatalf("seed %d: %d are open, counted are %d", seed, held, s.open())
			}
		}
	}
}
