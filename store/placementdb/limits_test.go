package placementdb_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/internal/patience"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store"
	"github.com/cadastre-dev/cadastre/store/storetest"
)

// limitedTrait is a trait that limits name.
const limitedTrait = "HW_CPU_X86_AVX"

// setLimits sets limits of VCPU for a project: of all providers, and of those
// with limitedTrait. A negative one is none.
func setLimits(s *store.Store, project string, all, traited int64) ([]*placement.Limit, error) {
	input := placement.ProjectLimits{ProjectID: project}
	if all >= 0 {
		input.Limits = append(input.Limits, placement.NewLimit{ResourceClass: "VCPU", Amount: all})
	}
	if traited >= 0 {
		input.Limits = append(input.Limits,
			placement.NewLimit{ResourceClass: "VCPU", Trait: new(limitedTrait), Amount: traited})
	}
	return s.SetLimits(storetest.AsAdmin(), input)
}

// giveTrait gives a provider the limitedTrait alone.
func giveTrait(t testing.TB, s *store.Store, provider int) {
	t.Helper()
	_, _, err := s.SetProviderTraits(storetest.AsAdmin(),
		placement.ProviderTraits{Provider: storetest.UUID(provider), Traits: []string{limitedTrait}})
	if err != nil {
		t.Fatal(err)
	}
}

// vcpus is the claim of a consumer for an amount of VCPU of a provider, at any
// generation; 0 clears the consumer.
func vcpus(project string, consumer, provider int, amount int64) placement.ConsumerClaim {
	claim := placement.ConsumerClaim{UUID: storetest.UUID(consumer),
		ProjectID: project, UserID: "u", AnyGeneration: true}
	if amount > 0 {
		claim.Allocations = []placement.ProviderAllocation{{Provider: storetest.UUID(provider),
			Resources: []placement.Amount{{ResourceClass: "VCPU", Amount: amount}}}}
	}
	return claim
}

func setVCPUs(ctx context.Context, s *store.Store, claims ...placement.ConsumerClaim) error {
	_, err := s.SetAllocations(ctx, placement.Claim{Consumers: claims})
	return err
}

// told describes limits with their use.
func told(limits []*placement.Limit) string {
	var text []string
	for _, l := range limits {
		trait := ""
		if l.Trait != nil {
			trait = " " + *l.Trait
		}
		text = append(text,
			fmt.Sprintf("%s %s%s: %d of %d, %d held", l.ProjectID, l.ResourceClass, trait, l.Used, l.Amount, l.Held))
	}
	return strings.Join(text, "; ")
}

