package cli

import (
	"fmt"
	"strings"
)

// ofObject is the flag of what can be about the properties of an object.
type ofObject struct {
	Object *string `placeholder:"NAME" help:"The object that the properties belong to."`
}

// ofParent is the flag of new tags.
type ofParent struct {
	Parent *string `placeholder:"NAME" help:"The tag that they are kinds of."`
}

func emptyNamespace(c *call) error {
	if err := c.confirmed(-1); err != nil {
		return err
	}
	namespace, _, err := c.fetch()
	if err != nil {
		return err
	}
	return one(c.session, c.columns(), namespace)
}

// objectProperties returns the properties of the object that --object names.
func (c *call) objectProperties() ([]any, error) {
	variables := map[string]any{"namespace": c.text("namespace"), "name": *embedded[ofObject](c).Object}
	if of := c.text("resource-type"); of != "" {
		variables["resourceType"] = of
	}
	object, _, err := c.ask(operationNamed("ReadObjectProperties"), variables, 0)
	properties, _ := object.([]any)
	return properties, err
}

func listProperties(c *call) error {
	if embedded[ofObject](c).Object == nil {
		return c.standard()
	}
	properties, err := c.objectProperties()
	if err != nil {
		return err
	}
	return list(c.session, c.columns(), properties)
}

func showProperty(c *call) error {
	of := embedded[ofObject](c).Object
	if of == nil {
		return c.standard()
	}
	properties, err := c.objectProperties()
	if err != nil {
		return err
	}
	for _, property := range properties {
		if memberOf(property, "name") == c.text("name") {
			return one(c.session, c.columns(), property)
		}
	}
	return missing("property of "+*of, c.text("name"))
}

func createTags(c *call) error {
	tags := []any{}
	for _, name := range c.texts("name") {
		tags = append(tags, map[string]any{"name": name, "parent": embedded[ofParent](c).Parent})
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
		if delete(c.variables, "resourceType"); types != "" {
			assign(c.variables, "filter.resourceTypes", []string{types})
		}
	case types == "":
		return usagef("name a namespace, or --resource-type")
	}
	return c.sendAndShow()
}

// association returns the association that the arguments and flags name.
func (c *call) association() (any, error) {
	variables := map[string]any{"namespace": c.variables["namespace"], "filter": c.variables["filter"]}
	delete(c.variables, "namespace")
	delete(c.variables, "filter")
	found, _, err := c.ask(operationNamed("ListAssociations"), variables, 0)
	all, _ := found.([]any)
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, missing("association of "+c.text("namespace")+" with", c.text("resource-type"))
	case len(all) == 1:
		assign(c.variables, "input.id", memberOf(all[0], "id"))
		return all[0], nil
	}
	var lines strings.Builder
	for _, of := range all {
		fmt.Fprintf(&lines, "\n  --prefix '%s' --target '%s'", cell(memberOf(of, "prefix"), false), cell(memberOf(of, "propertiesTarget"), false))
	}
	return nil, usagef("%s applies to %s in %d ways; name one:%s", c.text("namespace"), c.text("resource-type"), len(all), lines.String())
}

func showAssociation(c *call) error {
	found, err := c.association()
	if err != nil {
		return err
	}
	return one(c.session, c.columns(), found)
}

func setAssociation(c *call) error {
	if c.texts("new-prefix") == nil && c.texts("new-target") == nil {
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
