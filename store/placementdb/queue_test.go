package placementdb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// asOperator returns the context of an administrator.
func asOperator(user string) context.Context {
	return access.WithViewer(context.Background(),
		access.Viewer{UserID: user, ProjectID: "operations", Roles: []string{access.RoleAdmin}})
}

// onHot returns a claim of a consumer on the first hot provider.
func onHot(consumer int, generation *int64, amount int64) placement.Claim {
	return placement.Claim{Consumers: []placement.ConsumerClaim{{UUID: storetest.UUID(consumer), ProjectID: "p",
		UserID: "u", Generation: generation,
		Allocations: []placement.ProviderAllocation{{Provider: storetest.UUID(0),
			Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: amount}}}}}}}
}

// TestClaimsAndReleasesThatShareATransaction has several viewers' claims and
// releases decided in one transaction. Each is checked after the earlier ones,
// fails independently, and has its own answer, event and replay. Only the
// accepted ones have committed a change.
func TestClaimsAndReleasesThatShareATransaction(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 1)
		const full, kept, other, nobody = 100, 101, 102, 103
		for consumer, amount := range map[int]int64{full: hotCapacity - 1, kept: 1} {
			if _, err := s.SetAllocations(storetest.AsAdmin(), onHot(consumer, nil, amount)); err != nil {
				t.Fatal(err)
			}
		}
		before, _ := worldOf(t, s).Provider(storetest.UUID(0))
		once := func(user string) context.Context {
			ctx, done, err := s.MakeOnce(asOperator(user), "key of "+user, "fingerprint")
			if err != nil {
				t.Fatal(err)
			}
			done() // the test sends requests one after the other
			return ctx
		}
		contexts, readings := map[string]context.Context{}, map[string]*store.Reading{}
		for _, user := range []string{"ann", "bob", "cyd", "dan", "eve", "fay", "gus"} {
			contexts[user], readings[user] = s.WithReading(once(user), store.Each)
			defer readings[user].End()
		}
		told := map[string]string{}
		answers := make(chan [2]string, 2*len(contexts))
		release := func(user string, consumer int) func() {
			return func() {
				released, err := s.DeleteAllocations(contexts[user], storetest.UUID(consumer))
				answers <- [2]string{user, toldOf(err, released)}
			}
		}
		claim := func(user string, claim placement.Claim) func() {
			return func() {
				consumers, err := s.SetAllocations(contexts[user], claim)
				answers <- [2]string{user, toldOf(err, consumers...)}
			}
		}
		stale := int64(7)
		calls := []func(){
			claim("ann", onHot(other, nil, hotCapacity-1)), // no capacity yet
			release("bob", full),
			claim("cyd", onHot(other, nil, hotCapacity-1)),
			release("dan", nobody),
			claim("eve", onHot(kept, &stale, 1)),
			release("fay", other),
			claim("gus", onHot(full, nil, 2)), // a new consumer with the same uuid
		}
		want := map[string]string{
			"ann": "full", "bob": describe(full, 19, 1), "cyd": describe(other, 19, 1), "dan": "absent", "eve": "stale",
			"fay": describe(other, 19, 1), "gus": describe(full, 2, 1),
		}
		s.DecideTogether(t, calls...)
		for range calls {
			answer := <-answers
			told[answer[0]] = answer[1]
		}
		for user, answer := range want {
			if told[user] != answer {
				t.Errorf("%s was told %q, want %q", user, told[user], answer)
			}
			if got, want := readings[user].HasCommitted(), strings.Contains(answer, "generation"); got != want {
				t.Errorf("%s has committed a change: %v, want %v; %q", user, got, want, answer)
			}
		}
		after, _ := worldOf(t, s).Provider(storetest.UUID(0))
		if after.Version != before.Version+1 || after.Inventories[0].Used != 3 {
			t.Errorf("the provider has version %d after %d, and %d used", after.Version,
				before.Version, after.Inventories[0].Used)
		}
		checkEvents(t, s, "deleteAllocations full bob", "setAllocations other cyd",
			"deleteAllocations other fay", "setAllocations full gus")
		isCounted(t, s)

		// Retries get the same answers.
		for _, i := range []int{1, 2, 5, 6} {
			calls[i]()
			answer := <-answers
			if answer[1] != want[answer[0]] {
				t.Errorf("%s was told %q when asking again, want %q", answer[0], answer[1], want[answer[0]])
			}
		}
		if again, _ := worldOf(t, s).Provider(storetest.UUID(0)); again.Version != after.Version {
			t.Error("what was sent again was made again")
		}
	})
}

// describe describes a consumer like toldOf.
func describe(consumer int, amount, generation int64) string {
	return holding{amount, generation}.of(storetest.UUID(consumer))
}

// toldOf returns the answer to a claim or a release as a string.
func toldOf(err error, consumers ...*placement.Consumer) string {
	answer, err := answerOf(err, consumers...)
	if err != nil {
		return err.Error()
	}
	return answer.refusal + answer.held
}

// checkEvents checks the last events of the audit log.
func checkEvents(t *testing.T, s *store.Store, want ...string) {
	t.Helper()
	names := strings.NewReplacer(storetest.UUID(100), "full", storetest.UUID(102), "other")
	var got []string
	err := s.Query(t.Context(), s.Pool,
		`SELECT action, key, user_id FROM audit_events WHERE user_id <> 'ada' ORDER BY uuid`,
		func(rows *sql.Rows) error {
			var action, key, user string
			err := rows.Scan(&action, &key, &user)
			got = append(got, names.Replace(action+" "+key+" "+user))
			return err
		})
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the events are %q, want %q: %v", got, want, err)
	}
}

// TestAConsumerThatComesAgainIsNew releases a consumer and claims for its uuid
// in one transaction. The consumer must then have a new creation time.
func TestAConsumerThatComesAgainIsNew(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 1)
		first, err := s.SetAllocations(storetest.AsAdmin(), onHot(100, nil, 1))
		if err != nil {
			t.Fatal(err)
		}
		var released *placement.Consumer
		var again []*placement.Consumer
		errs := make(chan error, 2)
		s.DecideTogether(t, func() {
			var err error
			released, err = s.DeleteAllocations(storetest.AsAdmin(), storetest.UUID(100))
			errs <- err
		}, func() {
			var err error
			again, err = s.SetAllocations(storetest.AsAdmin(), onHot(100, nil, 2))
			errs <- err
		})
		if err := errors.Join(<-errs, <-errs); err != nil {
			t.Fatal(err)
		}
		if !released.CreatedAt.Equal(first[0].CreatedAt) || !released.UpdatedAt.Equal(first[0].UpdatedAt) {
			t.Errorf("released %+v, which was %+v", released, first[0])
		}
		now, err := s.ConsumerByUUID(storetest.AsAdmin(), storetest.UUID(100))
		if err != nil || !now.CreatedAt.After(first[0].CreatedAt) ||
			!now.CreatedAt.Equal(again[0].CreatedAt) || now.Generation != 1 {
			t.Errorf("there is %+v, created as %+v after %+v: %v", now, again[0], first[0], err)
		}
	})
}