// TestLimitsOfAProject claims, holds and places within the limits of a project
// and beyond, by each mutation.
func TestLimitsOfAProject(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 2)
		giveTrait(t, s, 0)
		if err := setVCPUs(storetest.AsAdmin(), s, vcpus("p", 100, 0, 4), vcpus("q", 101, 0, 3)); err != nil {
			t.Fatal(err)
		}
		set, err := setLimits(s, "p", 8, 2)
		if want := "p VCPU: 4 of 8, 0 held; p VCPU HW_CPU_X86_AVX: 4 of 2, 0 held"; err != nil || told(set) != want {
			t.Fatalf("the limits are %s, %v; want %s", told(set), err, want)
		}
		refused := func(what string, err error, field, message string) {
			t.Helper()
			problems := problem.InError(err)
			if !errors.Is(err, problem.ErrQuotaExceeded) || len(problems) != 1 ||
				problems[0].Field != field || problems[0].Message != message {
				t.Errorf("%s: %v", what, err)
			}
		}
		refused("more on the trait", setVCPUs(storetest.AsAdmin(), s, vcpus("p", 102, 1, 1), vcpus("p", 100, 0, 5)),
			"input.consumers[1].allocations",
			`project "p" may use 2 VCPU on providers with HW_CPU_X86_AVX: 4 are used, 1 more requested`)
		if err := setVCPUs(storetest.AsAdmin(), s, vcpus("p", 100, 0, 3), vcpus("p", 102, 1, 2)); err != nil {
			t.Errorf("a claim that lowers one use and keeps below the other limit: %v", err)
		}
		refused("into the project", setVCPUs(storetest.AsAdmin(), s, vcpus("p", 101, 1, 4)),
			"input.consumers[0].allocations",
			`project "p" may use 8 VCPU: 5 are used, 4 more requested`)
		_, _, _, err = s.Reshape(storetest.AsAdmin(),
			placement.Reshape{Consumers: []placement.ConsumerClaim{vcpus("p", 102, 1, 6)},
				Inventories: []placement.ProviderInventories{{
					Provider: storetest.UUID(1),
					Inventories: []placement.Inventory{{ResourceClass: "VCPU", Total: 40, MinUnit: 1, MaxUnit: 40,
						StepSize: 1, AllocationRatio: 1}}}}})
		refused("a reshape", err, "input.consumers[0].allocations",
			`project "p" may use 8 VCPU: 5 are used, 4 more requested`)
		if _, err := hold(s, placement.MaxHold, 103); err == nil {
			p := placing(placement.Pack, 3, 104)
			p.Request.Unsuffixed.Forbidden = []string{limitedTrait}
			outcomes, _, err := s.Place(storetest.AsAdmin(), p, false)
			if got, want := placed(outcomes),
				`input.consumers[0] project "p" may use 8 VCPU: 6 are used, 3 more requested`; err != nil ||
				got != want {
				t.Errorf("placed %s, %v; want %s", got, err, want)
			}
		}
		limits, err := s.Limits(storetest.AsAdmin(), "p")
		if want := "p VCPU: 6 of 8, 1 held; p VCPU HW_CPU_X86_AVX: 3 of 2, 0 held"; err != nil || told(limits) != want {
			t.Errorf("the limits are %s, %v; want %s", told(limits), err, want)
		}
	})
}

// TestTheFirstLimitsAreThoseOfTheFirstProjects compares the first limits of many
// projects with the limits of each, for every number of them.
func TestTheFirstLimitsAreThoseOfTheFirstProjects(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 2)
		giveTrait(t, s, 0)
		var all []string
		for i, amounts := range [][2]int64{{8, 2}, {-1, -1}, {5, -1}, {-1, 3}, {9, 9}} {
			project := fmt.Sprint("p", i)
			if err := setVCPUs(storetest.AsAdmin(), s, vcpus(project, 100+i, i%2, 1)); err != nil {
				t.Fatal(err)
			}
			if _, err := setLimits(s, project, amounts[0], amounts[1]); err != nil {
				t.Fatal(err)
			}
			all = append(all, project)
		}
		member := access.WithViewer(t.Context(),
			access.Viewer{UserID: "u", ProjectID: "p4", Roles: []string{access.RoleMember}})
		for _, ctx := range []context.Context{storetest.AsAdmin(), member} {
			for most := range 9 {
				var want []*placement.Limit
				isAll := true
				for _, project := range all {
					limits, err := s.Limits(ctx, project)
					if err != nil {
						t.Fatal(err)
					}
					if isAll = isAll && len(want)+len(limits) <= most; isAll {
						want = append(want, limits...)
					}
				}
				found, hasAll, err := s.FirstLimits(ctx, most)
				got := lists.Map(found, func(l placement.Limit) *placement.Limit { return &l })
				if err != nil || told(got) != told(want) || hasAll != isAll {
					t.Errorf("the first %d are %s, %v, %v; want %s, %v", most,
						told(got), hasAll, err, told(want), isAll)
				}
			}
		}
	})
}

