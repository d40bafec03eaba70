package placement_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/cadastre-dev/cadastre/placement"
)

// eachRandom checks a law on random worlds and requests for a short time, and on
// 60 worlds however slow the machine is.
func eachRandom(t *testing.T, law func(t *testing.T, d *dice, providers []Provider, r *Request)) {
	t.Helper()
	t.Parallel()
	duration, start := soaks(t)/3, time.Now()
	for seed := uint64(1); seed <= 60 || time.Since(start) < duration; seed++ {
		d := &dice{bytes: randomBytes(seed+1<<40, 600)}
		providers := d.providers()
		law(t, d, providers, d.request(len(providers)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func every(t *testing.T, w *World, r *Request) []Candidate {
	t.Helper()
	page, err := Candidates(w, r, nil, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return page.Candidates
}

func keys(candidates []Candidate) map[string]bool {
	set := map[string]bool{}
	for _, c := range candidates {
		set[render([]Candidate{c})] = true
	}
	return set
}

func TestStricterRequestNeverAddsCandidates(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		w := NewWorld(diceNames, providers)
		loose := keys(every(t, w, r))
		stricter := d.stricter(r)
		for key := range keys(every(t, w, &stricter)) {
			if !loose[key] {
				t.Errorf("new with the stricter request: %s\n%+v\n%+v\n%+v", key, providers, r, stricter)
			}
		}
	})
}

// stricter returns a request with one more constraint.
func (d *dice) stricter(r *Request) Request {
	stricter := *r
	stricter.Groups = slices.Clone(r.Groups)
	g := &stricter.Unsuffixed
	if len(r.Groups) > 0 && (d.chance(2) || len(g.Resources) == 0) {
		g = &stricter.Groups[d.roll(len(r.Groups))]
	}
	trait := diceTraits[d.roll(3)]
	switch d.roll(9) {
	case 8:
		stricter.Hosts = &Hosts{Filter: "some", Resources: []int64{linkOf(d.roll(4)), linkOf(d.roll(4))}}
		if r.Hosts != nil {
			stricter.Hosts.Resources = slices.DeleteFunc(stricter.Hosts.Resources, func(row int64) bool {
				return !slices.Contains(r.Hosts.Resources, row)
			})
		}
	case 0:
		g.RequiredAll = append(slices.Clone(g.RequiredAll), trait)
	case 1:
		g.RequiredAnySets = append(slices.Clone(g.RequiredAnySets), TraitSet{AnyOf: []string{trait, diceTraits[0]}})
	case 2:
		g.Forbidden = append(slices.Clone(g.Forbidden), trait)
	case 3:
		g.MemberOf = append(slices.Clone(g.MemberOf), AggregateFilter{AnyOf: []string{aggregateOf(d.roll(3))}})
	case 4:
		g.MemberOf = append(slices.Clone(g.MemberOf), AggregateFilter{NoneOf: []string{aggregateOf(d.roll(3))}})
	case 5:
		stricter.RootRequired = append(slices.Clone(r.RootRequired), trait)
	case 6:
		stricter.Policy = GroupPolicyIsolate
	case 7:
		if len(r.Groups) > 1 {
			stricter.SameSubtree = append(slices.Clone(r.SameSubtree),
				Subtree{Suffixes: []string{r.Groups[0].Suffix, r.Groups[1].Suffix}})
		}
	}
	return stricter
}

func TestMoreUseNeverAddsCandidates(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		before := keys(every(t, NewWorld(diceNames, providers), r))
		for i := range providers {
			providers[i].Inventories = slices.Clone(providers[i].Inventories)
			for k := range providers[i].Inventories {
				providers[i].Inventories[k].Used += int64(d.roll(2))
			}
		}
		for key := range keys(every(t, NewWorld(diceNames, providers), r)) {
			if !before[key] {
				t.Errorf("new with more use: %s", key)
			}
		}
	})
}

func TestOrderOfProvidersAndListsDoesNotMatter(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		want := render(every(t, NewWorld(diceNames, providers), r))
		shuffled := slices.Clone(providers)
		random := rand.New(rand.NewPCG(uint64(d.roll(256)), 1))
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		turned := *r
		turned.Groups = slices.Clone(r.Groups)
		slices.Reverse(turned.Groups)
		turned.Unsuffixed.Resources = slices.Clone(r.Unsuffixed.Resources)
		slices.Reverse(turned.Unsuffixed.Resources)
		w := NewWorld(diceNames, shuffled)
		if got := render(every(t, w, &turned)); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
		// A position of one request is valid for the other: they have the same
		// meaning.
		page, err := Candidates(w, r, nil, 1)
		if err != nil || len(page.Positions) == 0 {
			return
		}
		if _, err := Candidates(w, &turned, &page.Positions[0], 1); err != nil {
			t.Error(err)
		}
	})
}

