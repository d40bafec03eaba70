package cli

import "fmt"

// showDrainPlan shows the moves of a plan. It fails if a consumer does not fit
// elsewhere, after it has named these consumers.
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

// showMoves shows moves, in a table with the names of the providers alone.
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
