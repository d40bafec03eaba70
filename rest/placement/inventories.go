package placement

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/rest"
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
	made := placement.Inventory{ResourceClass: class, Total: b.Total, Reserved: b.Reserved, MinUnit: 1, MaxUnit: placement.MaxAmount, StepSize: 1, AllocationRatio: 1}
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

// checkCapacity refuses inventories without capacity. A later version permits
// to reserve all of an inventory.
func checkCapacity(r *rest.Request, provider string, list []placement.Inventory) error {
	for _, one := range list {
		least, than := int64(1), "greater than or equal to"
		if r.Since(26) {
			least, than = 0, "greater than"
		}
		if one.Capacity < least {
			return rest.Bad("Invalid inventory for '%s' on resource provider '%s'. The reserved value is %s total.", one.ResourceClass, provider, than)
		}
	}
	return nil
}

func fieldsOf(i placement.Inventory) object {
	return object{"total": i.Total, "reserved": i.Reserved, "min_unit": i.MinUnit, "max_unit": i.MaxUnit, "step_size": i.StepSize, "allocation_ratio": i.AllocationRatio}
}

func showInventories(p *placement.Provider) rest.Answer {
	shown := object{}
	for _, one := range p.Inventories {
		shown[one.ResourceClass] = fieldsOf(one)
	}
	return rest.Answer{Body: object{"inventories": shown, "resource_provider_generation": p.Generation}, Modified: p.UpdatedAt}
}

func showInventory(p *placement.Provider, class string) (rest.Answer, error) {
	i := slices.IndexFunc(p.Inventories, func(i placement.Inventory) bool { return i.ResourceClass == class })
	if i < 0 {
		return rest.Answer{}, rest.Refuse(http.StatusNotFound, "", "No inventory of class %s for %s", class, p.UUID)
	}
	shown := fieldsOf(p.Inventories[i])
	shown["resource_provider_generation"] = p.Generation
	return rest.Answer{Body: shown, Modified: p.UpdatedAt}, nil
}

func (d *door) inventories(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	_, provider, err := d.find(ctx, r)
	if err != nil {
		return rest.Answer{}, err
	}
	return showInventories(provider), nil
}

func (d *door) inventory(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	_, provider, err := d.find(ctx, r)
	if err != nil {
		return rest.Answer{}, err
	}
	return showInventory(provider, r.Path["class"])
}

// inventoryFault returns the fault of a refused change of inventories.
func inventoryFault(err error, words string, provider *placement.Provider) error {
	if err == nil {
		return nil
	}
	switch {
	case errors.Is(err, problem.ErrInUse):
		return rest.Refuse(http.StatusConflict, "inventory.inuse", "update conflict: %s", inUse(err, provider))
	case errors.Is(err, problem.ErrConcurrentUpdate):
		return conflict("update conflict: resource provider generation conflict: " + rest.MessageOf(err))
	case errors.Is(err, problem.ErrInvalidInput):
		return rest.Bad("Unknown resource class in inventory for resource provider %s: %s: %s", provider.UUID, words, rest.MessageOf(err))
	}
	return err
}

// inUse says which inventories of a provider have allocations.
func inUse(err error, provider *placement.Provider) string {
	return fmt.Sprintf("%s. Inventory for '%s' on resource provider '%s' in use.", rest.MessageOf(err), usedOf(provider), provider.UUID)
}

func (d *door) setInventories(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	if _, _, err := d.find(ctx, r); err != nil {
		return rest.Answer{}, err
	}
	var body struct {
		generated
		Inventories map[string]inventoryBody `json:"inventories"`
	}
	if err := r.ReadJSON(inventoriesSchema(), &body); err != nil {
		return rest.Answer{}, err
	}
	provider, err := d.findAt(ctx, r, body.Generation)
	if err != nil {
		return rest.Answer{}, err
	}
	const words = "Unable to update inventory for resource provider "
	list := listed(body.Inventories)
	if err := checkCapacity(r, provider.UUID, list); err != nil {
		return rest.Answer{}, prefixed(err, words+provider.UUID+": ")
	}
	_, after, err := d.SetInventories(ctx, placement.ProviderInventories{Provider: provider.UUID, Generation: &body.Generation, Inventories: list})
	if err != nil {
		return rest.Answer{}, inventoryFault(err, words+provider.UUID, provider)
	}
	return showInventories(after), nil
}

