package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/client/optional"
)

// ofProvider is the flag of lists that can be of one provider.
type ofProvider struct {
	Provider string `ref:"provider" placeholder:"PROVIDER" help:"Only those of this provider."`
}

// provider returns the provider with a uuid.
func (s *session) provider(uuid string) (*client.Provider, error) {
	answer, err := client.ReadProvider(s.ctx, s.api, &uuid, nil)
	if err != nil {
		return nil, err
	}
	if answer.ResourceProvider == nil {
		return nil, missing("provider", uuid)
	}
	return &answer.ResourceProvider.Provider, nil
}

// withChildren returns the error of a provider that was not deleted, with the names
// of the providers below it.
func (c *call) withChildren(refused error, uuid string) error {
	if client.Code(refused) != client.InUse {
		return refused
	}
	below, err := client.Collect(client.Providers(c.ctx, c.api, &client.ResourceProviderFilter{InTree: optional.Value(uuid)}, nil, nil), maxLooked)
	if err != nil {
		return refused
	}
	var names []string
	for _, of := range below {
		if of.Parent != nil && of.Parent.Uuid == uuid {
			names = append(names, of.Name)
		}
	}
	if names == nil {
		return refused
	}
	return fmt.Errorf("%w; its children are %s", refused, quoted(names))
}

// inventoryOf returns the inventory of a class; nil where there is none.
func inventoryOf(provider *client.Provider, class string) *client.Inventory {
	i := slices.IndexFunc(provider.Inventories, func(of *client.Inventory) bool { return of.ResourceClass == class })
	if i < 0 {
		return nil
	}
	return provider.Inventories[i]
}

func showInventory(c *call) error {
	provider, err := c.provider(c.text("provider"))
	if err != nil {
		return err
	}
	found := inventoryOf(provider, c.text("class"))
	if found == nil {
		return missing("inventory of "+provider.Name, c.text("class"))
	}
	return one(c.session, c.columns(), found)
}

func setInventory(c *call) error {
	provider, err := c.provider(c.text("provider"))
	if err != nil {
		return err
	}
	class := c.text("class")
	if of := inventoryOf(provider, class); of != nil {
		given := memberOf(c.variables["input"], "inventory").(map[string]any)
		for field, value := range map[string]any{"total": of.Total, "reserved": of.Reserved, "minUnit": of.MinUnit, "maxUnit": of.MaxUnit,
			"stepSize": of.StepSize, "allocationRatio": of.AllocationRatio} {
			if _, ok := given[field]; !ok {
				given[field] = value
			}
		}
	} else if c.text("total") == "" {
		return usagef("--total: %s has no inventory of %s; say how much there is", provider.Name, class)
	}
	if c.text("generation") == "" {
		assign(c.variables, "input.generation", provider.Generation)
	}
	found, _, err := c.fetch()
	if err != nil {
		return err
	}
	changed := &client.Provider{}
	if err := into(changed, found); err != nil {
		return err
	}
	return one(c.session, c.columns(), inventoryOf(changed, class))
}

// showTraits shows traits by name: custom ones say so in their names.
func (c *call) showTraits(names []string) error {
	rows := []any{}
	for _, name := range names {
		rows = append(rows, map[string]any{"name": name, "custom": strings.HasPrefix(name, "CUSTOM_")})
	}
	return list(c.session, c.columns(), rows)
}

func listTraits(c *call) error {
	of := embedded[ofProvider](c)
	if of.Provider == "" {
		return c.standard()
	}
	provider, err := c.provider(of.Provider)
	if err != nil {
		return err
	}
	return c.showTraits(provider.Traits)
}

func showTrait(c *call) error {
	err := c.standard()
	if client.Code(err) == client.BadUserInput {
		return missingError{errors.Join(missing("trait", c.text("name")), err)}
	}
	return err
}

func setTraits(c *call) error {
	found, _, err := c.fetch()
	if err != nil {
		return err
	}
	provider := &client.Provider{}
	if err := into(provider, found); err != nil {
		return err
	}
	return c.showTraits(provider.Traits)
}

func listAggregates(c *call) error {
	of, most := embedded[ofProvider](c), embedded[paging](c).Limit
	if of.Provider == "" {
		c.variables["groupBy"] = client.CapacityGroupingAggregate
		c.verb.columns = "aggregate resourceClass capacity used free providers +total +reserved +shareUsed"
		return c.sendAndShow()
	}
	provider, err := c.provider(of.Provider)
	if err != nil {
		return err
	}
	aggregates := provider.Aggregates
	if most > 0 {
		aggregates = aggregates[:min(len(aggregates), most)]
	}
	return list(c.session, c.columns(), aggregates)
}

func showAggregate(c *call) error {
	found, _, err := c.fetch()
	if err != nil {
		return err
	}
	providers, _ := found.([]any)
	if len(providers) == 0 {
		return missing("aggregate", strings.Join(c.texts("aggregate"), ","))
	}
	return list(c.session, c.columns(), providers)
}

func listUsages(c *call) error {
	by := map[string]string{"project": "projectId", "user": "userId", "type": "consumerType"}[c.text("by")]
	c.verb.columns = by + " consumers=consumerCount usages"
	for _, other := range []string{"projectId", "userId", "consumerType"} {
		if other != by {
			c.verb.columns += " +" + other
		}
	}
	all, most := []any{}, embedded[paging](c).Limit
	for { // the cursor is what the groups are grouped by
		found, _, err := c.ask(c.operation, c.variables, 0)
		if err != nil {
			return err
		}
		groups, _ := found.([]any)
		all = append(all, groups...)
		if len(groups) < maxPage || most > 0 && len(all) >= most {
			break
		}
		c.variables["after"] = memberOf(groups[len(groups)-1], by)
	}
	if most > 0 {
		all = all[:min(len(all), most)]
	}
	return c.show(all)
}

func listCapacity(c *call) error {
	c.verb.columns = capacityColumns(c.text("by"))
	return c.sendAndShow()
}

// capacityColumns are the columns of sums of capacity, by what their providers have
// in common.
func capacityColumns(by string) string {
	group := map[string]string{"resource-class": "", "aggregate": "aggregate ", "trait": "trait ", "root": "root=root.name "}
	return group[by] + "resourceClass total reserved capacity used free providers +shareUsed"
}
