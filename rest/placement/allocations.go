package placement

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/rest"
	"github.com/cadastre-dev/cadastre/rest/placement/search"
)

// incomplete is the project and the user of claims without them, before 1.8.
const incomplete = "00000000-0000-0000-0000-000000000000"

// unknownType is the type of consumers without one.
const unknownType = "unknown"

// typeOf returns the type of a consumer as the API shows it.
func typeOf(of *string) string { return *cmp.Or(of, new(unknownType)) }

func (d *door) allocations(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	uuid := canonical(r.Path["consumer"])
	consumers, err := d.ConsumersByUUID(ctx, []string{uuid})
	if err != nil {
		return rest.Answer{}, err
	}
	held, err := d.AllocationsOfConsumers(ctx, []string{uuid})
	if err != nil {
		return rest.Answer{}, err
	}
	world, err := d.World(ctx)
	if err != nil {
		return rest.Answer{}, err
	}
	byProvider := usedBy(held[uuid], func(a *placement.Allocation) string { return a.Provider })
	for uuid, of := range byProvider {
		provider, _ := world.Provider(uuid)
		of["generation"] = provider.Generation
	}
	shown, modified := rest.Object{"allocations": byProvider}, rest.Now()
	if consumer := consumers[uuid]; consumer != nil && len(byProvider) > 0 {
		modified = consumer.UpdatedAt
		shown.Set(r, 12, "project_id", consumer.ProjectID)
		shown.Set(r, 12, "user_id", consumer.UserID)
		shown.Set(r, 28, "consumer_generation", consumer.Generation)
		shown.Set(r, 38, "consumer_type", typeOf(consumer.Type))
	}
	return rest.Answer{Body: shown, Modified: modified}, nil
}

// usedBy groups the amounts of allocations by a key, in the form of the API.
func usedBy(list []*placement.Allocation, key func(*placement.Allocation) string) map[string]rest.Object {
	groups := map[string]rest.Object{}
	for _, one := range list {
		of := groups[key(one)]
		if of == nil {
			of = rest.Object{"resources": map[string]int64{}}
			groups[key(one)] = of
		}
		of["resources"].(map[string]int64)[one.ResourceClass] = one.Used
	}
	return groups
}

func canonical(text string) string {
	if uuid, ok := placement.CanonicalUUID(text); ok {
		return uuid
	}
	return text
}

// providerAllocations refuses more allocations than an answer can have. One has at
// least 9 bytes, and its consumer 54, with at most one for each inventory.
func (d *door) providerAllocations(ctx context.Context, r *rest.Request, p *placement.Provider) (rest.Answer, error) {
	most := min(r.Most(9+54/max(1, len(p.Inventories))), math.MaxInt32)
	all, err := rest.All(most+1, func(request page.Request) (page.Page[*placement.Allocation], error) {
		pages, err := d.AllocationsOfProviders(ctx, []string{p.UUID}, request)
		return pages[p.UUID], err
	})
	if err == nil && len(all) > most {
		err = r.TooLong()
	}
	if err != nil {
		return rest.Answer{}, err
	}
	p, err = d.find(ctx, r) // at the instant of the allocations
	if err != nil {
		return rest.Answer{}, err
	}
	byConsumer := usedBy(all, func(a *placement.Allocation) string { return a.Consumer })
	consumers, err := d.ConsumersByUUID(ctx, slices.Sorted(maps.Keys(byConsumer)))
	if err != nil {
		return rest.Answer{}, err
	}
	modified := rest.Now()
	if len(consumers) > 0 {
		modified = time.Time{}
	}
	for uuid, consumer := range consumers {
		modified = later(modified, consumer.UpdatedAt)
		byConsumer[uuid].Set(r, 28, "consumer_generation", consumer.Generation)
	}
	shown := rest.Object{"allocations": byConsumer, "resource_provider_generation": p.Generation}
	return rest.Answer{Body: shown, Modified: modified}, nil
}

// consumerBody is the allocations of a consumer: before 1.12 a list, since then an object.
type consumerBody struct {
	Allocations json.RawMessage     `json:"allocations"`
	ProjectID   *string             `json:"project_id"`
	UserID      *string             `json:"user_id"`
	Generation  *int64              `json:"consumer_generation"`
	Type        *string             `json:"consumer_type"`
	Mappings    map[string][]string `json:"mappings"`
}

// claimed has the amounts that a consumer uses of one provider, in a body.
type claimed struct {
	Provider struct {
		UUID string `json:"uuid"`
	} `json:"resource_provider"`
	Resources map[string]int64 `json:"resources"`
}

