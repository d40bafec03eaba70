package cli

import (
	"fmt"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// placeConsumers asks the server to choose hosts for consumers and to claim
// them. It shows the allocations of placed consumers and the reasons for the
// others, and fails if there are others.
func placeConsumers(c *call) error {
	if err := c.readRequest(); err != nil {
		return err
	}
	request := c.request()
	c.tellPlace()
	consumers := lists.Map(c.given["consumer"], func(uuid string) any {
		consumer := map[string]any{"uuid": uuid, "projectId": c.text("project"), "userId": c.text("user")}
		if kind := c.text("type"); kind != "" {
			consumer["type"] = kind
		}
		return consumer
	})
	input := map[string]any{"request": request, "consumers": consumers, "strategy": constant(c.text("strategy")),
		"atomic": !c.is("each"), "dryRun": c.is("dry-run"), "shapes": c.variables["shapes"],
		"preferences": c.variables["preferences"], "seed": c.variables["seed"]}
	if policy, ok := c.variables["policy"]; ok {
		input["policy"] = policy
	}
	if holdFor := c.number("hold-for"); holdFor != 0 {
		input["holdFor"] = holdFor
	}
	payload, err := c.query("PlaceConsumers", map[string]any{"input": input})
	if err != nil {
		return err
	}
	return c.showPlaced(payload)
}

// request returns the variables of a request as one input.
func (c *call) request() map[string]any {
	request := map[string]any{}
	for _, field := range definitionOf("PlacementRequestInput").Fields {
		if value, ok := c.variables[field.Name]; ok {
			request[field.Name] = value
		}
	}
	return request
}

// tellPlace notes the flags that set the fields of the input, for errors.
func (c *call) tellPlace() {
	c.told["hosts"], c.told["holdFor"], c.told["policy"] = "--hosts", "--hold-for", "--policy"
	for i, uuid := range c.given["consumer"] {
		path := fmt.Sprintf("consumers[%d]", i)
		c.told[path], c.told[path+".type"] = "--consumer "+uuid, "--type"
		c.told[path+".projectId"], c.told[path+".userId"] = "--project", "--user"
	}
}

// showPlaced shows the allocations of placed consumers, and the problems of the
// others.
func (c *call) showPlaced(payload any) error {
	results := listOf(payload, "results")
	allocations, unplaced := []any{}, 0
	for _, result := range results {
		if memberOf(result, "consumer") == nil {
			unplaced++
		}
		for _, one := range listOf(result, "errors") {
			c.notef("%s: %s\n", c.flagOf(wordOf(one, "field")), wordOf(one, "message"))
		}
		allocations = append(allocations, listOf(memberOf(result, "consumer"), "allocations")...)
	}
	if err := c.list("consumer=consumer.uuid provider=provider.name resourceClass used +providerUuid=provider.uuid",
		allocations); err != nil {
		return err
	}
	if unplaced == 0 {
		return nil
	}
	if explain := memberOf(payload, "explain"); explain != nil && !c.out.isData() {
		if err := c.showExplanation(explain); err != nil {
			return err
		}
	}
	return statusError{fmt.Errorf("%d of %d consumers were not placed", unplaced, len(results)), exitConflict}
}
