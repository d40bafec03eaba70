package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// defaultCandidates is the number of candidates shown without a flag.
const defaultCandidates = 20

// findCandidates finds allocation candidates for a request.
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
	c.readDistinct()
	found, _, err := c.ask(operationNamed("FindCandidates"), c.variables, c.number("limit"))
	if err != nil {
		return err
	}
	return c.showCandidates(found, c.number("limit"))
}

// candidatesOf shows allocation candidates for the metadata of a resource.
func (c *call) candidatesOf(resource string, limit int) error {
	c.variables["resource"], c.variables["explain"] = resource, c.is("explain")
	c.variables["orderBy"] = constant(cmp.Or(c.text("order"), "breadth-first"))
	c.readDistinct()
	found, _, err := c.ask(operationNamed("FindCandidatesOf"), c.variables, limit)
	if err != nil {
		return err
	}
	if found == nil {
		return asksNothing(resource)
	}
	return c.showCandidates(found, limit)
}

// readDistinct turns the flags about candidates of one shape into variables.
func (c *call) readDistinct() {
	c.variables["distinct"] = constant(cmp.Or(c.text("distinct"), "none"))
	c.variables["alternatives"] = c.number("alternatives")
	c.told["alternatives"] = "--alternatives " + c.text("alternatives")
}

// checkAlone refuses a flag together with flags of a request, and with one other.
func (c *call) checkAlone(flag, other string) error {
	for _, condition := range strings.Fields("resource first-of required member-of in-tree group same-subtree root-required tolerate hosts " + other) {
		if c.given[condition] != nil {
			return usagef("--%s cannot be combined with other conditions", flag)
		}
	}
	return nil
}

// asksNothing is the error for a resource without a request in its metadata.
func asksNothing(resource string) error {
	return statusError{fmt.Errorf("the metadata of %s request no resources", resource), exitInput}
}

// readRequest turns the flags of a request into variables. A flag belongs to
// the group before it on the command line.
func (c *call) readRequest() error {
	groups, group, path := []any{}, c.variables, ""
	next := map[string]int{}
	traits := map[string][]string{}
	for _, one := range c.line.given {
		name, values := one.flag, c.given[one.flag]
		value := values[min(next[name], len(values)-1)]
		next[name]++
		switch name {
		case "group":
			path = fmt.Sprintf("groups[%d]", len(groups))
			c.told[path] = "--group " + value
			path += "."
			group = map[string]any{"suffix": value}
			groups = append(groups, group)
		case "resource":
			amount, err := amountOf(value, "amount")
			if err != nil {
				return usagef("--resource: %w", err)
			}
			amounts := append(listOf(group, "resources"), amount)
			c.told[fmt.Sprintf("%sresources[%d]", path, len(amounts)-1)] = "--resource " + value
			group["resources"] = amounts
		case "required":
			traits[path] = append(traits[path], value)
			setTraits(group, "", traits[path])
			c.tellTraits(path, traits[path])
		case "member-of":
			group["memberOf"] = append(listOf(group, "memberOf"), aggregatesOf(value))
			c.told[path+"memberOf"] = strings.TrimSpace(c.told[path+"memberOf"] + " --member-of " + value)
		case "first-of":
			alternative, err := inputOf(definitionOf("GroupAlternativeInput"), value)
			if err != nil {
				return usagef("--first-of: %w", err)
			}
			all := append(listOf(group, "firstOf"), alternative)
			c.told[fmt.Sprintf("%sfirstOf[%d]", path, len(all)-1)] = "--first-of " + value
			group["firstOf"] = all
		case "in-tree":
			group["inTree"] = value
			c.told[path+"inTree"] = "--in-tree"
		}
	}
	c.variables["groups"] = groups
	return c.readTree()
}

// readTree turns the flags about whole trees into variables.
func (c *call) readTree() error {
	c.variables["sameSubtree"] = lists.Map(c.given["same-subtree"], func(text string) any {
		return map[string]any{"suffixes": strings.Split(text, ",")}
	})
	for i, text := range c.given["same-subtree"] {
		c.told[fmt.Sprintf("sameSubtree[%d]", i)] = "--same-subtree " + text
	}
	root := map[string]any{}
	setTraits(root, "", c.given["root-required"])
	if root["requiredAnySets"] != nil {
		return usagef("--root-required: the form in:A,B is not supported for the root; write A,B or !A")
	}
	c.variables["rootRequired"], c.variables["rootForbidden"] = root["requiredAll"], root["forbidden"]
	for _, field := range []string{"rootRequired", "rootForbidden"} {
		c.told[field] = "--root-required " + strings.Join(c.given["root-required"], ",")
	}
	for i, taint := range c.given["tolerate"] {
		c.variables["tolerates"] = append(listOf(c.variables, "tolerates"), taint)
		c.told[fmt.Sprintf("tolerates[%d]", i)] = "--tolerate " + taint
	}
	if text, ok := c.given["hosts"]; ok {
		filter, err := inputOf(definitionOf("ResourceFilter"), text[0])
		if err != nil {
			return usagef("--hosts: %w", err)
		}
		c.variables["hosts"] = filter
	}
	if seed, ok := c.given["seed"]; ok {
		number, err := valueOf("Int", seed[0])
		if err != nil {
			return usagef("--seed: %w", err)
		}
		c.variables["seed"] = number
	}
	for _, list := range [][3]string{{"shape", "ShapeInput", "shapes"}, {"prefer", "PreferenceInput", "preferences"}} {
		if err := c.readInputs(list[0], list[1], list[2]); err != nil {
			return err
		}
	}
	c.variables["groupPolicy"], c.variables["explain"] = constant(c.text("group-policy")), c.is("explain")
	c.variables["orderBy"] = constant(c.text("order"))
	return nil
}

// readInputs adds the values of a flag to a list of inputs.
func (c *call) readInputs(flag, input, variable string) error {
	for i, text := range c.given[flag] {
		value, err := inputOf(definitionOf(input), text)
		if err != nil {
			return usagef("--%s: %w", flag, err)
		}
		c.variables[variable] = append(listOf(c.variables, variable), value)
		c.told[fmt.Sprintf("%s[%d]", variable, i)] = "--" + flag + " " + text
	}
	return nil
}

// showCandidates shows the candidates of an answer, or the explanation. A table
// has a row for each provider of a candidate.
func (c *call) showCandidates(found any, limit int) error {
	if c.is("explain") {
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

// suffixesOf returns the groups of a candidate that a provider serves.
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
