package cli

import (
	"fmt"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

const fitColumns = "exact atLeast atMost limitedBy"

// countFits shows how many more consumers of a request fit.
func countFits(c *call) error {
	if flavor := c.text("from-flavor"); flavor != "" {
		if err := c.checkAlone("from-flavor", "change"); err != nil {
			return err
		}
		fit, err := c.query("CountFitsOf", map[string]any{"resource": flavor})
		if err != nil {
			return err
		}
		if fit == nil {
			return asksNothing(flavor)
		}
		return c.showFit(fitColumns, fit)
	}
	if len(c.given["mix"]) > 0 {
		return countFitsTogether(c)
	}
	if err := c.readRequest(); err != nil {
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
	return c.showFit(fitColumns, fit)
}

// countFitsTogether shows how many more consumers of a mix fit.
func countFitsTogether(c *call) error {
	if err := c.checkAlone("mix", ""); err != nil {
		return err
	}
	if err := c.readInputs(); err != nil {
		return err
	}
	operation := "CountFitsTogether"
	if len(listOf(c.variables, "changes")) > 0 {
		operation = "WhatIfFitsTogether"
	}
	mix, err := c.query(operation, c.variables)
	if err != nil {
		return err
	}
	if !c.out.isData() {
		mix.(map[string]any)["each"] = lists.Map(listOf(mix, "each"), func(of any) any {
			return fmt.Sprintf("%s to %s", wordOf(of, "atLeast"), wordOf(of, "atMost"))
		})
		mix.(map[string]any)["next"] = "--mix " + c.given["mix"][numberOf(mix, "next")]
	}
	return c.showFit("exact atLeast atMost each next limitedBy", mix)
}

// showFit shows an answer of fits or fitsTogether. Outside JSON and YAML, each
// limit is a name with the number of its providers.
func (c *call) showFit(columns string, fit any) error {
	if !c.out.isData() {
		fit.(map[string]any)["limitedBy"] = lists.Map(listOf(fit, "limitedBy"), func(limit any) any {
			return fmt.Sprintf("%s (%s)", wordOf(limit, "name"), counted(numberOf(limit, "providers"), "provider"))
		})
	}
	return c.one(columns, fit)
}
