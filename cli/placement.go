package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/internal/lists"
)

// keepInventory keeps the fields without a flag, sets the generation of the
// provider, and runs the command.
func keepInventory(c *call) error {
	class := c.text("class")
	provider, err := c.query("ReadProvider", map[string]any{"uuid": c.text("provider")})
	if err != nil {
		return err
	}
	if of := pick(listOf(provider, "inventories"), "resourceClass", class); len(of) > 0 {
		given := memberOf(c.variables["input"], "inventory").(map[string]any)
		for _, field := range definitionOf("InventoryInput").Fields {
			if _, ok := given[field.Name]; !ok {
				given[field.Name] = memberOf(of[0], field.Name)
			}
		}
	} else if c.text("total") == "" {
		return usagef("--total is required: %s has no inventory of %s", wordOf(provider, "name"), class)
	}
	if c.text("generation") == "" {
		assign(c.variables, "input.generation", memberOf(provider, "generation"))
	}
	return c.standard()
}

// showTraits shows traits. A provider only has their names; the prefix shows
// whether a trait is custom.
func showTraits(c *call, found, _ any) error {
	if object, ok := found.(map[string]any); ok {
		object["traits"] = lists.Map(listOf(object, "traits"), func(name any) any {
			return map[string]any{"name": name, "custom": strings.HasPrefix(name.(string), "CUSTOM_")}
		})
	}
	return c.show(found)
}

func showTrait(c *call) error {
	err := c.standard()
	if client.Code(err) == client.BadUserInput {
		return c.missing(&missingAt{kind: "trait", name: c.text("name")})
	}
	return err
}

func groupByAggregate(c *call) error {
	if c.text("provider") == "" {
		c.variables["groupBy"] = client.CapacityGroupingAggregate
		c.verb.columns = "aggregate resourceClass capacity used free providers +total +reserved +shareUsed"
	}
	return c.standard()
}

func listUsages(c *call) error {
	by := map[string]string{"project": "projectId", "user": "userId", "type": "consumerType"}[c.text("by")]
	c.verb.columns = by + " consumers=consumerCount usages"
	for _, other := range []string{"projectId", "userId", "consumerType"} {
		if other != by {
			c.verb.columns += " +" + other
		}
	}
	all, most := []any{}, c.number("limit")
	for { // the cursor is the key of a group
		groups, _, err := c.ask(c.operation, c.variables, 0)
		if err != nil {
			return err
		}
		page := listOf(groups, "")
		all = append(all, page...)
		if len(page) < maxPage || most > 0 && len(all) >= most {
			return c.show(all)
		}
		c.variables["after"] = memberOf(page[len(page)-1], by)
	}
}

func groupCapacity(c *call) error {
	c.verb.columns = capacityColumns(c.text("by"))
	return c.standard()
}

// groupHistory sets the columns by the grouping, and runs the command.
func groupHistory(c *call) error {
	used := "resourceClass usedMin=used.min usedMean=used.mean usedMax=used.max heldMax=held.max samples"
	whole := strings.Replace(used, " ", " total=total.max reserved=reserved.max capacity=capacity.max ", 1)
	fits := " flavor fitsAtLeastMin=fitsAtLeast.min fitsAtLeastMax=fitsAtLeast.max fitsAtMostMin=fitsAtMost.min fitsAtMostMax=fitsAtMost.max samples"
	c.verb.columns = "beginsAt" + map[string]string{"aggregate": " aggregate " + whole,
		"project": " project=projectId " + used, "flavor": fits}[c.text("by")]
	if c.text("by") == "resource-class" {
		c.verb.columns += " " + whole
	}
	return c.standard()
}

// capacityColumns returns the columns of sums of capacity, by their grouping.
func capacityColumns(by string) string {
	group := map[string]string{"aggregate": "aggregate ", "trait": "trait ", "root": "root=root.name "}
	return group[by] + "resourceClass total reserved capacity used free providers +shareUsed"
}

// setAllocations replaces the allocations of a consumer. It asks before it
// changes an existing consumer, and then keeps the fields without a flag.
func setAllocations(c *call) error {
	allocations, err := c.allocations()
	if err != nil {
		return err
	}
	input := map[string]any{"uuid": c.text("consumer"), "allocations": allocations}
	there, err := c.query("ReadConsumer", map[string]any{"uuid": c.text("consumer")})
	switch {
	case err == nil:
		if err := c.confirm("yes", "Replace the allocations of the consumer %s?", c.text("consumer")); err != nil {
			return err
		}
		for _, field := range []string{"projectId", "userId", "generation"} {
			input[field] = memberOf(there, field)
		}
	case ExitStatus(err) != exitNotFound:
		return err
	case c.text("project") == "" || c.text("user") == "":
		return usagef("the consumer is new: --project and --user are required")
	}
	for flag, field := range map[string]string{"project": "projectId", "user": "userId", "type": "type"} {
		if of, ok := c.given[flag]; ok {
			input[field] = of[0]
		}
	}
	if generation, ok := c.given["generation"]; ok {
		if input["generation"], err = valueOf("Int64", generation[0]); err != nil {
			return usagef("--generation: %w", err)
		}
	}
	consumers, err := c.query("SetAllocations", map[string]any{"input": map[string]any{"consumers": []any{input}}})
	if err != nil {
		return err
	}
	all := []any{}
	for _, of := range listOf(consumers, "") {
		all = append(all, listOf(of, "allocations")...)
	}
	return c.list(c.columns(), all)
}

