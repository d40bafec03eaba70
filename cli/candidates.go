package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// defaultCandidates is the maximum number of candidates of a command without
// --limit.
const defaultCandidates = 20

// findCandidates shows candidates for the request of the flags or --from-flavor.
func findCandidates(c *call) error {
	if flavor := c.text("from-flavor"); flavor != "" {
		if err := c.checkAlone("from-flavor", "change"); err != nil {
			return err
		}
		return c.candidatesOf(flavor, c.number("limit"))
	}
	if err := c.readRequest(); err != nil {
		return err
	}
	return c.showCandidates("FindCandidates", c.number("limit"))
}

// candidatesOf shows candidates for the request in the metadata of a resource.
func (c *call) candidatesOf(resource string, limit int) error {
	c.variables["resource"], c.variables["explain"] = resource, c.is("explain")
	c.variables["orderBy"] = constant(cmp.Or(c.text("order"), "breadth-first"))
	return c.showCandidates("FindCandidatesOf", limit)
}

// checkAlone refuses a flag if a condition of a request, or the other flag, is
// given, too.
func (c *call) checkAlone(flag, other string) error {
	for _, condition := range strings.Fields("resource first-of required member-of in-tree group same-subtree root-required tolerate hosts " + other) {
		if c.given[condition] != nil {
			return usagef("--%s cannot be combined with --%s", flag, condition)
		}
	}
	return nil
}

// asksNothing is the error for a resource without a request in its metadata.
func asksNothing(resource any) error {
	return statusError{fmt.Errorf("the metadata of %v request no resources", resource), exitInput}
}

// readRequest turns the flags of a request into variables. A flag belongs to
// the last --group before it on the command line, if there is one.
func (c *call) readRequest() error {
	group, path := c.variables, ""
	c.variables["groups"], c.told["resources"] = []any{}, "--resource"
	next := map[string]int{}
	traits := map[string][]string{}
	for _, one := range c.line.given {
		name, values := one.flag, c.given[one.flag]
		value := values[min(next[name], len(values)-1)]
		next[name]++
		told := "--" + name + " " + value
		switch name {
		case "group":
			group = map[string]any{"suffix": value}
			path = c.add(c.variables, "", "groups", group, told) + "."
		case "resource":
			amount, err := amountOf(value, "amount")
			if err != nil {
				return usagef("--resource: %w", err)
			}
			c.add(group, path, "resources", amount, told)
		case "required":
			traits[path] = append(traits[path], value)
			setTraits(group, "", traits[path])
			c.tellTraits(path, traits[path])
		case "member-of":
			group["memberOf"] = append(listOf(group, "memberOf"), aggregatesOf(value))
			c.told[path+"memberOf"] = strings.TrimSpace(c.told[path+"memberOf"] + " " + told)
		case "first-of":
			alternative, err := valueOf("GroupAlternativeInput", value)
			if err != nil {
				return usagef("--first-of: %w", err)
			}
			c.add(group, path, "firstOf", alternative, told)
		case "in-tree":
			group["inTree"] = value
			c.told[path+"inTree"] = "--in-tree"
		}
	}
	if err := c.readTree(); err != nil {
		return err
	}
	return c.readInputs()
}

// add appends a value to a list of an input at a path, and notes the flag that
// gave the value. It returns the path of the value.
func (c *call) add(to map[string]any, path, field string, value any, flag string) string {
	list := listOf(to, field)
	at := fmt.Sprintf("%s%s[%d]", path, field, len(list))
	to[field], c.told[at] = append(list, value), flag
	return at
}

