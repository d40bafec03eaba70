package sync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/origin"
)

// use is the key of an amount: a resource class of a provider.
type use struct{ provider, class string }

// followAllocations reads the allocations of all providers, and writes the
// changed allocations of the cloud's servers and migrations. A consumer whose
// own page is empty loses its allocations. Limits on absent things concern only
// servers, since all migrations end.
func (p *Pass) followAllocations(ctx context.Context, _ string, result *Result) error {
	service, err := p.Cloud.serviceOf(ctx, p.Kind)
	if err != nil {
		return err
	}
	own, err := p.origins(ctx, servers, nil)
	if err != nil {
		return err
	}
	all, err := p.origins(ctx, migrations, nil)
	if err != nil {
		return err
	}
	maps.Copy(all, own)
	there, err := p.readAllocations(ctx, service, all)
	if err != nil {
		return err
	}
	stored := map[string]*client.Consumer{}
	for one, err := range client.Consumers(ctx, p.Server, nil, nil, new(1000)) {
		if err != nil {
			return err
		}
		if _, isOfCloud := all[one.Uuid]; isOfCloud {
			stored[one.Uuid] = one
		}
	}
	maps.DeleteFunc(there, func(consumer string, _ map[use]int) bool {
		_, isOfCloud := all[consumer]
		return !isOfCloud
	})
	result.Seen = len(there)
	changed := p.changedConsumers(there, stored, all, result)
	present, absent, ended := withoutAllocations(there, stored, own)
	if result.SyncCounts.Absent = len(absent); p.refuses(result, present) {
		for _, consumer := range absent {
			result.note(origin.Refused, consumer, own[consumer].name)
		}
		absent = nil
	}
	return p.writeAllocations(ctx, service, slices.Concat(ended, absent, changed), stored, all, result)
}

// changedConsumers returns the consumers whose allocations or project differ
// from the stored ones, and then the other rewritten ones. It counts the rest as
// unchanged.
func (p *Pass) changedConsumers(there map[string]map[use]int, stored map[string]*client.Consumer, all map[string]linked,
	result *Result) []string {
	var changed, rewritten []string
	for _, consumer := range slices.Sorted(maps.Keys(there)) {
		switch is := stored[consumer]; {
		case is == nil || is.ProjectId != all[consumer].project || !maps.Equal(usesOf(is), there[consumer]):
			changed = append(changed, consumer)
		case p.before.rewritten[consumer]:
			rewritten = append(rewritten, consumer)
		default:
			result.Unchanged++
		}
	}
	return append(changed, rewritten...)
}

// withoutAllocations returns the stored consumers without allocations in
// Placement: servers as absent, and migrations as ended. present is the number
// of all stored consumers that are servers.
func withoutAllocations(there map[string]map[use]int, stored map[string]*client.Consumer,
	own map[string]linked) (present int, absent, ended []string) {
	for _, consumer := range slices.Sorted(maps.Keys(stored)) {
		_, isServer := own[consumer]
		if isServer {
			present++
		}
		switch {
		case there[consumer] != nil:
		case isServer:
			absent = append(absent, consumer)
		default:
			ended = append(ended, consumer)
		}
	}
	return present, absent, ended
}

// readAllocations returns the amounts of each consumer by provider and class.
// It reads three kinds of providers again: providers with a new generation,
// other providers of consumers whose amounts changed there, and providers of
// projects that may have released something. Such a project has other
// foreignUnits than in the last run.
func (p *Pass) readAllocations(ctx context.Context, service *endpoint,
	all map[string]linked) (map[string]map[use]int, error) {
	reader := allocationReader{service: service, memory: &p.before,
		before: p.before.providers, moved: map[string]bool{}, rewritten: map[string]bool{}}
	maps.Copy(reader.rewritten, p.before.rewritten)
	p.before.runs++
	providers, err := p.readProviders(ctx, service, p.Kind, reader.before, p.before.runs, reader.read)
	if err != nil {
		return nil, err
	}
	p.before.providers = byUUID(providers)
	maps.DeleteFunc(reader.rewritten, func(consumer string, _ bool) bool { return all[consumer].resource == "" })
	p.before.rewritten = reader.rewritten
	if err := reader.readThoseOf(ctx, providers, func(consumer string) bool {
		return reader.moved[consumer]
	}); err != nil {
		return nil, err
	}
	used, err := projectUse(ctx, service, providers, all)
	if err != nil {
		return nil, err
	}
	isSuspect := map[string]bool{}
	for project, units := range foreignUnits(used, providers, all) {
		before, isKnown := p.before.foreign[project]
		isSuspect[project] = isKnown && !maps.Equal(before, units)
	}
	err = reader.readThoseOf(ctx, providers, func(consumer string) bool { return isSuspect[all[consumer].project] })
	if err != nil {
		return nil, err
	}
	p.before.foreign = foreignUnits(used, providers, all)
	there := map[string]map[use]int{}
	for _, one := range providers {
		for consumer, units := range one.allocations {
			for class, amount := range units {
				if there[consumer] == nil {
					there[consumer] = map[use]int{}
				}
				there[consumer][use{one.uuid, class}] = amount
			}
		}
	}
	return there, nil
}