// TestPlaceManyWithinALimit places four consumers below a limit that admits two:
// all or none, each, and dry runs.
func TestPlaceManyWithinALimit(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 3)
		if _, err := setLimits(s, "p", 5, -1); err != nil {
			t.Fatal(err)
		}
		refused := func(consumer int) string {
			return fmt.Sprintf(`input.consumers[%d] project "p" may use 5 VCPU: 4 are used, 2 more requested`, consumer)
		}
		p := placing(placement.Pack, 2, 100, 101, 102, 103)
		first := fmt.Sprintf("-; -; %s; %s", refused(2), refused(3))
		some := fmt.Sprintf("%s; %s; %s; %s", on(2, 0), on(2, 0), refused(2), refused(3))
		for _, c := range []struct {
			atomic, dryRun bool
			want           string
		}{{true, true, first}, {true, false, first}, {false, true, some}, {false, false, some}} {
			p.Atomic = c.atomic
			outcomes, full, err := s.Place(storetest.AsAdmin(), p, c.dryRun)
			if got := placed(outcomes); err != nil || full != nil || !strings.HasPrefix(got, c.want) {
				t.Errorf("atomic %v, dry run %v: %s, %v, %v; want %s", c.atomic,
					c.dryRun, got, full != nil, err, c.want)
			}
		}
		if consumerOn(t, s, 101) == nil || consumerOn(t, s, 102) != nil {
			t.Error("other consumers were placed than the outcomes say")
		}
	})
}

// TestLimitsAndRoles reads, sets and exceeds limits as viewers of several
// roles.
func TestLimitsAndRoles(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 1)
		if _, err := setLimits(s, "p", 1, -1); err != nil {
			t.Fatal(err)
		}
		as := func(project, role string, overrides map[string][]string) context.Context {
			policy, err := access.NewPolicy(overrides)
			if err != nil {
				t.Fatal(err)
			}
			return access.WithViewer(t.Context(),
				access.Viewer{UserID: "u", ProjectID: project, Roles: []string{role}}.WithPolicy(policy))
		}
		for _, c := range []struct {
			project, role string
			sees          bool
		}{{"p", "reader", true}, {"q", "reader", false}, {"q", "member", false}, {"q", "service", true}} {
			limits, err := s.Limits(as(c.project, c.role, nil), "p")
			if err != nil || len(limits) == 1 != c.sees {
				t.Errorf("a %s of %s sees %s, %v", c.role, c.project, told(limits), err)
			}
		}
		if _, err := s.Limits(as("p", "nothing", nil), "p"); !errors.Is(err, problem.ErrForbidden) {
			t.Errorf("without a role: %v", err)
		}
		if _, err := s.SetLimits(as("p", "service", nil),
			placement.ProjectLimits{ProjectID: "p"}); !errors.Is(err, problem.ErrForbidden) {
			t.Errorf("a service sets limits: %v", err)
		}
		exceeding := map[string][]string{"limits.exceed": {"service"}}
		for _, c := range []struct {
			role      string
			overrides map[string][]string
			may       bool
		}{{"admin", nil, false}, {"service", nil, false}, {"admin", exceeding, false}, {"service", exceeding, true}} {
			ctx := as("q", c.role, c.overrides)
			err := setVCPUs(ctx, s, vcpus("p", 100, 0, 2))
			outcomes, _, placing := s.Place(ctx, placing(placement.Pack, 2, 101), true)
			if isPlaced := outcomes[0].Row != nil; (err == nil) != c.may || isPlaced != c.may || placing != nil {
				t.Errorf("a %s with %v: %v, %s, %v", c.role, c.overrides, err, placed(outcomes), placing)
			}
		}
	})
}

