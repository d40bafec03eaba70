package sync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
	"github.com/cadastre-dev/cadastre/origin"
)

// use is an amount of a class of a provider.
type use struct{ provider, class string }

// followAllocations reads the allocations of all providers, and writes those of
// the servers and migrations of the cloud that differ. One whose own page has none
// loses its allocations. Limits are for servers: all migrations end.
func (p *Pass) followAllocations(ctx context.Context, _ string, result *Result) error {
	service, err := p.Cloud.serviceOf(p.Kind)
	if err != nil {
		return err
	}
	there, err := readAllocations(ctx, service, p.Kind, p.Progress)
	if err != nil {
		return err
	}
	own, err := p.origins(ctx, servers)
	if err != nil {
		return err
	}
	all, err := p.origins(ctx, migrations)
	if err != nil {
		return err
	}
	maps.Copy(all, own)
	stored := map[string]*client.Consumer{}
	for one, err := range client.Consumers(ctx, p.Server, nil, nil, new(1000)) {
		if err != nil {
			return err
		}
		if _, isOfCloud := all[one.Uuid]; isOfCloud {
			stored[one.Uuid] = one
		}
	}
	maps.DeleteFunc(there, func(consumer string, _ map[use]int) bool { _, isOfCloud := all[consumer]; return !isOfCloud })
	result.Seen = len(there)
	changed := changedConsumers(there, stored, result)
	present, absent, ended := withoutAllocations(there, stored, own)
	if result.SyncCounts.Absent = len(absent); p.refuses(result, present) {
		for _, consumer := range absent {
			result.note(origin.Refused, consumer, own[consumer].name)
		}
		absent = nil
	}
	return p.writeAllocations(ctx, service, slices.Concat(ended, absent, changed), stored, all, result)
}

// changedConsumers returns the consumers whose allocations differ from those that
// are stored, and counts the others.
func changedConsumers(there map[string]map[use]int, stored map[string]*client.Consumer, result *Result) (changed []string) {
	for _, consumer := range slices.Sorted(maps.Keys(there)) {
		if is := stored[consumer]; is != nil && maps.Equal(usesOf(is), there[consumer]) {
			result.Unchanged++
		} else {
			changed = append(changed, consumer)
		}
	}
	return changed
}

// withoutAllocations returns the number of stored servers, and the stored servers
// and migrations that Placement's lists lack.
func withoutAllocations(there map[string]map[use]int, stored map[string]*client.Consumer, own map[string]linked) (present int, absent, ended []string) {
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

// readAllocations returns what each consumer has of each provider.
func readAllocations(ctx context.Context, service *endpoint, kind Kind, progress func(things int)) (map[string]map[use]int, error) {
	rows, err := readList(ctx, service, kind, kind.lists[0], func(int) {})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind.Name, err)
	}
	there := map[string]map[use]int{}
	for _, one := range rows {
		provider := one.text("uuid")
		answer, err := get(ctx, service, service.ServiceURL("resource_providers", provider, "allocations"))
		if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("read the allocations of %s: %w", provider, err)
		}
		for consumer, of := range row(answer).objects("allocations") {
			if there[consumer] == nil {
				there[consumer] = map[use]int{}
			}
			resources := of.object("resources")
			for class := range resources {
				there[consumer][use{provider, class}] = resources.number(class)
			}
		}
		progress(1)
	}
	return there, nil
}

// usesOf returns what a consumer has.
func usesOf(consumer *client.Consumer) map[use]int {
	uses := map[use]int{}
	for _, one := range consumer.Allocations {
		uses[use{one.Provider.Uuid, one.ResourceClass}] = int(one.Used)
	}
	return uses
}

// writeAllocations gives consumers the allocations of their own pages. One that
// the server refuses does not stop the others.
func (p *Pass) writeAllocations(ctx context.Context, service *endpoint, consumers []string, stored map[string]*client.Consumer, own map[string]linked, result *Result) error {
	var refused []error
	for _, consumer := range consumers {
		answer, err := get(ctx, service, service.ServiceURL("allocations", consumer))
		if err != nil {
			return errors.Join(append(refused, fmt.Errorf("read the allocations of %s: %w", consumer, err))...)
		}
		is := stored[consumer]
		claim, uses := claimOf(consumer, answer)
		if is == nil && len(uses) == 0 {
			continue // deleted meanwhile
		}
		if is != nil && maps.Equal(usesOf(is), uses) {
			result.Unchanged++ // it moved while it was read
			continue
		}
		if is != nil {
			claim.Generation = optional.Value(is.Generation)
		}
		if len(uses) == 0 {
			claim.ProjectId, claim.UserId = is.ProjectId, is.UserId
		}
		if !p.DryRun {
			_, err = client.SetAllocations(ctx, p.Server, &client.SetAllocationsInput{Consumers: []*client.ConsumerAllocationsInput{claim}, AsFound: optional.Value(true)})
		}
		switch {
		case err != nil && client.Code(err) == "":
			return errors.Join(append(refused, err)...)
		case err != nil:
			refused = append(refused, fmt.Errorf("consumer %s: %w", consumer, err))
		case is == nil:
			result.Created++
			result.note(origin.Created, consumer, own[consumer].name)
		case len(uses) == 0:
			result.Deleted++
			result.note(origin.Deleted, consumer, own[consumer].name)
		default:
			result.Updated++
			result.note(origin.Updated, consumer, own[consumer].name, "allocations")
		}
	}
	return errors.Join(refused...)
}

// claimOf returns the allocations of the own page of a consumer, in two forms.
func claimOf(consumer string, answer row) (claim *client.ConsumerAllocationsInput, uses map[use]int) {
	claim, uses = &client.ConsumerAllocationsInput{Uuid: consumer, ProjectId: answer.text("project_id"), UserId: answer.text("user_id"),
		Allocations: []*client.ProviderAllocationInput{}}, map[use]int{}
	of := answer.objects("allocations")
	for _, provider := range slices.Sorted(maps.Keys(of)) {
		one := &client.ProviderAllocationInput{Provider: provider}
		resources := of[provider].object("resources")
		for _, class := range slices.Sorted(maps.Keys(resources)) {
			uses[use{provider, class}] = resources.number(class)
			one.Resources = append(one.Resources, &client.ResourceAmountInput{ResourceClass: class, Amount: resources.number(class)})
		}
		claim.Allocations = append(claim.Allocations, one)
	}
	return claim, uses
}