// readTree sets the variables of the flags that belong to no group.
func (c *call) readTree() error {
	root := map[string]any{}
	setTraits(root, "", c.given["root-required"])
	if root["requiredAnySets"] != nil {
		return usagef("--root-required: the form in:A,B is not supported for the root; write A,B or !A")
	}
	c.variables["rootRequired"], c.variables["rootForbidden"] = root["requiredAll"], root["forbidden"]
	for _, field := range []string{"rootRequired", "rootForbidden"} {
		c.told[field] = "--root-required " + strings.Join(c.given["root-required"], ",")
	}
	c.variables["groupPolicy"], c.variables["explain"] = constant(c.text("group-policy")), c.is("explain")
	c.variables["orderBy"] = constant(c.text("order"))
	return nil
}

// readInputs sets the variables of the flags with the attribute input.
func (c *call) readInputs() error {
	for _, p := range c.params {
		variable := p.attributes["input"]
		if variable == "" {
			continue
		}
		for _, text := range c.given[p.key] {
			value, err := valueOf(p.typ.Name(), text)
			switch {
			case err != nil:
				return usagef("%s: %w", p.label(), err)
			case p.isList():
				c.add(c.variables, "", variable, value, p.label()+" "+text)
			default:
				c.variables[variable] = value
			}
		}
	}
	return nil
}

// showCandidates sends an operation and shows its candidates, or the explanation.
// A table has a row for each provider of a candidate.
func (c *call) showCandidates(operation string, limit int) error {
	c.variables["distinct"] = constant(cmp.Or(c.text("distinct"), "none"))
	c.variables["alternatives"] = c.number("alternatives")
	c.told["alternatives"] = "--alternatives " + c.text("alternatives")
	found, _, err := c.ask(operationNamed(operation), c.variables, limit)
	switch {
	case err != nil:
		return err
	case found == nil:
		return asksNothing(c.variables["resource"])
	case c.is("explain"):
		return c.showExplanation(memberOf(found, "explain"))
	}
	nodes := listOf(found, "nodes")
	if limit > 0 {
		nodes = nodes[:min(len(nodes), limit)]
	}
	count := wordOf(found, "totalCount")
	if memberOf(found, "totalCountIsExact") != true {
		count += " or more"
	}
	c.notef("%d of %s candidates\n", len(nodes), count)
	if c.out.isData() {
		return c.list("allocations mappings +score +terms +alternatives", nodes)
	}
	rows := []any{}
	for i, candidate := range nodes {
		for _, allocation := range listOf(candidate, "allocations") {
			row := allocation.(map[string]any)
			row["candidate"], row["groups"] = i+1, suffixesOf(candidate, valueAt(row, "provider.uuid"))
			row["score"] = memberOf(candidate, "score")
			rows = append(rows, row)
		}
	}
	return c.list("candidate provider=provider.name resources groups +score +uuid=provider.uuid", rows)
}

// suffixesOf returns the suffixes of the groups that a provider serves in a
// candidate, except the empty one.
func suffixesOf(candidate, provider any) (suffixes []any) {
	for _, mapping := range listOf(candidate, "mappings") {
		for _, of := range listOf(mapping, "providers") {
			if suffix := memberOf(mapping, "suffix"); memberOf(of, "uuid") == provider && suffix != "" {
				suffixes = append(suffixes, suffix)
			}
		}
	}
	return suffixes
}

// showExplanation shows how many providers each condition removes, and the
// nearest providers.
func (c *call) showExplanation(of any) error {
	if c.out.isData() {
		return c.one("considered steps nearest", of)
	}
	c.notef("%s considered\n", counted(numberOf(of, "considered"), "provider"))
	for _, near := range listOf(of, "nearest") {
		var lacks []string
		for _, short := range listOf(near, "missing") {
			lacks = append(lacks, wordOf(short, "short")+" "+wordOf(short, "resourceClass"))
		}
		for _, trait := range listOf(near, "traits") {
			lacks = append(lacks, cell(trait, false))
		}
		c.notef("near miss: %s lacks %s\n", wordOf(near, "provider.name"), strings.Join(lacks, ", "))
	}
	return c.list("kind constraint eliminated remaining +path", listOf(of, "steps"))
}

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