// TestLimitsFollowARenamedClass renames a class with limits of two projects. One
// of them has a limit of the new name already.
func TestLimitsFollowARenamedClass(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := storetest.AsAdmin()
		before := []placement.NewLimit{{ResourceClass: "CUSTOM_A", Amount: 1}, {ResourceClass: "CUSTOM_B", Amount: 2}}
		for _, limit := range before {
			if _, err := s.CreateResourceClass(ctx, limit.ResourceClass); err != nil {
				t.Fatal(err)
			}
		}
		for project, limits := range map[string][]placement.NewLimit{"p": before[:1], "q": before} {
			if _, err := s.SetLimits(ctx, placement.ProjectLimits{ProjectID: project, Limits: limits}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.DeleteResourceClass(ctx, "CUSTOM_B"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.RenameResourceClass(ctx, "CUSTOM_A", "CUSTOM_B"); err != nil {
			t.Fatal(err)
		}
		for project, want := range map[string]string{"p": "p CUSTOM_B: 0 of 1, 0 held",
			"q": "q CUSTOM_A: 0 of 1, 0 held; q CUSTOM_B: 0 of 2, 0 held"} {
			if limits, err := s.Limits(ctx, project); err != nil || told(limits) != want {
				t.Errorf("%s, %v; want %s", told(limits), err, want)
			}
		}
		reader := access.WithViewer(t.Context(), access.Viewer{UserID: "u", ProjectID: "p", Roles: []string{"reader"}})
		if _, err := s.RenameResourceClass(reader, "CUSTOM_B", "CUSTOM_B"); !errors.Is(err, problem.ErrForbidden) {
			t.Errorf("a reader renames a class to its name: %v", err)
		}
	})
}

// TestClaimsOfOtherRolesShareTransactions places as a member, who may do nothing
// else, and claims as a service. Often a place without a candidate leads the
// transaction of a claim.
func TestClaimsOfOtherRolesShareTransactions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 1)
		policy, err := access.NewPolicy(map[string][]string{"place": {"member"}})
		if err != nil {
			t.Fatal(err)
		}
		as := func(role string) context.Context {
			return access.WithViewer(t.Context(),
				access.Viewer{UserID: role, ProjectID: "p", Roles: []string{role}}.WithPolicy(policy))
		}
		var group sync.WaitGroup
		for client := range 8 {
			group.Go(func() {
				for range 20 {
					if err := setVCPUs(as("service"), s, vcpus("p", client, 0, 1)); err != nil {
						t.Errorf("a service: %v", err)
					}
				}
			})
			group.Go(func() {
				for range 20 {
					outcomes, _, err := s.Place(as("member"), placing(placement.Pack, 1_000, 100+client), false)
					if err != nil || outcomes[0].Row != nil {
						t.Errorf("a member: %s, %v", placed(outcomes), err)
					}
				}
			})
		}
		group.Wait()
	})
}

// TestAllocationsAsFound sets allocations beyond a capacity and a limit, as a sync
// finds them.
func TestAllocationsAsFound(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		hotProviders(t, s, 1)
		if _, err := setLimits(s, "p", 1, -1); err != nil {
			t.Fatal(err)
		}
		found := func(ctx context.Context, claims ...placement.ConsumerClaim) error {
			_, err := s.SetAllocations(ctx, placement.Claim{Consumers: claims, AsFound: true})
			return err
		}
		if err := found(storetest.AsAdmin(), vcpus("p", 100, 0, 1_000_000), vcpus("p", 101, 0, 7)); err != nil {
			t.Errorf("beyond the capacity: %v", err)
		}
		limits, err := s.Limits(storetest.AsAdmin(), "p")
		if want := "p VCPU: 1000007 of 1, 0 held"; err != nil || told(limits) != want {
			t.Errorf("the limits are %s, %v; want %s", told(limits), err, want)
		}
		if err := setVCPUs(storetest.AsAdmin(), s,
			vcpus("q", 102, 0, 1)); !errors.Is(err, problem.ErrCapacityExceeded) {
			t.Errorf("a claim on a full provider: %v", err)
		}
		if err := found(storetest.AsAdmin(), vcpus("p", 103, 99, 1)); err == nil {
			t.Error("an unknown provider is accepted")
		}
		policy, err := access.NewPolicy(map[string][]string{"sync": {"admin"}})
		if err != nil {
			t.Fatal(err)
		}
		service := access.Viewer{UserID: "u", ProjectID: "q", Roles: []string{access.RoleService}}
		if err := found(access.WithViewer(t.Context(), service.WithPolicy(policy)),
			vcpus("q", 102, 0, 1)); !errors.Is(err, problem.ErrForbidden) {
			t.Errorf("a service that may not sync: %v", err)
		}
		if err := found(access.WithViewer(t.Context(), service), vcpus("p", 100, 0, 2_000_000)); err != nil {
			t.Errorf("a service: %v", err)
		}
		if err := setVCPUs(storetest.AsAdmin(), s, vcpus("p", 100, 0, 0), vcpus("p", 101, 0, 0),
			vcpus("q", 102, 0, 1)); err != nil {
			t.Errorf("a claim in place of all: %v", err)
		}
	})
}

