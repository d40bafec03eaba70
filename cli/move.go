package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/cadastre-dev/cadastre/client"
)

// movesAtOnce is the maximum number of moves of one request.
const movesAtOnce = 100

// applyMoves makes the moves of a file, in batches. It fails if a move was refused,
// after it has shown all.
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
			return err
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

// readMoves reads the output of a plan in JSON or YAML.
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
		return nil, usagef("%s: is not a list of moves, as of cadastre drain plan -o json", path)
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
