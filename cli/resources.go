package cli

import (
	"errors"
	"strings"

	"github.com/cadastre-dev/cadastre/client"
	"github.com/cadastre-dev/cadastre/internal/lists"
)

// withCandidates is the flag of a resource that is shown.
type withCandidates struct {
	Candidates bool `help:"Show where the resource, such as a flavor, fits now, instead of the resource."`
}

func showResource(c *call) error {
	if embedded[withCandidates](c).Candidates {
		return (&candidatesCommand{FromFlavor: c.text("resource"), Limit: 20}).Run(c.session)
	}
	resource, _, err := c.fetch()
	if err != nil {
		return err
	}
	of := map[string]any{"uuid": c.text("resource"), "includePrivate": true}
	capabilities, _, err := c.ask(operationNamed("ReadResourceCapabilities"), of, 0)
	if err != nil {
		return err
	}
	resource.(map[string]any)["capabilities"] = capabilities
	return one(c.session, c.columns(), resource)
}

func createResource(c *call) error {
	resource, _, err := c.fetch()
	if err != nil {
		return err
	}
	c.warn(memberOf(resource, "uuid"), c.texts("metadata"))
	return one(c.session, c.columns(), resource)
}

// warn notes which of the items that were written break a definition. The items are
// written whatever becomes of the question.
func (c *call) warn(resource any, items []string) {
	if len(items) == 0 {
		return
	}
	values := make([]any, len(items))
	for i, item := range items {
		values[i], _ = keyValue(item)
	}
	report, _, err := c.ask(operationNamed("ValidateMetadata"), map[string]any{"resource": resource, "values": values}, 0)
	if err != nil {
		return
	}
	reports, _ := memberOf(report, "items").([]any)
	for _, item := range reports {
		violations, _ := memberOf(item, "violations").([]any)
		for _, violation := range violations {
			c.notef("warning: %s: %s\n", printable(cell(memberOf(item, "key"), false)), printable(cell(memberOf(violation, "message"), false)))
		}
	}
}

func explainResources(c *call) error {
	if len(c.variables) == 0 {
		return usagef("give conditions to explain, such as --type")
	}
	found, _, err := c.fetch()
	if err != nil {
		return err
	}
	of := &client.ResourceExplanation{}
	if err := into(of, found); err != nil {
		return err
	}
	c.notef("%s considered\n", counted(of.Considered, "resource"))
	return list(c.session, columnsOf("kind clause passing remaining +path +ignored +notNumbers"), of.Clauses)
}

// ownership are the flags of who may change the items that are set.
type ownership struct {
	ServiceOwned bool `xor:"owner" help:"Only administrators and services change these items from now on."`
	UserOwned    bool `xor:"owner" help:"Users may change these items from now on."`
}

func listMetadata(c *call) error {
	found, _, err := c.fetch()
	if err != nil {
		return err
	}
	items, _ := found.([]any)
	err = list(c.session, c.columns(), items)
	known := map[any]bool{}
	for _, item := range items {
		known[memberOf(item, "key")] = true
	}
	for _, key := range c.texts("keys") {
		if !known[key] {
			err = errors.Join(err, missing("metadata item", key))
		}
	}
	return err
}

func showMetadata(c *call) error {
	found, _, err := c.fetch()
	if items, _ := found.([]any); err == nil && len(items) > 0 {
		return one(c.session, c.columns(), items[0])
	}
	if err != nil {
		return err
	}
	return missing("metadata item", c.text("key"))
}

func setMetadata(c *call) error {
	if of := embedded[ownership](c); of.ServiceOwned || of.UserOwned {
		assign(c.variables, "input.userModifiable", of.UserOwned)
	}
	items, _, err := c.fetch()
	if err != nil {
		return err
	}
	c.warn(c.text("resource"), c.texts("items"))
	return c.show(items)
}

func replaceMetadata(c *call) error {
	if len(c.texts("items")) == 0 {
		if err := c.confirmed(-1); err != nil {
			return err
		}
	}
	_, payload, err := c.fetch()
	if err != nil {
		return err
	}
	c.warn(c.text("resource"), c.texts("items"))
	if c.out.isData() {
		return one(c.session, columnsOf("metadata=resource.metadata retained"), payload)
	}
	items, _ := valueAt(payload, "resource.metadata").([]any)
	if retained, _ := memberOf(payload, "retained").([]any); len(retained) > 0 {
		keys := lists.Map(retained, func(item any) string { return printable(cell(memberOf(item, "key"), false)) })
		c.notef("kept, because only administrators and services change them: %s\n", strings.Join(keys, ", "))
	}
	return list(c.session, c.columns(), items)
}

// checkMetadata shows what is wrong with each item, and fails where one is not
// accepted.
func checkMetadata(c *call) error {
	report, _, err := c.fetch()
	if err != nil {
		return err
	}
	items, _ := memberOf(report, "items").([]any)
	columns := columnsOf("key accepted problems=violations.message +rules=violations.rule custom=isCustom suggestion")
	if err := list(c.session, columns, items); err != nil {
		return err
	}
	if memberOf(report, "accepted") != true {
		return inputError{errors.New("the metadata break their definitions")}
	}
	return nil
}