// TestRefusedLimitsAreNotStored sets limits with several problems.
func TestRefusedLimitsAreNotStored(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if _, err := setLimits(s, "p", 7, -1); err != nil {
			t.Fatal(err)
		}
		_, err := s.SetLimits(storetest.AsAdmin(), placement.ProjectLimits{ProjectID: "p", Limits: []placement.NewLimit{
			{ResourceClass: "VCPU", Amount: -1}, {ResourceClass: "VCPUS"},
			{ResourceClass: "VCPU", Trait: new("HW_CPU_X86_AVY")}}})
		var fields []string
		for _, one := range problem.InError(err) {
			fields = append(fields, one.Field)
		}
		if want := []string{"input.limits[0].limit", "input.limits[1].resourceClass",
			"input.limits[2].trait"}; !slices.Equal(fields, want) {
			t.Errorf("the problems are %v", err)
		}
		if limits, err := s.Limits(storetest.AsAdmin(), "p"); err != nil || told(limits) != "p VCPU: 0 of 7, 0 held" {
			t.Errorf("the limits are %s, %v", told(limits), err)
		}
		if limits, err := setLimits(s, "p", -1, -1); err != nil || len(limits) != 0 {
			t.Errorf("after removing all: %s, %v", told(limits), err)
		}
	})
}

// limitOp is an operation on a project: a claim of a consumer for an amount of a
// provider, 0 for its release, or new limits.
type limitOp struct {
	project            string
	consumer, provider int
	amount             int64
	set                bool
	all, traited       int64
}

// limitState is a project in the sequential model. Even providers have the trait
// of the limit traited. A negative limit is none.
type limitState struct {
	consumers    map[int]limitOp
	all, traited int64
}

func (s limitState) used() (all, traited int64) {
	for _, op := range s.consumers {
		if all += op.amount; op.provider%2 == 0 {
			traited += op.amount
		}
	}
	return all, traited
}

// step returns the expected answer and the next state.
func (s limitState) step(op limitOp) (string, limitState) {
	all, traited := s.used()
	if op.set {
		s.all, s.traited = op.all, op.traited
		return limitsTold(s, all, traited), s
	}
	next := limitState{maps.Clone(s.consumers), s.all, s.traited}
	_, exists := s.consumers[op.consumer]
	if next.consumers[op.consumer] = op; op.amount == 0 {
		delete(next.consumers, op.consumer)
		return fmt.Sprint("released ", exists), next
	}
	thenAll, thenTraited := next.used()
	switch {
	case s.all >= 0 && thenAll > all && thenAll > s.all:
		return fmt.Sprintf("project %q may use %d VCPU: %d are used, %d more requested",
			op.project, s.all, all, thenAll-all), s
	case s.traited >= 0 && thenTraited > traited && thenTraited > s.traited:
		return fmt.Sprintf("project %q may use %d VCPU on providers with %s: %d are used, %d more requested",
			op.project, s.traited, limitedTrait, traited, thenTraited-traited), s
	}
	return "claimed", next
}

func limitsTold(s limitState, all, traited int64) (text string) {
	if s.all >= 0 {
		text = fmt.Sprintf("%d of %d", all, s.all)
	}
	if s.traited >= 0 {
		text += fmt.Sprintf(", %d of %d", traited, s.traited)
	}
	return text
}

