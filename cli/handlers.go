package cli

import (
	"fmt"
	"strings"

	"github.com/cadastre-dev/cadastre/metadef"
)

// handlers are the commands that do more than to send an operation and to show
// its answer, or that send none.
var handlers = map[string]func(*call) error{
	"aggregate list":     listAggregates,
	"allocation set":     setAllocations,
	"association delete": deleteAssociation,
	"association list":   listAssociations,
	"association set":    setAssociation,
	"association show":   showAssociation,
	"candidates":         findCandidates,
	"capability list":    listCapabilities,
	"capability show":    showCapability,
	"capacity list":      listCapacity,
	"completion":         printCompletion,
	"context delete":     deleteContexts,
	"context list":       listContexts,
	"context use":        useContext,
	"inventory set":      setInventory,
	"login":              login,
	"metadata check":     checkMetadata,
	"metadata list":      listMetadata,
	"metadata problems":  listProblems,
	"metadata replace":   replaceMetadata,
	"metadefs export":    exportDefinitions,
	"metadefs load":      loadDefinitions,
	"metadefs schema":    func(c *call) error { return c.printf("%s", metadef.DocumentSchema()) },
	"metadefs unload":    unloadDefinitions,
	"provider load":      loadProviders,
	"query":              sendDocument,
	"resource explain":   explainResources,
	"resource load":      loadResources,
	"resource show":      showResource,
	"schema":             func(c *call) error { return c.printf("%s", c.program.SDL) },
	"tag create":         createTags,
	"trait list":         listTraits,
	"trait set":          listTraits,
	"trait show":         showTrait,
	"usage list":         listUsages,
	"version":            func(c *call) error { return c.printf("%s\n", c.program.inWords()) },
	"watch all":          watchChanges,
	"watch capacity":     watchCapacity,
	"watch namespace":    watchChanges,
	"watch provider":     watchChanges,
	"watch resource":     watchChanges,
}

func createTags(c *call) error {
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
	return c.sendAndShow()
}

func listAssociations(c *call) error {
	types := c.text("resource-type")
	switch {
	case c.text("namespace") != "":
		c.operation = operationNamed("ListAssociations")
		if types != "" {
			assign(c.variables, "filter.resourceTypes", []string{types})
		}
	case types == "":
		return usagef("name a namespace, or --resource-type")
	}
	return c.sendAndShow()
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

func setAssociation(c *call) error {
	if c.given["new-prefix"] == nil && c.given["new-target"] == nil {
		return usagef("say what changes: --new-prefix or --new-target")
	}
	if _, err := c.association(); err != nil {
		return err
	}
	return c.sendAndShow()
}

func deleteAssociation(c *call) error {
	if _, err := c.association(); err != nil {
		return err
	}
	return c.remove()
}
