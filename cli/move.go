package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/cadastre-dev/cadastre/client"
)

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