// doLimited runs an operation on a server.
func doLimited(s *store.Store, op limitOp) (string, error) {
	switch {
	case op.set:
		limits, err := setLimits(s, op.project, op.all, op.traited)
		state, used := limitState{all: -1, traited: -1}, [2]int64{}
		for _, l := range limits {
			if l.Trait == nil {
				state.all, used[0] = l.Amount, l.Used
			} else {
				state.traited, used[1] = l.Amount, l.Used
			}
		}
		return limitsTold(state, used[0], used[1]), err
	case op.amount == 0:
		_, err := s.DeleteAllocations(storetest.AsAdmin(), storetest.UUID(op.consumer))
		if errors.Is(err, problem.ErrNotFound) {
			return "released false", nil
		}
		return "released true", err
	}
	err := setVCPUs(storetest.AsAdmin(), s, vcpus(op.project, op.consumer, op.provider, op.amount))
	if errors.Is(err, problem.ErrQuotaExceeded) {
		return problem.InError(err)[0].Message, nil
	}
	return "claimed", err
}

func randomLimitOp(d *rand.Rand) limitOp {
	n := d.IntN(2)
	op := limitOp{project: []string{"p", "q"}[n], consumer: 100 + 10*n + d.IntN(6),
		provider: 2*n + d.IntN(2), amount: d.Int64N(4)}
	if d.IntN(8) == 0 {
		return limitOp{project: op.project, set: true, all: d.Int64N(13) - 1, traited: d.Int64N(8) - 1}
	}
	return op
}

// TestLimitedClaimsAreLinearizable lets clients of one and of two servers claim
// and release for two projects, and set their limits. Some order of the
// operations must explain each answer, with the use that refusals name.
func TestLimitedClaimsAreLinearizable(t *testing.T) {
	t.Parallel()
	model := porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := map[string][]porcupine.Operation{}
			for _, operation := range history {
				project := operation.Input.(limitOp).project
				parts[project] = append(parts[project], operation)
			}
			return slices.Collect(maps.Values(parts))
		},
		Init: func() any { return limitState{map[int]limitOp{}, -1, -1} },
		Step: func(state, input, output any) (bool, any) {
			answer, next := state.(limitState).step(input.(limitOp))
			return answer == output.(string), next
		},
		Equal: func(a, b any) bool {
			one, other := a.(limitState), b.(limitState)
			return one.all == other.all && one.traited == other.traited && maps.Equal(one.consumers, other.consumers)
		},
	}
	onServers(t, func(t *testing.T, servers []*store.Store) {
		hotProviders(t, servers[0], 4)
		giveTrait(t, servers[0], 0)
		giveTrait(t, servers[0], 2)
		const clients, operations = 8, 30
		histories := make([][]porcupine.Operation, clients)
		started := time.Now()
		var working sync.WaitGroup
		var refused atomic.Int64
		for client := range clients {
			working.Go(func() {
				d := rand.New(rand.NewPCG(7, uint64(client)))
				for range operations {
					op := randomLimitOp(d)
					called := time.Since(started)
					answer, err := doLimited(servers[client%len(servers)], op)
					if err != nil {
						t.Errorf("%+v: %v", op, err)
						return
					}
					if strings.HasPrefix(answer, "project") {
						refused.Add(1)
					}
					histories[client] = append(histories[client],
						porcupine.Operation{ClientId: client, Input: op, Call: int64(called),
							Output: answer, Return: int64(time.Since(started))})
				}
			})
		}
		working.Wait()
		result := porcupine.CheckOperationsTimeout(model, slices.Concat(histories...), patience.Of(t, 30*time.Second))
		if result == porcupine.Illegal || refused.Load() == 0 {
			t.Errorf("no order explains the answers, %d of them refusals: %s", refused.Load(), result)
		}
	})
}