// TestCheckAcceptsExactlyTheCandidates checks the candidates of a looser
// request against the stricter one.
func TestCheckAcceptsExactlyTheCandidates(t *testing.T) {
	eachRandom(t, func(t *testing.T, _ *dice, providers []Provider, r *Request) {
		loose := Request{SameSubtree: nil, Unsuffixed: Group{Resources: r.Unsuffixed.Resources}}
		for _, g := range r.Groups {
			loose.Groups = append(loose.Groups, Group{Suffix: g.Suffix, Resources: g.Resources})
		}
		w := NewWorld(diceNames, providers)
		valid := keys(every(t, w, r))
		tried, err := Candidates(w, &loose, nil, 200)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range append(tried.Candidates, every(t, w, r)...) {
			if err := Check(w, r, c); (err == nil) != valid[render([]Candidate{c})] {
				t.Errorf("Check says %v of %s\n%+v\n%+v", err, render([]Candidate{c}), providers, r)
			}
		}
	})
}

func TestCheckRefusesOtherAmountsAndMappings(t *testing.T) {
	t.Parallel()
	w := NewWorld(cloudNames, flatCloud(3))
	r := &Request{Unsuffixed: threeClasses(1), Groups: []Group{{Suffix: "1", Resources: amounts(Amount{"VCPU", 1})}}}
	good := every(t, w, r)[0]
	if err := Check(w, r, good); err != nil {
		t.Fatal(err)
	}
	other := numbered(2)
	for name, spoil := range map[string]func(c *Candidate){
		"more":            func(c *Candidate) { c.Allocations[0].Resources[0].Amount++ },
		"less":            func(c *Candidate) { c.Allocations[0].Resources[0].Amount-- },
		"nothing":         func(c *Candidate) { c.Allocations = nil },
		"twice":           func(c *Candidate) { c.Allocations = append(c.Allocations, c.Allocations[0]) },
		"unknown":         func(c *Candidate) { c.Mappings[1].Providers = []string{uuidOf(7)} },
		"no mapping":      func(c *Candidate) { c.Mappings = c.Mappings[:1] },
		"another mapping": func(c *Candidate) { c.Mappings[0].Providers = append(c.Mappings[0].Providers, other) },
		"a group not asked": func(c *Candidate) {
			c.Mappings = append(c.Mappings, Mapping{Suffix: "2", Providers: []string{other}})
		},
	} {
		c := Candidate{}
		for _, allocation := range good.Allocations {
			allocation.Resources = slices.Clone(allocation.Resources)
			c.Allocations = append(c.Allocations, allocation)
		}
		for _, mapping := range good.Mappings {
			mapping.Providers = slices.Clone(mapping.Providers)
			c.Mappings = append(c.Mappings, mapping)
		}
		spoil(&c)
		if err := Check(w, r, c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestWithEqualsNewWorld changes worlds at random (creates, edits, moves,
// deletes, stale states) and compares each with one built from scratch.
func TestWithEqualsNewWorld(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		state := map[string]Provider{}
		for _, p := range providers {
			state[p.UUID] = p
		}
		w := NewWorld(diceNames, providers)
		names := Names{Traits: slices.Clone(diceNames.Traits), ResourceClasses: diceNames.ResourceClasses}
		type version struct {
			world *World
			want  string
		}
		history := []version{{w, render(every(t, w, r))}}
		for step := range 6 {
			var update Update
			for range 1 + d.roll(3) {
				d.update(&update, state, step)
			}
			if d.chance(3) {
				name := fmt.Sprintf("CUSTOM_N%d", step)
				names.Traits = append(names.Traits, name)
				update.Added.Traits = []string{name}
			}
			if d.chance(5) && slices.Contains(names.Traits, "CUSTOM_N0") {
				names.Traits = slices.DeleteFunc(slices.Clone(names.Traits), func(n string) bool {
					return n == "CUSTOM_N0"
				})
				update.Removed.Traits = []string{"CUSTOM_N0"}
			}
			w = w.With(update)
			fresh := NewWorld(names, slices.Collect(maps.Values(state)))
			if difference := differenceOf(w, fresh); difference != "" {
				t.Fatalf("step %d: %s\nupdate %+v", step, difference, update)
			}
			if got, want := render(every(t, w, r)), render(every(t, fresh, r)); got != want {
				t.Fatalf("step %d: got\n%swant\n%s", step, got, want)
			}
			history = append(history, version{w, render(every(t, w, r))})
		}
		for i, v := range history {
			if got := render(every(t, v.world, r)); got != v.want {
				t.Fatalf("world %d changed under later ones", i)
			}
		}
	})
}

// update adds a random change of one provider to an update and to the state.
func (d *dice) update(update *Update, state map[string]Provider, step int) {
	uuid := uuidOf(d.roll(12))
	p, exists := state[uuid]
	switch {
	case !exists:
		p = d.content(Provider{UUID: uuid, Name: "p" + uuid[:8], Version: int64(step + 2)})
		p.Parent = d.parent(state, uuid)
	case d.chance(4):
		if slices.ContainsFunc(update.Providers, func(p Provider) bool { return p.UUID == uuid }) {
			return
		}
		delete(state, uuid)
		update.Deleted = append(update.Deleted, uuid)
		return
	case d.chance(3):
		p.Parent = d.parent(state, uuid)
	case d.chance(4):
		p.Name = fmt.Sprintf("q%d%s", step, uuid[:8])
	case d.chance(6):
		stale := d.content(p)
		stale.Version--
		update.Providers = append(update.Providers, stale)
		return
	default:
		p = d.content(p)
	}
	p.Version++
	state[uuid] = p
	update.Providers = append(update.Providers, p)
}

// parent chooses a parent that makes no loop, "", or rarely one that does not
// exist.
func (d *dice) parent(state map[string]Provider, of string) string {
	uuid := uuidOf(d.roll(14))
	for at := uuid; at != ""; at = state[at].Parent {
		if at == of {
			return ""
		}
	}
	return uuid
}

func TestReadersOfOldWorldsSeeNoWrites(t *testing.T) {
	t.Parallel()
	providers := flatCloud(600)
	w := NewWorld(cloudNames, providers)
	r := &Request{Unsuffixed: threeClasses(40)}
	want := render(every(t, w, r))
	var readers sync.WaitGroup
	for range 4 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for range 10 {
				if render(every(t, w, r)) != want {
					t.Error("the world changed while it was read")
				}
			}
		}()
	}
	next := w
	for i := range 500 {
		p := providers[i]
		p.Version++
		p.Inventories = []Inventory{stocked("VCPU", 64, 64)}
		next = next.With(Update{Providers: []Provider{p}, Deleted: []string{providers[599].UUID}})
	}
	readers.Wait()
	if next.Len() != 599 {
		t.Errorf("%d providers", next.Len())
	}
}