// allocations parses the values of --allocation, such as
// rp=PROVIDER,CLASS=AMOUNT,CLASS=AMOUNT, and groups them by provider.
func (c *call) allocations() (all []any, err error) {
	byProvider := map[string]map[string]any{}
	for _, text := range c.given["allocation"] {
		name, amounts, _ := strings.Cut(text, ",")
		provider, ok := strings.CutPrefix(name, "rp=")
		if !ok || amounts == "" || provider == "" {
			return nil, usagef("--allocation: %q is not of the form rp=PROVIDER,CLASS=AMOUNT", text)
		}
		if err := c.resolveText("provider", &provider); err != nil {
			return nil, err
		}
		of := byProvider[provider]
		if of == nil {
			of = map[string]any{"provider": provider, "resources": []any{}}
			byProvider[provider] = of
			all = append(all, of)
		}
		for _, amount := range strings.Split(amounts, ",") {
			resources, err := amountOf(amount, "amount")
			if err != nil {
				return nil, usagef("--allocation: %w", err)
			}
			of["resources"] = append(of["resources"].([]any), resources)
		}
	}
	return all, nil
}

// showDrainPlan shows the moves of a plan. If consumers do not fit elsewhere,
// it then names these consumers and fails.
func showDrainPlan(c *call, found, _ any) error {
	moves := listOf(found, "moves")
	if err := c.showMoves(moves); err != nil {
		return err
	}
	for _, one := range listOf(found, "unplaced") {
		c.notef("%s does not fit: %s\n", wordOf(one, "consumer.uuid"), wordOf(one, "resources"))
	}
	unplaced := numberOf(found, "unplacedCount")
	if unplaced == 0 {
		return nil
	}
	return statusError{fmt.Errorf("%d of %d consumers do not fit elsewhere", unplaced, unplaced+len(moves)),
		exitConflict}
}

// showMoves shows moves. A table has only the names of the providers.
func (c *call) showMoves(moves []any) error {
	if !c.out.isData() {
		for _, move := range moves {
			for _, side := range []string{"from", "to"} {
				move.(map[string]any)[side] = wordOf(move, side+".provider.name")
			}
		}
	}
	return c.list(c.columns(), moves)
}

// showRebalancePlan shows the moves of a plan.
func showRebalancePlan(c *call, found, _ any) error {
	if !c.out.isData() {
		c.notef("at least %s fit before the moves\n", wordOf(found, "atLeast"))
	}
	return c.showMoves(listOf(found, "moves"))
}

// movesAtOnce is the maximum number of moves of one request.
const movesAtOnce = 100

// applyMoves makes the moves of a file in batches, and shows all outcomes,
// even if a later batch fails. It fails if a move was refused.
func applyMoves(c *call) error {
	moves, err := c.readMoves(c.text("file"))
	if err != nil {
		return err
	}
	var results []any
	refused := 0
	for batch := range slices.Chunk(moves, movesAtOnce) {
		input := map[string]any{"moves": batch, "dryRun": c.is("dry-run")}
		outcomes, err := c.query("ApplyPlan", map[string]any{"input": input})
		if err != nil {
			return c.failed(results, err)
		}
		for i, result := range listOf(outcomes, "") {
			row := result.(map[string]any)
			row["consumer"] = memberOf(batch[i], "consumer")
			if row["outcome"] == string(client.MoveOutcomeRefused) {
				refused++
			}
			if !c.out.isData() {
				row["errors"] = messagesOf(listOf(row, "errors"))
			}
			results = append(results, row)
		}
	}
	if err := c.list(c.columns(), results); err != nil || refused == 0 {
		return err
	}
	return statusError{fmt.Errorf("%d of %d moves were refused", refused, len(moves)), exitConflict}
}

// readMoves reads the moves that a plan command printed as JSON or YAML.
func (c *call) readMoves(path string) ([]any, error) {
	file, _, err := c.open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	if text, err = yaml.YAMLToJSON(text); err != nil {
		return nil, usagef("%s: is neither JSON nor YAML", path)
	}
	value, err := decoded(text)
	rows, ok := value.([]any)
	if err != nil || !ok {
		return nil, usagef("%s: is not a list of moves as printed by cadastre drain plan -o json", path)
	}
	moves := make([]any, len(rows))
	for i, row := range rows {
		move := map[string]any{}
		for _, name := range []string{"consumer", "consumerGeneration", "allocations"} {
			if move[name] = memberOf(row, name); move[name] == nil {
				return nil, usagef("%s: move %d has no %s", path, i+1, name)
			}
		}
		moves[i] = move
	}
	return moves, nil
}
