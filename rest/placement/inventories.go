package placement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/rest"
	"github.com/cadastre-dev/cadastre/rest/placement/search"
)

// inventoryBody is an inventory in a body.
type inventoryBody struct {
	generated
	Class    string   `json:"resource_class"`
	Total    int32    `json:"total"`
	Reserved int32    `json:"reserved"`
	MinUnit  *int32   `json:"min_unit"`
	MaxUnit  *int32   `json:"max_unit"`
	StepSize *int32   `json:"step_size"`
	Ratio    *float64 `json:"allocation_ratio"`
}

// inventory returns the inventory of a class with the defaults of the API.
func (b *inventoryBody) inventory(class string) placement.Inventory {
	made := placement.Inventory{ResourceClass: class, Total: b.Total, Reserved: b.Reserved,
		MinUnit: 1, MaxUnit: placement.MaxAmount, StepSize: 1, AllocationRatio: 1}
	set(&made.MinUnit, b.MinUnit)
	set(&made.MaxUnit, b.MaxUnit)
	set(&made.StepSize, b.StepSize)
	set(&made.AllocationRatio, b.Ratio)
	made.Capacity = placement.Capacity(made.Total, made.Reserved, made.AllocationRatio)
	return made
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// listed returns inventories in the order of their classes.
func listed(bodies map[string]inventoryBody) []placement.Inventory {
	list := make([]placement.Inventory, 0, len(bodies))
	for _, class := range slices.Sorted(maps.Keys(bodies)) {
		body := bodies[class]
		list = append(list, body.inventory(class))
	}
	return list
}

// checkCapacity refuses an inventory with a capacity below 1, or since 1.26 below
// 0. The message begins with the given words.
func checkCapacity(r *rest.Request, words, provider string, list ...placement.Inventory) error {
	least, than := int64(1), "greater than or equal to"
	if r.Since(26) {
		least, than = 0, "greater than"
	}
	for _, one := range list {
		if one.Capacity < least {
			return rest.Bad("%s: Invalid inventory for '%s' on resource provider '%s'. The reserved value is %s total.",
				words, one.ResourceClass, provider, than)
		}
	}
	return nil
}

func fieldsOf(i placement.Inventory) rest.Object {
	return rest.Object{"total": i.Total, "reserved": i.Reserved, "min_unit": i.MinUnit, "max_unit": i.MaxUnit,
		"step_size": i.StepSize, "allocation_ratio": i.AllocationRatio}
}

func showInventories(_ *rest.Request, p *placement.Provider) rest.Answer {
	shown := rest.Object{}
	for _, one := range p.Inventories {
		shown[one.ResourceClass] = fieldsOf(one)
	}
	body := rest.Object{"inventories": shown, "resource_provider_generation": p.Generation}
	return rest.Answer{Body: body, Modified: p.UpdatedAt}
}

// only returns the inventories of a provider that are of a class: one or none.
func only(p *placement.Provider, class string) []placement.Inventory {
	isOther := func(i placement.Inventory) bool { return i.ResourceClass != class }
	return slices.DeleteFunc(slices.Clone(p.Inventories), isOther)
}

func showInventory(p *placement.Provider, class string) (rest.Answer, error) {
	found := only(p, class)
	if len(found) == 0 {
		return rest.Answer{}, rest.Refuse(http.StatusNotFound, "", "No inventory of class %s for %s", class, p.UUID)
	}
	shown := fieldsOf(found[0])
	shown["resource_provider_generation"] = p.Generation
	return rest.Answer{Body: shown, Modified: p.UpdatedAt}, nil
}

func (d *door) inventory(_ context.Context, r *rest.Request, p *placement.Provider) (rest.Answer, error) {
	return showInventory(p, r.Path["class"])
}

// inventoryFault returns the fault of a refused change of inventories.
func inventoryFault(err error, words string, p *placement.Provider) error {
	switch {
	case errors.Is(err, problem.ErrInUse):
		return rest.Refuse(http.StatusConflict, "inventory.inuse", "update conflict: %s", inUse(err, p, p.Inventories))
	case errors.Is(err, problem.ErrConcurrentUpdate):
		return conflict("update conflict: resource provider generation conflict: " + rest.MessageOf(err))
	case errors.Is(err, problem.ErrInvalidInput):
		return rest.Bad("Unknown resource class in inventory for resource provider %s: %s: %s",
			p.UUID, words, rest.MessageOf(err))
	}
	return err
}

// inUse returns the message of an error, and a sentence that lists the classes of
// inventories with allocations.
func inUse(err error, p *placement.Provider, list []placement.Inventory) string {
	return fmt.Sprintf("%s. Inventory for '%s' on resource provider '%s' in use.",
		rest.MessageOf(err), usedOf(list), p.UUID)
}

// usedOf lists the classes of inventories with allocations, with commas.
func usedOf(list []placement.Inventory) string {
	var used []string
	for _, one := range list {
		if one.Used > 0 {
			used = append(used, one.ResourceClass)
		}
	}
	const first = "VCPU MEMORY_MB DISK_GB" // the order of the reference
	slices.SortStableFunc(used, func(a, b string) int {
		return cmp.Or(cmp.Compare(uint(strings.Index(first, a)), uint(strings.Index(first, b))), cmp.Compare(a, b))
	})
	return strings.Join(used, ", ")
}

// Prefixes of the messages of refusals.
const (
	unableToCreate = "Unable to create inventory for resource provider "
	unableToUpdate = "Unable to update inventory for resource provider "
)

func (d *door) setInventories(ctx context.Context, r *rest.Request, p *placement.Provider) (rest.Answer, error) {
	var body struct {
		generated
		Inventories map[string]inventoryBody `json:"inventories"`
	}
	if err := r.ReadJSON(inventoriesSchema(), &body); err != nil {
		return rest.Answer{}, err
	}
	words, list := unableToUpdate+p.UUID, listed(body.Inventories)
	err := cmp.Or(outdated(p, body.Generation), checkCapacity(r, words, p.UUID, list...))
	if err != nil {
		return rest.Answer{}, err
	}
	change := placement.ProviderInventories{Provider: p.UUID, Generation: &body.Generation, Inventories: list}
	_, after, err := d.SetInventories(ctx, change)
	return view(showInventories).after(r, after, inventoryFault(err, words, p))
}

func (d *door) deleteInventories(ctx context.Context, _ *rest.Request, p *placement.Provider) (rest.Answer, error) {
	_, _, err := d.SetInventories(ctx, placement.ProviderInventories{Provider: p.UUID, Generation: &p.Generation})
	return nothing, inventoryFault(err, "Unable to delete inventory", p)
}

func (d *door) createInventory(ctx context.Context, r *rest.Request, p *placement.Provider) (rest.Answer, error) {
	var body inventoryBody
	class := rest.Must(0, "resource_class", &rest.Schema{Type: "string", Pattern: namePattern})
	if err := r.ReadJSON(inventorySchema(class), &body); err != nil {
		return rest.Answer{}, err
	}
	if len(only(p, body.Class)) > 0 {
		return rest.Answer{}, conflict("Update conflict: the provider has an inventory of " + body.Class + " already")
	}
	answer, err := d.putInventory(ctx, r, p, p.Generation, body.inventory(body.Class), unableToCreate)
	answer.Status = http.StatusCreated
	answer.Location = r.Mount + providersPath + "/" + p.UUID + "/inventories/" + body.Class
	return answer, err
}

func (d *door) updateInventory(ctx context.Context, r *rest.Request, p *placement.Provider) (rest.Answer, error) {
	var body inventoryBody
	if err := r.ReadJSON(inventorySchema(generation), &body); err != nil {
		return rest.Answer{}, err
	}
	made := body.inventory(r.Path["class"])
	err := cmp.Or(outdated(p, body.Generation), checkCapacity(r, unableToUpdate+p.UUID, p.UUID, made))
	if err != nil {
		return rest.Answer{}, err
	}
	if len(only(p, made.ResourceClass)) == 0 {
		return rest.Answer{}, rest.Bad("No inventory record with resource class for resource provider %s: %s",
			p.UUID, made.ResourceClass)
	}
	return d.putInventory(ctx, r, p, body.Generation, made, unableToUpdate)
}

// putInventory writes one inventory if its capacity is permitted and the
// provider has the generation.
func (d *door) putInventory(ctx context.Context, r *rest.Request, p *placement.Provider, generation int64,
	made placement.Inventory, words string) (rest.Answer, error) {
	words += p.UUID
	if err := checkCapacity(r, words, p.UUID, made); err != nil {
		return rest.Answer{}, err
	}
	change := placement.InventoryChange{Provider: p.UUID, Generation: &generation, Inventory: made}
	_, after, err := d.SetInventory(ctx, change)
	if errors.Is(err, problem.ErrInvalidInput) && !errors.Is(err, problem.ErrConcurrentUpdate) {
		err = rest.Bad("%s: No such resource class %s. (%s)", words, made.ResourceClass, rest.MessageOf(err))
	}
	if err != nil {
		return rest.Answer{}, inventoryFault(err, words, p)
	}
	return showInventory(after, made.ResourceClass)
}

func (d *door) deleteInventory(ctx context.Context, r *rest.Request, p *placement.Provider) (rest.Answer, error) {
	class := r.Path["class"]
	found := only(p, class)
	if len(found) == 0 {
		return rest.Answer{}, rest.Refuse(http.StatusNotFound, "", "No inventory of class %s found for delete", class)
	}
	change := placement.InventoryDeletion{Provider: p.UUID, Generation: &p.Generation, ResourceClass: class}
	_, _, err := d.DeleteInventory(ctx, change)
	if errors.Is(err, problem.ErrInUse) {
		err = conflict("Unable to delete inventory of class " + class + ": " + inUse(err, p, found))
	}
	return nothing, err
}

func showUsages(_ *rest.Request, provider *placement.Provider) rest.Answer {
	used := map[string]int64{}
	for _, one := range provider.Inventories {
		used[one.ResourceClass] = one.Used
	}
	return rest.Computed(rest.Object{"usages": used, "resource_provider_generation": provider.Generation})
}

// allTypes asks for one sum over the consumers of all types.
const allTypes = "all"

func (d *door) usages(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	typeOrWord := *name
	typeOrWord.Pattern += "|^all|^unknown$"
	schema := rest.Members(r.Version, rest.Must(0, "project_id", owner), rest.May(0, "user_id", owner),
		rest.May(38, "consumer_type", &typeOrWord))
	if err := search.CheckQuery(r, schema, d.compat); err != nil {
		return rest.Answer{}, err
	}
	project, _ := r.Last("project_id")
	viewer := access.ViewerFrom(ctx)
	if project != viewer.ProjectID && !viewer.May(access.RuleConsumersReadAny) &&
		!viewer.May(access.RulePlacementWrite) {
		return rest.Answer{}, problem.Refuse(problem.ErrForbidden, "the usages of another project need %s",
			viewer.RolesThatMay(access.RuleConsumersReadAny))
	}
	filter := placement.UsageFilter{ProjectID: &project, By: placement.UsagesByType}
	if user, ok := r.Last("user_id"); ok {
		filter.UserID = &user
	}
	wanted, ofType := r.Last("consumer_type")
	if ofType && wanted != allTypes && wanted != unknownType {
		filter.ConsumerType = &wanted
	}
	groups, err := d.usagesOf(ctx, filter)
	if err != nil {
		return rest.Answer{}, err
	}
	sums := sumsOf(r, groups, wanted)
	switch {
	case r.Since(38):
		return rest.Computed(rest.Object{"usages": sums}), nil
	case sums[allTypes] == nil:
		return rest.Computed(rest.Object{"usages": rest.Object{}}), nil
	}
	return rest.Computed(rest.Object{"usages": sums[allTypes]}), nil
}

// sumsOf returns the sums of groups by consumer type and class. Before 1.38, or
// if allTypes is wanted, the only type is allTypes. If unknownType is wanted,
// the only type is unknownType. Since 1.38, each sum has the number of
// consumers as consumer_count.
func sumsOf(r *rest.Request, groups []*placement.UsageGroup, wanted string) map[string]map[string]int64 {
	sums := map[string]map[string]int64{}
	for _, group := range groups {
		key := typeOf(group.ConsumerType)
		if wanted == unknownType && key != unknownType {
			continue
		}
		if !r.Since(38) || wanted == allTypes {
			key = allTypes
		}
		if sums[key] == nil {
			sums[key] = map[string]int64{}
		}
		for _, usage := range group.Usages {
			sums[key][usage.ResourceClass] += usage.Used
		}
		if r.Since(38) {
			sums[key]["consumer_count"] += int64(group.ConsumerCount)
		}
	}
	return sums
}

func (d *door) usagesOf(ctx context.Context, filter placement.UsageFilter) (all []*placement.UsageGroup, err error) {
	for {
		groups, err := d.Usages(ctx, filter, new(page.MaxSize))
		if err != nil || len(groups) == 0 {
			return all, err
		}
		if all = append(all, groups...); len(groups) < page.MaxSize {
			return all, nil
		}
		filter.After = new("")
		if last := groups[len(groups)-1]; last.ConsumerType != nil {
			filter.After = last.ConsumerType
		}
	}
}