// TestEveryCandidateCanBeClaimed claims each candidate as a whole on the
// unchanged world.
func TestEveryCandidateCanBeClaimed(t *testing.T) {
	eachRandom(t, func(t *testing.T, _ *dice, providers []Provider, r *Request) {
		w := NewWorld(diceNames, providers)
		for _, c := range every(t, w, r) {
			held := map[string]*LedgerProvider{}
			for _, allocation := range c.Allocations {
				p, _ := w.Provider(allocation.Provider)
				held[p.UUID] = &LedgerProvider{Inventories: map[string]Inventory{}}
				for _, inventory := range p.Inventories {
					held[p.UUID].Inventories[inventory.ResourceClass] = inventory
				}
			}
			claim := &Claim{Consumers: []ConsumerClaim{{UUID: numbered(1), ProjectID: "p", UserID: "u",
				Allocations: c.Allocations, Mappings: c.Mappings}}}
			if problems := claim.Validate("input"); len(problems) > 0 {
				t.Errorf("%s: %v", render([]Candidate{c}), problems)
			}
			if refusals := NewLedger(map[string]*LedgerConsumer{}, held).
				Claim(claim, "input", knownIn(w)); len(refusals) > 0 {
				t.Errorf("%s: %v", render([]Candidate{c}), refusals)
			}
		}
	})
}

func TestPagesConcatenateToTheWhole(t *testing.T) {
	eachRandom(t, func(t *testing.T, d *dice, providers []Provider, r *Request) {
		w := NewWorld(diceNames, providers)
		whole := every(t, w, r)
		size := 1 + d.roll(7) + len(whole)/20
		if joined := everyPage(t, w, r, size); render(joined) != render(whole) {
			t.Errorf("pages of %d hold\n%s\nthe whole is\n%s", size, render(joined), render(whole))
		}
	})
}

// everyPage reads page by page, each from the string of the last position.
func everyPage(t *testing.T, w *World, r *Request, size int) []Candidate {
	t.Helper()
	var joined []Candidate
	var after *Position
	for {
		page, err := Candidates(w, r, after, size)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Candidates) > size || page.HasNext && len(page.Candidates) < size {
			t.Fatalf("a page of %d for %d", len(page.Candidates), size)
		}
		joined = append(joined, page.Candidates...)
		if !page.HasNext {
			return joined
		}
		position, err := ParsePosition(page.Positions[len(page.Positions)-1].String())
		if err != nil {
			t.Fatal(err)
		}
		after = &position
	}
}