// allocationReader reads the allocations of providers in one run. It notes the
// consumers whose amounts on a provider have changed since the last run, and
// the consumers with another generation.
type allocationReader struct {
	service          *endpoint
	memory           *memory
	before           map[string]*readProvider
	mu               sync.Mutex
	moved, rewritten map[string]bool
}

func (r *allocationReader) read(ctx context.Context, of *readProvider) error {
	if err := of.readAllocations(ctx, r.service, r.memory.runs); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for consumer, units := range of.allocations {
		known := r.before[of.uuid]
		if known == nil || !maps.Equal(known.allocations[consumer], units) {
			r.moved[consumer] = true
		}
		if isTurn(of.uuid, r.memory.runs) && r.memory.runs <= rounds ||
			known != nil && known.generations[consumer] != of.generations[consumer] {
			r.rewritten[consumer] = true
		}
	}
	return nil
}

// readThoseOf reads the allocations of each provider with a consumer for which
// is returns true, unless this run has read them.
func (r *allocationReader) readThoseOf(ctx context.Context, providers []*readProvider,
	is func(consumer string) bool) error {
	return each(ctx, providers, func(ctx context.Context, _ int, of *readProvider) error {
		if of.run == r.memory.runs {
			return nil
		}
		for consumer := range of.allocations {
			if is(consumer) {
				return of.readAllocations(ctx, r.service, r.memory.runs)
			}
		}
		return nil
	})
}

// readAllocations reads the amounts of each consumer on a provider by class,
// and the generations of the consumers.
func (of *readProvider) readAllocations(ctx context.Context, service *endpoint, run int) error {
	answer, err := get(ctx, service, service.ServiceURL("resource_providers", of.uuid, "allocations"), "allocations")
	if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return err
	}
	// A provider that was deleted meanwhile has no allocations.
	of.run, of.allocations, of.generations = run, map[string]map[string]int{}, map[string]int{}
	for consumer, has := range row(answer).objects("allocations") {
		of.allocations[consumer] = has.object("resources").numbers()
		of.generations[consumer] = has.number("consumer_generation")
	}
	return nil
}

// numbers returns all fields as whole numbers, 0 for any other value.
func (r row) numbers() map[string]int {
	numbers := make(map[string]int, len(r))
	for field := range r {
		numbers[field] = r.number(field)
	}
	return numbers
}

// projectUse returns the units in use as Placement counts them, by project and
// class, for the projects of the cloud's known consumers.
func projectUse(ctx context.Context, service *endpoint, providers []*readProvider,
	all map[string]linked) (map[string]map[string]int, error) {
	projects := slices.Collect(maps.Keys(foreignUnits(nil, providers, all)))
	answers := make([]map[string]int, len(projects))
	err := each(ctx, projects, func(ctx context.Context, i int, project string) error {
		answer, err := get(ctx, service, service.ServiceURL("usages?project_id="+url.QueryEscape(project)), "usages")
		answers[i] = row(answer).object("usages").numbers()
		return err
	})
	used := map[string]map[string]int{}
	for i, project := range projects {
		used[project] = answers[i]
	}
	return used, err
}

// foreignUnits returns the units in use that no known consumer of the cloud
// has, by project and class, for the projects of the known consumers. It leaves
// out 0.
func foreignUnits(used map[string]map[string]int, providers []*readProvider,
	all map[string]linked) map[string]map[string]int {
	foreign := map[string]map[string]int{}
	for _, one := range providers {
		for consumer, units := range one.allocations {
			of, isOfCloud := all[consumer]
			if !isOfCloud {
				continue
			}
			if foreign[of.project] == nil {
				foreign[of.project] = map[string]int{}
				maps.Copy(foreign[of.project], used[of.project])
			}
			for class, amount := range units {
				foreign[of.project][class] -= amount
			}
		}
	}
	for _, units := range foreign {
		maps.DeleteFunc(units, func(_ string, amount int) bool { return amount == 0 })
	}
	return foreign
}

// usesOf returns the amounts of a stored consumer.
func usesOf(consumer *client.Consumer) map[use]int {
	uses := map[use]int{}
	for _, one := range consumer.Allocations {
		uses[use{one.Provider.Uuid, one.ResourceClass}] = int(one.Used)
	}
	return uses
}

// maxConsumers is the maximum number of consumers in one request.
const maxConsumers = 100

