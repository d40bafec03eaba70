package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/cadastre-dev/cadastre/placement"
)

// heldConsumer is a consumer in the model of TestHoldsFollowTheModel.
type heldConsumer struct {
	amount   int
	isHeld   bool
	hasEnded bool
}

// holdModel is the state that the ledger must have: consumers of one provider
// with 10 units.
type holdModel map[string]heldConsumer

func (m holdModel) used() (sum int) {
	for _, consumer := range m {
		sum += consumer.amount
	}
	return sum
}

// claim replaces the allocations of a consumer, if they fit.
func (m holdModel) claim(uuid string, amount int, isHeld bool) (ok bool) {
	if m.used()-m[uuid].amount+amount > 10 {
		return false
	}
	if m[uuid] = (heldConsumer{amount: amount, isHeld: isHeld}); amount == 0 {
		delete(m, uuid)
	}
	return true
}

// confirm returns the indexes of the consumers that cannot be confirmed. If
// there are none, it ends the holds.
func (m holdModel) confirm(uuids []string) (refused []string) {
	for i, uuid := range uuids {
		if consumer, ok := m[uuid]; !ok || consumer.hasEnded {
			refused = append(refused, fmt.Sprintf("input.consumers[%d]", i))
		}
	}
	if len(refused) == 0 {
		for _, uuid := range uuids {
			m[uuid] = heldConsumer{amount: m[uuid].amount}
		}
	}
	return refused
}

func (m holdModel) releaseEnded(uuid string) (ok bool) {
	if ok = m[uuid].hasEnded; ok {
		delete(m, uuid)
	}
	return ok
}

// ledgerOf returns a ledger of the model's state.
func (m holdModel) ledger() *Ledger {
	consumers := map[string]*LedgerConsumer{}
	for uuid, consumer := range m {
		consumers[uuid] = &LedgerConsumer{ProjectID: "p", UserID: "u", Generation: 1, HasEnded: consumer.hasEnded,
			Allocations: map[AllocationKey]int64{{Provider: "a", ResourceClass: "GOLD"}: int64(consumer.amount)}}
		if consumer.isHeld {
			consumers[uuid].ExpiresAt = new(time.Unix(1, 0))
		}
	}
	return NewLedger(consumers,
		map[string]*LedgerProvider{"a": {Generation: 1,
			Inventories: map[string]Inventory{"GOLD": {ResourceClass: "GOLD",
				Total: 10, MinUnit: 1, MaxUnit: 10, StepSize: 1, AllocationRatio: 1,
				Capacity: 10, Used: int64(m.used())}}}})
}

// TestHoldsFollowTheModel makes random claims, confirmations and releases on
// small ledgers with random holds. The model has the same outcomes.
func TestHoldsFollowTheModel(t *testing.T) {
	t.Parallel()
	uuids := []string{"v", "w", "x", "y"}
	for seed := range uint64(2000) {
		d := rand.New(rand.NewPCG(seed, 1))
		m := holdModel{}
		for _, uuid := range uuids {
			if isHeld := d.IntN(2) == 0; d.IntN(3) > 0 {
				m[uuid] = heldConsumer{amount: 1 + d.IntN(2), isHeld: isHeld, hasEnded: isHeld && d.IntN(2) == 0}
			}
		}
		l := m.ledger()
		for step := range 6 {
			var got, want any
			uuid := uuids[d.IntN(len(uuids))]
			switch d.IntN(3) {
			case 0:
				claim := want1(uuid, d.IntN(6))
				if d.IntN(2) == 0 {
					claim.ExpiresAt = new(time.Unix(2, 0))
				}
				got = len(l.Claim(&Claim{Consumers: []ConsumerClaim{claim}}, "input", knowing)) == 0
				want = m.claim(uuid, amountOf(claim), claim.ExpiresAt != nil)
			case 1:
				asked := slices.Clone(uuids[:1+d.IntN(len(uuids))])
				got = fmt.Sprint(pathsOf(l.Confirm(&Confirmation{Consumers: asked}, "input")))
				want = fmt.Sprint(m.confirm(asked))
			default:
				got, want = l.ReleaseEnded(uuid), m.releaseEnded(uuid)
			}
			if got != want {
				t.Fatalf("seed %d, step %d: %v, want %v", seed, step, got, want)
			}
			compareHolds(t, l, m, uuids)
		}
	}
}

// want1 returns a claim of an amount on provider a, at any generation.
func want1(uuid string, amount int) ConsumerClaim {
	claim := want(uuid, 0)
	if amount > 0 {
		claim = want(uuid, 0, "a", amount)
	}
	claim.AnyGeneration = true
	return claim
}

func amountOf(claim ConsumerClaim) int {
	if len(claim.Allocations) == 0 {
		return 0
	}
	return int(claim.Allocations[0].Resources[0].Amount)
}

func pathsOf(refusals []Refusal) (paths []string) {
	for _, refusal := range refusals {
		paths = append(paths, refusal.Path)
	}
	return paths
}

func compareHolds(t *testing.T, l *Ledger, m holdModel, uuids []string) {
	t.Helper()
	if used := l.Provider("a").Inventories["GOLD"].Used; used != int64(m.used()) {
		t.Fatalf("%d units are used, want %d", used, m.used())
	}
	for _, uuid := range uuids {
		is, expected := l.Consumer(uuid), m[uuid]
		got := fmt.Sprint(is.Generation > 0, is.ExpiresAt != nil, is.HasEnded)
		if want := fmt.Sprint(expected.amount > 0, expected.isHeld, expected.hasEnded); got != want {
			t.Fatalf("consumer %s: exists, is held, has ended: %s, want %s", uuid, got, want)
		}
	}
}

func TestConfirmationNamesEachProblem(t *testing.T) {
	t.Parallel()
	const uuid = "aaaaaaaa-0000-4000-8000-000000000001"
	for _, c := range []struct {
		consumers []string
		want      string
	}{
		{nil, "[input.consumers: must name at least one consumer]"},
		{[]string{uuid}, "[]"},
		{[]string{uuid, "x", uuid},
			"[input.consumers[1]: must be a UUID input.consumers[2]: duplicate uuid " + uuid + "]"},
		{slices.Repeat([]string{uuid}, 1001), ""},
	} {
		problems := (&Confirmation{Consumers: c.consumers}).Validate("input")
		if got := fmt.Sprint(problems); c.want != "" && got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
		if len(c.consumers) > 1000 && (len(problems) == 0 || problems[0].Path != "input.consumers") {
			t.Errorf("%d consumers: %v", len(c.consumers), problems)
		}
	}
}

func TestHoldForHasBounds(t *testing.T) {
	t.Parallel()
	for seconds, ok := range map[int]bool{-1: false, 0: false, 1: true, MaxHold: true, MaxHold + 1: false} {
		p := Placing{HoldFor: &seconds,
			Consumers: []NewConsumer{{UUID: "aaaaaaaa-0000-4000-8000-000000000001", ProjectID: "p", UserID: "u"}}}
		if problems := p.Validate("input"); (len(problems) == 0) != ok {
			t.Errorf("%d seconds: %v", seconds, problems)
		}
	}
}
