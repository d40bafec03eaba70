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
	if !c.out.isData() {
		for _, move := range moves {
			for _, side := range []string{"from", "to"} {
				names := lists.Map(listOf(move, side), func(of any) string { return wordOf(memberOf(of, "provider"), "name") })
				move.(map[string]any)[side] = strings.Join(names, ", ")
			}
		}
	}
	if err := c.list(c.columns(), moves); err != nil {
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