// writeAllocations reads each consumer's own page in Placement, and writes its
// allocations. The error names the consumers that the server refuses. They do
// not stop the others.
func (p *Pass) writeAllocations(ctx context.Context, service *endpoint, consumers []string,
	stored map[string]*client.Consumer, own map[string]linked, result *Result) error {
	var refused []error
	for some := range slices.Chunk(consumers, maxConsumers) {
		pages := make([]row, len(some))
		err := each(ctx, some, func(ctx context.Context, i int, consumer string) (err error) {
			address := service.ServiceURL("allocations", consumer)
			if pages[i], err = get(ctx, service, address, "allocations"); err != nil {
				return fmt.Errorf("read the allocations of %s: %w", consumer, err)
			}
			return nil
		})
		if err != nil {
			return errors.Join(append(refused, err)...)
		}
		var claims []*client.ConsumerAllocationsInput
		for i, consumer := range some {
			if claim := claimFor(consumer, pages[i], stored[consumer], result); claim != nil {
				claims = append(claims, claim)
			}
		}
		errs, err := p.setAllocations(ctx, claims)
		if err != nil {
			return errors.Join(append(refused, err)...)
		}
		for _, consumer := range some {
			delete(p.before.rewritten, consumer)
		}
		for i, claim := range claims {
			refused = p.noteClaim(claim, errs[i], stored[claim.Uuid], own[claim.Uuid].name, refused, result)
		}
	}
	return errors.Join(refused...)
}

// noteClaim notes the outcome of a claim in result. It returns refused, with
// the error of the claim if it has one.
func (p *Pass) noteClaim(claim *client.ConsumerAllocationsInput, err error, is *client.Consumer, name string,
	refused []error, result *Result) []error {
	switch {
	case err != nil:
		p.before.rewritten[claim.Uuid] = true
		return append(refused, fmt.Errorf("consumer %s: %w", claim.Uuid, err))
	case is == nil:
		result.Created++
		result.note(origin.Created, claim.Uuid, name)
	case len(claim.Allocations) == 0:
		result.Deleted++
		result.note(origin.Deleted, claim.Uuid, name)
	default:
		result.Updated++
		result.note(origin.Updated, claim.Uuid, name, "allocations")
	}
	return refused
}

// setAllocations makes the claims together or, if the server refuses that, each
// alone. A dry run makes no claim. refused has the server's refusal of each
// claim, nil for one that succeeded. err is any other error.
func (p *Pass) setAllocations(ctx context.Context,
	claims []*client.ConsumerAllocationsInput) (refused []error, err error) {
	refused = make([]error, len(claims))
	if p.DryRun || len(claims) == 0 {
		return refused, nil
	}
	_, err = client.SetAllocations(ctx, p.Server,
		&client.SetAllocationsInput{Consumers: claims, AsFound: optional.Value(true)})
	if err == nil || client.Code(err) == "" {
		return refused, err
	}
	if len(claims) == 1 {
		refused[0] = err
		return refused, nil
	}
	for i := range claims {
		one, err := p.setAllocations(ctx, claims[i:i+1])
		if err != nil {
			return nil, err
		}
		refused[i] = one[0]
	}
	return refused, nil
}

// claimFor returns a claim with the owner and the allocations of the consumer's
// own page, or nil if the claim would change nothing. A claim without
// allocations has the stored owner.
func claimFor(consumer string, page row, is *client.Consumer, result *Result) *client.ConsumerAllocationsInput {
	claim, uses := claimOf(consumer, page)
	if is == nil && len(uses) == 0 {
		return nil // deleted meanwhile
	}
	if is != nil && maps.Equal(usesOf(is), uses) && is.ProjectId == claim.ProjectId && is.UserId == claim.UserId {
		result.Unchanged++ // it moved meanwhile, or its thing has another project
		return nil
	}
	if is != nil {
		claim.Generation = optional.Value(is.Generation)
	}
	if len(uses) == 0 {
		claim.ProjectId, claim.UserId = is.ProjectId, is.UserId
	}
	return claim
}

// claimOf returns the allocations of the consumer's own page, as a claim and as
// amounts.
func claimOf(consumer string, answer row) (claim *client.ConsumerAllocationsInput, uses map[use]int) {
	claim, uses = &client.ConsumerAllocationsInput{Uuid: consumer,
		ProjectId: answer.text("project_id"), UserId: answer.text("user_id"),
		Allocations: []*client.ProviderAllocationInput{}}, map[use]int{}
	of := answer.objects("allocations")
	for _, provider := range slices.Sorted(maps.Keys(of)) {
		one := &client.ProviderAllocationInput{Provider: provider}
		resources := of[provider].object("resources")
		for _, class := range slices.Sorted(maps.Keys(resources)) {
			uses[use{provider, class}] = resources.number(class)
			one.Resources = append(one.Resources,
				&client.ResourceAmountInput{ResourceClass: class, Amount: resources.number(class)})
		}
		claim.Allocations = append(claim.Allocations, one)
	}
	return claim, uses
}