// claim returns the claim of a consumer. Before 1.28 the claim replaces any generation.
func (b *consumerBody) claim(r *rest.Request, consumer string) (placement.ConsumerClaim, error) {
	claim := placement.ConsumerClaim{UUID: canonical(consumer), ProjectID: incomplete, UserID: incomplete,
		Type: b.Type, Generation: b.Generation, AnyGeneration: !r.Since(28)}
	set(&claim.ProjectID, b.ProjectID)
	set(&claim.UserID, b.UserID)
	byProvider := map[string]claimed{}
	var list []claimed
	var form any = &byProvider
	if !r.Since(12) {
		form = &list
	}
	if err := json.Unmarshal(b.Allocations, form); err != nil {
		return claim, rest.Bad("JSON does not validate: an amount is not a whole number of at most 63 bits")
	}
	for _, one := range list {
		byProvider[one.Provider.UUID] = one
	}
	for _, provider := range slices.Sorted(maps.Keys(byProvider)) {
		amounts := search.Amounts(byProvider[provider].Resources)
		claim.Allocations = append(claim.Allocations,
			placement.ProviderAllocation{Provider: canonical(provider), Resources: amounts})
	}
	for _, suffix := range slices.Sorted(maps.Keys(b.Mappings)) {
		claim.Mappings = append(claim.Mappings,
			placement.Mapping{Suffix: suffix, Providers: lists.Map(b.Mappings[suffix], canonical)})
	}
	return claim, nil
}

func (d *door) putAllocations(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	consumer := r.Path["consumer"]
	if _, ok := placement.CanonicalUUID(consumer); !ok {
		return rest.Answer{}, rest.Bad("Malformed consumer_uuid: %s", consumer)
	}
	var body consumerBody
	if err := r.ReadJSON(allocationSchema(r.Version, true), &body); err != nil {
		return rest.Answer{}, err
	}
	return d.replace(ctx, r, map[string]consumerBody{consumer: body})
}

func (d *door) postAllocations(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	var bodies map[string]consumerBody
	if err := r.ReadJSON(rest.Each(uuidPattern, allocationSchema(r.Version, false), 1), &bodies); err != nil {
		return rest.Answer{}, err
	}
	return d.replace(ctx, r, bodies)
}

// claimsOf returns the claims of several consumers, in the order of their uuids.
func claimsOf(r *rest.Request, bodies map[string]consumerBody) (claims []placement.ConsumerClaim, err error) {
	for _, consumer := range slices.Sorted(maps.Keys(bodies)) {
		body := bodies[consumer]
		claim, err := body.claim(r, consumer)
		if err != nil {
			return nil, err
		}
		claims = append(claims, claim)
	}
	return claims, nil
}

// replace replaces the allocations of some consumers.
func (d *door) replace(ctx context.Context, r *rest.Request, bodies map[string]consumerBody) (rest.Answer, error) {
	claims, err := claimsOf(r, bodies)
	if err != nil {
		return rest.Answer{}, err
	}
	_, err = d.SetAllocations(ctx, placement.Claim{Consumers: claims})
	return nothing, d.claimFault(ctx, err, claims)
}

// claimFault returns the fault of refused claims, and other errors unchanged.
func (d *door) claimFault(ctx context.Context, err error, claims []placement.ConsumerClaim) error {
	switch {
	case errors.Is(err, problem.ErrConcurrentUpdate):
		return d.generationFault(ctx, err, claims)
	case errors.Is(err, problem.ErrCapacityExceeded):
		detail := rest.MessageOf(err)
		if strings.Contains(detail, string(placement.InsufficientCapacity)) {
			detail += ". The requested amount would exceed the capacity."
		}
		if strings.HasSuffix(detail, string(placement.NoInventory)) {
			detail += d.withoutInventory(ctx, claims)
		}
		return rest.Refuse(http.StatusConflict, "", "Unable to allocate inventory: %s", detail)
	case errors.Is(err, problem.ErrInvalidInput):
		return d.invalidClaim(ctx, err, claims)
	}
	return err
}

// withoutInventory returns a sentence about the first amount without an inventory, or "".
func (d *door) withoutInventory(ctx context.Context, claims []placement.ConsumerClaim) string {
	world, err := d.World(ctx)
	if err != nil {
		return ""
	}
	for _, allocation := range allocationsOf(claims) {
		provider, ok := world.Provider(allocation.Provider)
		for _, amount := range allocation.Resources {
			if ok && len(only(provider, amount.ResourceClass)) == 0 {
				return ". Inventory for '" + amount.ResourceClass +
					"' on resource provider '" + provider.UUID + "' invalid."
			}
		}
	}
	return ""
}

func allocationsOf(claims []placement.ConsumerClaim) (all []placement.ProviderAllocation) {
	for _, claim := range claims {
		all = append(all, claim.Allocations...)
	}
	return all
}

// generationFault returns the fault of claims that conflict with another change.
// If a consumer has another generation than its claim, the message names both.
func (d *door) generationFault(ctx context.Context, err error, claims []placement.ConsumerClaim) error {
	number := func(generation *int64) string { return string(rest.Encode(generation)) }
	for _, claim := range claims {
		found, failed := d.ConsumersByUUID(ctx, []string{claim.UUID})
		if failed != nil {
			return conflict(rest.MessageOf(err))
		}
		var held *int64
		if consumer := found[claim.UUID]; consumer != nil {
			held = &consumer.Generation
		}
		if !claim.AnyGeneration && number(held) != number(claim.Generation) {
			return conflict("consumer generation conflict - expected " + number(held) +
				" but got " + number(claim.Generation))
		}
	}
	return conflict("Inventory and/or allocations changed while attempting to allocate: " + rest.MessageOf(err))
}