// TestConcurrentClaimsUpToALimit claims for many consumers of a project at the
// same time, each from another provider. Exactly as many are accepted as the
// limit admits.
func TestConcurrentClaimsUpToALimit(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, servers []*store.Store) {
		const claims, limit = 16, 5
		hotProviders(t, servers[0], claims)
		if _, err := setLimits(servers[0], "p", limit, -1); err != nil {
			t.Fatal(err)
		}
		for round := range 15 {
			var working sync.WaitGroup
			var accepted atomic.Int64
			for i := range claims {
				working.Go(func() {
					switch err := setVCPUs(storetest.AsAdmin(), servers[i%len(servers)], vcpus("p", 100+i, i, 1)); {
					case err == nil:
						accepted.Add(1)
					case !errors.Is(err, problem.ErrQuotaExceeded):
						t.Error(err)
					}
				})
			}
			working.Wait()
			if accepted.Load() != limit {
				t.Errorf("round %d: %d claims were accepted, want %d", round, accepted.Load(), limit)
			}
			for i := range claims {
				if _, err := servers[0].DeleteAllocations(storetest.AsAdmin(), storetest.UUID(100+i)); err != nil &&
					!errors.Is(err, problem.ErrNotFound) {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestNoPlaceExceedsALimit places and claims from 32 clients on a nearly full
// cloud of 100 hosts, for two projects with limits and one without. No client
// sees a conflict, no host is overallocated, and no project ever uses more than
// its limits.
func TestNoPlaceExceedsALimit(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, servers []*store.Store) {
		const hosts, clients = 100, 32
		nearlyFull(t, servers[0], hosts)
		limits := map[string][2]int64{"p": {60, 25}, "q": {40, -1}}
		for project, of := range limits {
			if _, err := setLimits(servers[0], project, of[0], of[1]); err != nil {
				t.Fatal(err)
			}
		}
		showAll(t, servers)
		watch := func() {
			for project := range limits {
				shown, err := servers[0].Limits(storetest.AsAdmin(), project)
				for _, limit := range shown {
					if limit.Used > limit.Amount {
						t.Errorf("beyond quota: %s", told(shown))
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		}
		var working sync.WaitGroup
		var counts refusalCounts
		for client := range clients {
			working.Go(func() {
				d := rand.New(rand.NewPCG(3, uint64(client)))
				for i := range 12 {
					counts.place(t, servers[(client+i)%len(servers)], d, 1000*(client+1)+i)
					if client == 0 {
						watch()
					}
				}
			})
		}
		working.Wait()
		watch()
		isCounted(t, servers[0])
		if counts.limited.Load() == 0 || counts.full.Load() == 0 {
			t.Error("no place was refused by a limit, or none for lack of room")
		}
		t.Logf("refused: %d by a limit, %d without room", counts.limited.Load(), counts.full.Load())
	})
}

func showAll(t *testing.T, servers []*store.Store) {
	for _, s := range servers {
		if err := s.ShowWorld(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// nearlyFull creates hosts with room for two. Half of them have the trait.
func nearlyFull(t *testing.T, s *store.Store, hosts int) {
	hotProviders(t, s, hosts)
	var fill []placement.ConsumerClaim
	for host := range hosts {
		fill = append(fill, vcpus("full", 90_000+host, host, hotCapacity-2))
	}
	if err := setVCPUs(storetest.AsAdmin(), s, fill...); err != nil {
		t.Fatal(err)
	}
	for host := range hosts / 2 {
		giveTrait(t, s, host)
	}
}

// refusalCounts are the numbers of refused places.
type refusalCounts struct{ limited, full atomic.Int64 }

// place places a consumer of a random project, and deletes some again.
func (c *refusalCounts) place(t *testing.T, s *store.Store, d *rand.Rand, consumer int) {
	p := placing([]placement.CandidateOrder{placement.Random, placement.Pack, placement.Spread}[d.IntN(3)],
		1+d.Int64N(3), consumer)
	p.Consumers[0].ProjectID = []string{"p", "q", "r"}[d.IntN(3)]
	outcomes, _, err := s.Place(storetest.AsAdmin(), p, false)
	if err != nil {
		t.Errorf("place: %v", err)
		return
	}
	for _, one := range outcomes[0].Problems {
		switch {
		case errors.Is(one.Kind, problem.ErrQuotaExceeded):
			c.limited.Add(1)
		case errors.Is(one.Kind, problem.ErrCapacityExceeded):
			c.full.Add(1)
		default:
			t.Errorf("place: %v", one)
		}
	}
	if outcomes[0].Row != nil && d.IntN(3) == 0 {
		if _, err := s.DeleteAllocations(storetest.AsAdmin(), storetest.UUID(consumer)); err != nil {
			t.Errorf("release: %v", err)
		}
	}
}
