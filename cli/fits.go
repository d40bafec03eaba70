package cli

import (
	"fmt"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// countFits shows how many more consumers of a request fit.
func countFits(c *call) error {
	if flavor := c.text("from-flavor"); flavor != "" {
		if err := c.checkFlavorAlone(); err != nil {
			return err
		}
		fit, err := c.query("CountFitsOf", map[string]any{"resource": flavor})
		if err != nil {
			return err
		}
		if fit == nil {
			return asksNothing(flavor)
		}
		return c.showFit(fit)
	}
	if err := c.readRequest(); err != nil {
		return err
	}
	told := map[string]string{}
	for path, flag := range c.told {
		told["request."+path] = flag
	}
	c.told = told
	if err := c.readInputs("change", "WhatIfChangeInput", "changes"); err != nil {
		return err
	}
	operation, variables := "CountFits", map[string]any{"request": c.request()}
	if changes := listOf(c.variables, "changes"); len(changes) > 0 {
		operation, variables["changes"] = "WhatIfFits", changes
	}
	fit, err := c.query(operation, variables)
	if err != nil {
		return err
	}
	return c.showFit(fit)
}

// showFit shows the numbers and the limits of an answer.
func (c *call) showFit(fit any) error {
	if !c.out.isData() {
		fit.(map[string]any)["limitedBy"] = lists.Map(listOf(fit, "limitedBy"), func(limit any) any {
			return fmt.Sprintf("%s (%s)", wordOf(limit, "name"), counted(numberOf(limit, "providers"), "provider"))
		})
	}
	return c.one("exact atLeast atMost limitedBy", fit)
}