// invalidClaim returns the fault of claims that name a missing provider or
// class, or of an amount that no inventory permits, and other errors unchanged.
func (d *door) invalidClaim(ctx context.Context, err error, claims []placement.ConsumerClaim) error {
	world, failed := d.World(ctx)
	if failed != nil {
		return failed
	}
	for _, allocation := range allocationsOf(claims) {
		if _, ok := world.Provider(allocation.Provider); !ok {
			return rest.Bad("Allocation for resource provider '%s' that does not exist.", allocation.Provider)
		}
		for _, amount := range allocation.Resources {
			if !world.HasResourceClass(amount.ResourceClass) {
				return rest.Bad("Unable to allocate inventory for consumer %s: No such resource class %s.",
					claims[0].UUID, amount.ResourceClass)
			}
		}
	}
	for _, one := range problem.InError(err) {
		if strings.HasSuffix(one.Field, ".amount") {
			return rest.Refuse(http.StatusConflict, "",
				"Unable to allocate inventory: %s: %s. The requested amount would exceed the capacity.", one.Field,
				one.Message)
		}
	}
	return err
}

func (d *door) deleteAllocations(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	consumer := canonical(r.Path["consumer"])
	_, err := d.DeleteAllocations(ctx, consumer)
	return nothing, instead(err, problem.ErrNotFound,
		rest.Refuse(http.StatusNotFound, "", "No allocations for consumer '%s'", consumer))
}

func (d *door) reshape(ctx context.Context, r *rest.Request, world *placement.World) (rest.Answer, error) {
	var body struct {
		Inventories map[string]struct {
			generated
			Inventories map[string]inventoryBody `json:"inventories"`
		} `json:"inventories"`
		Allocations map[string]consumerBody `json:"allocations"`
	}
	schema := rest.Members(r.Version,
		rest.Must(0, "inventories", rest.Each(uuidPattern, inventoriesSchema(), 1)),
		rest.Must(0, "allocations", rest.Each(uuidPattern, allocationSchema(r.Version, false), 0)))
	if err := r.ReadJSON(schema, &body); err != nil {
		return rest.Answer{}, err
	}
	var input placement.Reshape
	for _, uuid := range slices.Sorted(maps.Keys(body.Inventories)) {
		of := body.Inventories[uuid]
		provider, ok := world.Provider(uuid)
		if !ok {
			return rest.Answer{}, rest.Refuse(http.StatusBadRequest, "resource_provider.not_found",
				"Resource provider %s in inventories not found: No resource provider with uuid %s found", uuid, uuid)
		}
		if provider.Generation > of.Generation {
			return rest.Answer{}, conflict(fmt.Sprintf(
				"resource provider generation conflict for provider %s: actual: %d, given: %d",
				uuid, provider.Generation, of.Generation))
		}
		input.Inventories = append(input.Inventories, placement.ProviderInventories{
			Provider: provider.UUID, Generation: &of.Generation, Inventories: listed(of.Inventories)})
	}
	var err error
	if input.Consumers, err = claimsOf(r, body.Allocations); err != nil {
		return rest.Answer{}, err
	}
	_, _, _, err = d.Reshape(ctx, input)
	return nothing, d.reshapeFault(ctx, err, input, world)
}

// reshapeFault returns the fault of a refused reshape.
func (d *door) reshapeFault(ctx context.Context, err error, input placement.Reshape, world *placement.World) error {
	if !errors.Is(err, problem.ErrInUse) {
		if class := unknownClass(world, input.Inventories); class != "" && err != nil {
			return rest.Bad("Unable to reshape inventories: No such resource class %s.", class)
		}
		return d.claimFault(ctx, err, input.Consumers)
	}
	for _, of := range input.Inventories {
		found, _ := world.Provider(of.Provider)
		kept := lists.Set(of.Inventories, func(i placement.Inventory) string { return i.ResourceClass })
		isKept := func(i placement.Inventory) bool { return kept[i.ResourceClass] }
		gone := slices.DeleteFunc(slices.Clone(found.Inventories), isKept)
		if usedOf(gone) != "" {
			return rest.Refuse(http.StatusConflict, "inventory.inuse", "update conflict: %s", inUse(err, found, gone))
		}
	}
	return rest.Refuse(http.StatusConflict, "inventory.inuse", "update conflict: %s", rest.MessageOf(err))
}

// unknownClass returns the first class of inventories that does not exist, or "".
func unknownClass(world *placement.World, list []placement.ProviderInventories) string {
	for _, of := range list {
		for _, one := range of.Inventories {
			if !world.HasResourceClass(one.ResourceClass) {
				return one.ResourceClass
			}
		}
	}
	return ""
}
