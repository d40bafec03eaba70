package cli

import (
	"fmt"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// showDrainPlan shows the moves of a plan. It fails if a consumer does not fit
// elsewhere, after it has named these consumers.
func showDrainPlan(c *call, found, _ any) error {
	moves := listOf(found, "moves")
	if err := c.showMoves(moves); err != nil {
		return err
	}
	for _, one := range listOf(found, "unplaced") {
		amounts := lists.Map(listOf(one, "resources"), func(of any) string { return wordOf(of, "resourceClass") + "=" + wordOf(of, "amount") })
		c.notef("%s does not fit: %s\n", wordOf(memberOf(one, "consumer"), "uuid"), strings.Join(amounts, ", "))
	}
	unplaced := numberOf(found, "unplacedCount")
	if unplaced == 0 {
		return nil
	}
	return statusError{fmt.Errorf("%d of %d consumers do not fit elsewhere", unplaced, unplaced+len(moves)), exitConflict}
}

// showMoves shows moves, in a table with the names of the providers alone.
func (c *call) showMoves(moves []any) error {
	if !c.out.isData() {
		for _, move := range moves {
			for _, side := range []string{"from", "to"} {
				names := lists.Map(listOf(move, side), func(of any) string { return wordOf(memberOf(of, "provider"), "name") })
				move.(map[string]any)[side] = strings.Join(names, ", ")
			}
		}
	}
	return c.list(c.columns(), moves)
}

// showRebalancePlan shows the moves of a plan.
func showRebalancePlan(c *call, found, _ any) error {
	moves := listOf(found, "moves")
	if !c.out.isData() {
		c.notef("at least %s fit before the moves\n", strings.Join(lists.Map(listOf(found, "atLeast"), func(of any) string { return fmt.Sprint(of) }), ", "))
	}
	return c.showMoves(moves)
}
