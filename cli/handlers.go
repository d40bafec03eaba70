package cli

import (
	"fmt"
	"strings"

	"github.com/cadastre-dev/cadastre/metadef"
)

// prepare are the commands that set further variables before their operation is
// selected and sent.
var prepare = map[string]func(*call) error{
	"aggregate list":     groupByAggregate,
	"association delete": findAssociation,
	"association list":   filterAssociations,
	"association set":    changeAssociation,
	"capability list":    withValues,
	"capacity list":      groupCapacity,
	"inventory set":      keepInventory,
	"metadata replace":   confirmNone,
	"resource explain":   needsConditions,
	"tag create":         tagsOf,
}

// shows are the commands that show the answer in another way than in the columns of
// the noun. They get the value at the path of the operation, and the payload.
var shows = map[string]func(c *call, found, payload any) error{
	"capability list":  showCapabilities,
	"capability show":  showValues,
	"metadata check":   showChecks,
	"metadata list":    showMetadata,
	"metadata replace": showReplaced,
	"resource explain": showClauses,
	"resource show":    showResource,
	"trait list":       showTraits,
	"trait set":        showTraits,
}

// handlers are the commands that do more than to send one operation.
var handlers = map[string]func(*call) error{
	"allocation set":    setAllocations,
	"association show":  showAssociation,
	"candidates":        findCandidates,
	"completion":        printCompletion,
	"context delete":    deleteContexts,
	"context list":      listContexts,
	"context use":       useContext,
	"login":             login,
	"metadata problems": listProblems,
	"metadefs export":   exportDefinitions,
	"metadefs load":     loadDefinitions,
	"metadefs schema":   func(c *call) error { return c.printf("%s", metadef.DocumentSchema()) },
	"metadefs unload":   unloadDefinitions,
	"provider load":     loadProviders,
	"query":             sendDocument,
	"resource load":     loadResources,
	"schema":            func(c *call) error { return c.printf("%s", c.program.SDL) },
	"trait show":        showTrait,
	"usage list":        listUsages,
	"version":           func(c *call) error { return c.printf("%s\n", c.program.inWords()) },
	"watch all":         watchChanges,
	"watch capacity":    watchCapacity,
	"watch namespace":   watchChanges,
	"watch provider":    watchChanges,
	"watch resource":    watchChanges,
}

func tagsOf(c *call) error {
	tags := []any{}
	for _, name := range c.given["name"] {
		tag := map[string]any{"name": name}
		if parent, ok := c.given["parent"]; ok {
			tag["parent"] = parent[0]
		}
		tags = append(tags, tag)
	}
	assign(c.variables, "input.tags", tags)
	assign(c.variables, "input.mode", "APPEND")
	return nil
}

// filterAssociations makes a filter of --resource-type where a namespace is given.
func filterAssociations(c *call) error {
	types := c.text("resource-type")
	if c.text("namespace") != "" && types != "" {
		delete(c.variables, "resourceType")
		assign(c.variables, "filter.resourceTypes", []string{types})
	}
	if len(c.variables) == 0 {
		return usagef("name a namespace, or --resource-type")
	}
	return nil
}

// association returns the association that the arguments name, and puts its id
// into the input. Several of one namespace and type differ by prefix or target.
func (c *call) association() (any, error) {
	namespace, resourceType := c.text("namespace"), c.text("resource-type")
	variables := map[string]any{"namespace": namespace, "filter": c.variables["filter"]}
	found, err := c.query("ListAssociations", variables)
	all := listOf(found, "")
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, missing("association of "+namespace+" with", resourceType)
	case len(all) == 1:
		assign(c.variables, "input.id", memberOf(all[0], "id"))
		return all[0], nil
	}
	var lines strings.Builder
	for _, of := range all {
		fmt.Fprintf(&lines, "\n  --prefix '%s' --target '%s'", wordOf(of, "prefix"), wordOf(of, "propertiesTarget"))
	}
	return nil, usagef("%s applies to %s in %d ways; name one:%s", namespace, resourceType, len(all), lines.String())
}

func showAssociation(c *call) error {
	found, err := c.association()
	if err != nil {
		return err
	}
	return c.one(c.columns(), found)
}

func changeAssociation(c *call) error {
	if c.given["new-prefix"] == nil && c.given["new-target"] == nil {
		return usagef("say what changes: --new-prefix or --new-target")
	}
	return findAssociation(c)
}

// findAssociation puts the id of the association into the input.
func findAssociation(c *call) error {
	_, err := c.association()
	delete(c.variables, "filter")
	delete(c.variables, "namespace")
	return err
}
