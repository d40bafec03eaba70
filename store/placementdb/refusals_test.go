package placementdb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// lastRefusal describes the last refusal of a consumer: its message, and the
// nearest providers of its explanation.
func lastRefusal(t testing.TB, ctx context.Context, s *store.Store, consumer int) string {
	t.Helper()
	ctx, reading := s.WithReading(ctx, store.Each)
	defer reading.End()
	reading.Spread()
	refusal, err := s.LastRefusal(ctx, storetest.UUID(consumer))
	if err != nil {
		t.Fatal(err)
	}
	if refusal == nil {
		return ""
	}
	var text []string
	for _, one := range refusal.Problems {
		text = append(text, one.Field+" "+one.Message)
	}
	if of := refusal.Explanation(worldOf(t, s)); of != nil {
		text = append(text, fmt.Sprintf("%d considered, %d steps", of.Considered, len(of.Steps)))
		for _, miss := range of.Nearest {
			text = append(text, fmt.Sprintf("%s lacks %v", miss.Provider.Name, miss.Missing))
		}
	}
	return refusal.ProjectID + ": " + strings.Join(text, ", ")
}

// TestTheLastRefusalIsKept refuses places for lack of room and by a limit, and
// places a consumer afterwards.
func TestTheLastRefusalIsKept(t *testing.T) {
	t.Parallel()
	storetest.Each(t, keepsLastRefusals)
	t.Run("a standby that does not replay", func(t *testing.T) {
		t.Parallel()
		pair := storetest.PostgresPair(t)
		s := pair.OpenSpread(t, store.Options{})
		hotProviders(t, s, 2)
		pair.Level(t)
		if _, err := storetest.Database(t, pair.Standby).Exec("SELECT pg_wal_replay_pause()"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Place(storetest.AsAdmin(), placing(placement.Pack, hotCapacity+1, 100), false); err != nil {
			t.Fatal(err)
		}
		if lastRefusal(t, storetest.AsAdmin(), s, 100) == "" {
			t.Error("the refusal is missing")
		}
	})
}

func keepsLastRefusals(t *testing.T, s *store.Store) {
	hotProviders(t, s, 2)
	place := func(amount int64, dryRun bool, consumers ...int) {
		t.Helper()
		p := placing(placement.Pack, amount, consumers...)
		p.Atomic = false
		if _, _, err := s.Place(storetest.AsAdmin(), p, dryRun); err != nil {
			t.Fatal(err)
		}
	}
	has := func(consumer int, want string) {
		t.Helper()
		if got := lastRefusal(t, storetest.AsAdmin(), s, consumer); got != want {
			t.Errorf("the last refusal of %d is %q, want %q", consumer, got, want)
		}
	}
	full := func(i int, amount, free int64) string {
		return fmt.Sprintf("p: input.consumers[%d] no provider has room for the request, 2 considered, 2 steps, hot 0 lacks [{VCPU %d}], hot 1 lacks [{VCPU %d}]", i, amount-free, amount-hotCapacity)
	}
	place(hotCapacity+1, true, 100)
	has(100, "")
	place(hotCapacity+1, false, 100, 101)
	has(100, full(0, hotCapacity+1, hotCapacity))
	has(101, full(1, hotCapacity+1, hotCapacity))
	place(hotCapacity+3, false, 100)
	has(100, full(0, hotCapacity+3, hotCapacity))
	place(hotCapacity, false, 102, 100)
	has(100, "")
	has(102, "")
	if _, err := s.DeleteAllocations(storetest.AsAdmin(), storetest.UUID(100)); err != nil {
		t.Fatal(err)
	}
	has(100, "") // the success deleted it
	if _, err := setLimits(s, "p", hotCapacity, -1); err != nil {
		t.Fatal(err)
	}
	place(2, false, 101)
	has(101, `p: input.consumers[0] project "p" may use 20 VCPU: 20 are used, 2 more requested`)
	if err := setVCPUs(storetest.AsAdmin(), s, vcpus("q", 101, 1, 1)); err != nil {
		t.Fatal(err)
	}
	has(101, "")
	if _, err := s.DeleteAllocations(storetest.AsAdmin(), storetest.UUID(101)); err != nil {
		t.Fatal(err)
	}
	has(101, "")
}

// TestAnUnseenRefusalIsNone reads a refusal as viewers of several projects, and
// after the deletion of a provider that it names.
func TestAnUnseenRefusalIsNone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 2)
		if _, _, err := s.Place(storetest.AsAdmin(), placing(placement.Pack, hotCapacity+1, 100), false); err != nil {
			t.Fatal(err)
		}
		as := func(project, role string) context.Context {
			return access.WithViewer(t.Context(), access.Viewer{UserID: "u", ProjectID: project, Roles: []string{role}})
		}
		if own := lastRefusal(t, as("p", "reader"), s, 100); !strings.Contains(own, "hot 0") {
			t.Errorf("the project reads %q", own)
		}
		if other := lastRefusal(t, as("q", "member"), s, 100); other != "" {
			t.Errorf("another project reads %q", other)
		}
		if _, err := s.LastRefusal(as("p", "none"), storetest.UUID(100)); !errors.Is(err, problem.ErrForbidden) {
			t.Errorf("without a role: %v", err)
		}
		if _, _, err := s.DeleteResourceProvider(storetest.AsAdmin(), storetest.UUID(0)); err != nil {
			t.Fatal(err)
		}
		if left := lastRefusal(t, storetest.AsAdmin(), s, 100); strings.Contains(left, "hot 0") ||
			!strings.Contains(left, "hot 1") {
			t.Errorf("after the deletion of a provider: %q", left)
		}
	})
}

