package cli

// inDetail is the flag of a list of capabilities.
type inDetail struct {
	Detail bool `help:"A row for each value in use."`
}

// visibility is who discovers a capability.
type visibility struct {
	Private bool `xor:"visibility" help:"Only administrators discover it."`
	Public  bool `xor:"visibility" help:"Everyone discovers it who may discover capabilities."`
}

func listCapabilities(c *call) error {
	isDetailed := embedded[inDetail](c).Detail
	c.variables["includePrivate"] = c.text("all") == "true"
	c.variables["withValues"] = isDetailed
	found, _, err := c.ask(c.operation, c.variables, 0)
	if err != nil {
		return err
	}
	capabilities, _ := found.([]any)
	if !isDetailed {
		return list(c.session, columnsOf("name private valueCount"), capabilities)
	}
	rows := []any{}
	for _, of := range capabilities {
		if valueAt(of, "values.pageInfo.hasNextPage") == true {
			variables := map[string]any{"resourceType": c.text("type"), "name": memberOf(of, "name")}
			if of, _, err = c.ask(operationNamed("ReadCapability"), variables, 0); err != nil {
				return err
			}
		}
		values, _ := valueAt(of, "values.nodes").([]any)
		for _, value := range values {
			rows = append(rows, map[string]any{"name": memberOf(of, "name"), "private": memberOf(of, "private"),
				"value": memberOf(value, "value"), "resourceCount": memberOf(value, "resourceCount")})
		}
	}
	return list(c.session, columnsOf("name private value resourceCount"), rows)
}

func showCapability(c *call) error {
	of, _, err := c.fetch()
	if err != nil {
		return err
	}
	if values, _ := valueAt(of, "values.nodes").([]any); !c.out.isData() {
		return list(c.session, columnsOf("value resourceCount"), values)
	}
	return one(c.session, columnsOf("name private values=values.nodes"), of)
}

func setVisibility(c *call) error {
	of := embedded[visibility](c)
	if of.Private || of.Public {
		assign(c.variables, "input.private", of.Private)
	} else if c.verb.name == "set" {
		return usagef("say who discovers it: --private or --public")
	}
	return c.sendAndShow()
}

func capabilitiesOf(c *call) error {
	c.variables["includePrivate"] = c.text("all") == "true"
	return c.sendAndShow()
}