func (d *door) deleteInventories(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	_, provider, err := d.find(ctx, r)
	if err != nil {
		return rest.Answer{}, err
	}
	_, _, err = d.SetInventories(ctx, placement.ProviderInventories{Provider: provider.UUID, Generation: &provider.Generation})
	return nothing, inventoryFault(err, "Unable to delete inventory", provider)
}

func (d *door) createInventory(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	_, provider, err := d.find(ctx, r)
	if err != nil {
		return rest.Answer{}, err
	}
	var body inventoryBody
	schema := inventorySchema("resource_class")
	schema.Properties["resource_class"] = &rest.Schema{Type: "string", Pattern: namePattern}
	if err := r.ReadJSON(schema, &body); err != nil {
		return rest.Answer{}, err
	}
	if _, err := showInventory(provider, body.Class); err == nil {
		return rest.Answer{}, conflict("Update conflict: the provider has an inventory of " + body.Class + " already")
	}
	const words = "Unable to create inventory for resource provider "
	answer, err := d.putInventory(ctx, r, provider, provider.Generation, body.inventory(body.Class), words)
	answer.Status, answer.Location = http.StatusCreated, r.Mount+providersPath+"/"+provider.UUID+"/inventories/"+body.Class
	return answer, err
}

func (d *door) updateInventory(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	if _, _, err := d.find(ctx, r); err != nil {
		return rest.Answer{}, err
	}
	var body inventoryBody
	if err := r.ReadJSON(inventorySchema("resource_provider_generation"), &body); err != nil {
		return rest.Answer{}, err
	}
	provider, err := d.findAt(ctx, r, body.Generation)
	if err != nil {
		return rest.Answer{}, err
	}
	class := r.Path["class"]
	made := body.inventory(class)
	if err := checkCapacity(r, provider.UUID, []placement.Inventory{made}); err != nil {
		return rest.Answer{}, prefixed(err, "Unable to update inventory for resource provider "+provider.UUID+": ")
	}
	if _, err := showInventory(provider, class); err != nil {
		return rest.Answer{}, rest.Bad("No inventory record with resource class for resource provider %s: %s", provider.UUID, class)
	}
	return d.putInventory(ctx, r, provider, body.Generation, made, "Unable to update inventory for resource provider ")
}

// putInventory writes one inventory if the provider has the generation.
func (d *door) putInventory(ctx context.Context, r *rest.Request, provider *placement.Provider, generation int64, made placement.Inventory, words string) (rest.Answer, error) {
	words += provider.UUID
	if err := checkCapacity(r, provider.UUID, []placement.Inventory{made}); err != nil {
		return rest.Answer{}, prefixed(err, words+": ")
	}
	_, after, err := d.SetInventory(ctx, placement.InventoryChange{Provider: provider.UUID, Generation: &generation, Inventory: made})
	if errors.Is(err, problem.ErrInvalidInput) && !errors.Is(err, problem.ErrConcurrentUpdate) {
		err = rest.Bad("%s: No such resource class %s. (%s)", words, made.ResourceClass, rest.MessageOf(err))
	}
	if err != nil {
		return rest.Answer{}, inventoryFault(err, words, provider)
	}
	return showInventory(after, made.ResourceClass)
}

func (d *door) deleteInventory(ctx context.Context, r *rest.Request) (rest.Answer, error) {
	_, provider, err := d.find(ctx, r)
	if err != nil {
		return rest.Answer{}, err
	}
	class := r.Path["class"]
	if _, err := showInventory(provider, class); err != nil {
		return rest.Answer{}, rest.Refuse(http.StatusNotFound, "", "No inventory of class %s found for delete", class)
	}
	_, _, err = d.DeleteInventory(ctx, placement.InventoryDeletion{Provider: provider.UUID, Generation: &provider.Generation, ResourceClass: class})
	if errors.Is(err, problem.ErrInUse) {
		err = conflict("Unable to delete inventory of class " + class + ": " + inUse(err, &placement.Provider{UUID: provider.UUID, Inventories: only(provider, class)}))
	}
	return nothing, err
}