// TestOldRefusalsAreSwept moves the clock of a server by a day: the refusal is
// not returned any more, and the sweep deletes its row.
func TestOldRefusalsAreSwept(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		var mu sync.Mutex
		now := time.Now()
		s, err := store.Open(t.Context(), store.Options{URL: url, Now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		hotProviders(t, s, 1)
		for step, want := range []int{1, 1, 0} {
			if step == 0 {
				if _, _, err := s.Place(storetest.AsAdmin(),
					placing(placement.Pack, hotCapacity+1, 100), false); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.SweepRefusals(t.Context()); err != nil {
				t.Fatal(err)
			}
			if rows := storetest.Rows(t, storetest.Database(t, url),
				`SELECT consumer FROM place_refusals`); len(rows) != want ||
				(lastRefusal(t, storetest.AsAdmin(), s, 100) != "") != (want > 0) {
				t.Errorf("step %d: %d rows, and %q; want %d", step, len(rows),
					lastRefusal(t, storetest.AsAdmin(), s, 100), want)
			}
			mu.Lock()
			now = now.Add(23*time.Hour + 59*time.Minute)
			mu.Unlock()
		}
	})
}

// TestARefusalIsBounded refuses a place whose explanation is long: its message is
// kept.
func TestARefusalIsBounded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 1)
		p := placing(placement.Pack, 1, 100)
		for i := range placement.MaxGroups {
			p.Request.Groups = append(p.Request.Groups,
				placement.Group{Suffix: fmt.Sprint("_", i),
					Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: 1}},
					RequiredAnySets: []placement.TraitSet{{AnyOf: []string{"HW_CPU_X86_AVX", "HW_CPU_X86_AVX2",
						"HW_CPU_X86_AVX512F", "HW_CPU_X86_AVX512BW", "HW_CPU_X86_AVX512CD"}}}})
		}
		if _, _, err := s.Place(storetest.AsAdmin(), p, false); err != nil {
			t.Fatal(err)
		}
		if got, want := lastRefusal(t, storetest.AsAdmin(), s, 100),
			"p: input.consumers[0] no provider has room for the request"; got != want {
			t.Errorf("the refusal is %.200q, want %q", got, want)
		}
	})
}
