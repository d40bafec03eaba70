package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

func showResource(c *call, resource, _ any) error {
	if c.is("candidates") {
		return c.candidatesOf(c.text("resource"), defaultCandidates)
	}
	of := map[string]any{"uuid": c.text("resource"), "includePrivate": true}
	capabilities, err := c.query("ReadResourceCapabilities", of)
	if err != nil {
		return err
	}
	resource.(map[string]any)["capabilities"] = capabilities
	return c.one(c.columns(), resource)
}

// warn notes the written items that break a definition. It ignores errors,
// because the items are already written.
func (c *call) warn(resource any, items []string) {
	if len(items) == 0 {
		return
	}
	values := lists.Map(items, func(item string) any {
		value, _ := keyValue(item) // it was parsed before
		return value
	})
	report, err := c.query("ValidateMetadata", map[string]any{"resource": resource, "values": values})
	if err != nil {
		return
	}
	for _, item := range listOf(report, "items") {
		for _, violation := range listOf(item, "violations") {
			c.notef("warning: %s: %s\n", wordOf(item, "key"), wordOf(violation, "message"))
		}
	}
}

func needsConditions(c *call) error {
	if len(c.variables) == 0 {
		return usagef("give conditions to explain, such as --type")
	}
	return c.standard()
}

func showClauses(c *call, found, _ any) error {
	c.notef("%s considered\n", counted(numberOf(found, "considered"), "resource"))
	return c.list("kind clause passing remaining +path +ignored +notNumbers", listOf(found, "clauses"))
}

func showMetadata(c *call, items, _ any) error {
	err := c.show(items)
	for _, key := range c.given["keys"] {
		if len(pick(listOf(items, ""), "key", key)) == 0 {
			err = errors.Join(err, missing("metadata item", key))
		}
	}
	return err
}

// confirmNone asks before it deletes all metadata, unless items replace them.
func confirmNone(c *call) error {
	if len(c.given["items"]) > 0 {
		c.given["yes"] = []string{"true"}
	}
	return c.standard()
}

func showReplaced(c *call, _, payload any) error {
	if c.out.isData() {
		return c.one("metadata=resource.metadata retained", payload)
	}
	if keys := wordOf(payload, "retained.key"); keys != "" {
		c.notef("kept, because only administrators and services change them: %s\n", keys)
	}
	return c.list(c.columns(), listOf(payload, "resource.metadata"))
}

// showChecks shows the problems of each item, and fails if one is not accepted.
func showChecks(c *call, report, _ any) error {
	if err := c.list(c.columns(), listOf(report, "items")); err != nil {
		return err
	}
	if memberOf(report, "accepted") != true {
		return statusError{errors.New("the metadata break their definitions"), exitInput}
	}
	return nil
}

// listProblems walks all pages of resources and shows every item that breaks a
// definition.
func listProblems(c *call) error {
	filter, _ := c.variables["filter"].(map[string]any)
	all, err := c.query("CountResources", map[string]any{"filter": filter["resources"]})
	if err != nil {
		return err
	}
	done := c.progress("scanning resources", numberOf(all, "totalCount"))
	items, resources, scanned := []any{}, 0, 0
	for {
		page, _, err := c.ask(c.operation, c.variables, 0)
		if err != nil {
			return err
		}
		items, resources = append(items, brokenItems(page)...), resources+len(listOf(page, "nodes"))
		seen := numberOf(page, "scanned")
		scanned += seen
		done.add(seen)
		if memberOf(page, "complete") == true {
			break
		}
		c.variables["after"] = memberOf(page, "scannedTo")
	}
	if err := c.list(c.columns(), items); err != nil {
		return err
	}
	verb := "break their"
	if resources == 1 {
		verb = "breaks its"
	}
	c.notef("%s %s definitions, of %d scanned\n", counted(resources, "resource"), verb, scanned)
	return nil
}

// brokenItems returns the problems of the resources of a page, one for each
// item and rule.
func brokenItems(page any) (items []any) {
	for _, of := range listOf(page, "nodes") {
		for _, problem := range listOf(of, "problems") {
			item := problem.(map[string]any)
			item["resource"], item["name"] = valueAt(of, "resource.uuid"), valueAt(of, "resource.name")
			item["type"] = valueAt(of, "resource.type.name")
			items = append(items, item)
		}
	}
	return items
}

// wouldBreak returns the line for an item that a change would break.
func wouldBreak(item any) string {
	return fmt.Sprintf("would break: %s %s (%s): %s=%s: %s\n", wordOf(item, "type"), wordOf(item, "name"),
		wordOf(item, "resource"), wordOf(item, "key"), wordOf(item, "value"), wordOf(item, "message"))
}

// noteBroken notes the metadata that a change would break, in a dry run.
func (c *call) noteBroken(page any) error {
	for _, item := range brokenItems(page) {
		c.notef("%s", wouldBreak(item))
	}
	more := ""
	if memberOf(page, "complete") != true {
		more = "; there may be more"
	}
	c.notef("dry run, nothing was changed: metadata of %s would break definitions%s\n",
		counted(len(listOf(page, "nodes")), "resource"), more)
	return nil
}

func withValues(c *call) error {
	c.variables["withValues"] = c.is("detail")
	return c.standard()
}

func showCapabilities(c *call, found, _ any) (err error) {
	if !c.is("detail") {
		return c.show(found)
	}
	rows := []any{}
	for _, of := range listOf(found, "") {
		if valueAt(of, "values.pageInfo.hasNextPage") == true {
			variables := map[string]any{"resourceType": c.text("type"), "name": memberOf(of, "name")}
			if of, err = c.query("ReadCapability", variables); err != nil {
				return err
			}
		}
		for _, value := range listOf(of, "values.nodes") {
			row := value.(map[string]any)
			row["name"], row["private"] = memberOf(of, "name"), memberOf(of, "private")
			rows = append(rows, row)
		}
	}
	return c.list("name private value resourceCount", rows)
}

func showValues(c *call, found, _ any) error {
	if !c.out.isData() {
		return c.list("value resourceCount", listOf(found, "values.nodes"))
	}
	return c.one("name private values=values.nodes", found)
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
	return c.standard()
}

// filterAssociations turns --resource-type into a filter if a namespace is
// given, and runs the command.
func filterAssociations(c *call) error {
	types := c.text("resource-type")
	if c.text("namespace") != "" && types != "" {
		delete(c.variables, "resourceType")
		assign(c.variables, "filter.resourceTypes", []string{types})
	}
	if len(c.variables) == 0 {
		return usagef("name a namespace, or --resource-type")
	}
	return c.standard()
}

// association returns the association of the arguments, and sets its id in the
// input. Associations of one namespace and type differ by prefix or target; it
// is an error if none or several match.
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
	return nil, usagef("%s has associations with %s: %d; choose one by its flags:%s", namespace, resourceType, len(all),
		lines.String())
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
		return usagef("nothing to change: use --new-prefix or --new-target")
	}
	return findAssociation(c)
}

// findAssociation sets the id of the association, and runs the command.
func findAssociation(c *call) error {
	if _, err := c.association(); err != nil {
		return err
	}
	delete(c.variables, "filter")
	delete(c.variables, "namespace")
	return c.standard()
}

// resourcesAtOnce is the maximum number of resources of one request.
const resourcesAtOnce = 1000

// applyDefaults applies the default rules of a namespace to all resources, page
// by page, and shows all changes, even if a later page fails. It fails if a change
// was refused.
func applyDefaults(c *call) error {
	input := map[string]any{"namespace": c.text("namespace"), "first": resourcesAtOnce, "dryRun": c.is("dry-run")}
	var rows []any
	refused := 0
	for isFirst := true; isFirst || input["after"] != nil; isFirst = false {
		page, err := c.query("ApplyDefaults", map[string]any{"input": input})
		if err != nil {
			return c.failed(rows, err)
		}
		for _, result := range listOf(page, "results") {
			errors := listOf(result, "errors")
			if len(errors) > 0 {
				refused++
			}
			rows = append(rows, c.defaultsRows(result, errors)...)
		}
		input["after"] = memberOf(page, "next")
	}
	if err := c.list(c.columns(), rows); err != nil || refused == 0 {
		return err
	}
	return statusError{fmt.Errorf("the changes of %d resources were refused", refused), exitConflict}
}

// defaultsRows returns a row for each changed or deleted item of a resource.
func (c *call) defaultsRows(result any, errors []any) (rows []any) {
	var shown any = errors
	if !c.out.isData() {
		shown = messagesOf(errors)
	}
	for _, item := range append(listOf(result, "items"), listOf(result, "deleteKeys")...) {
		row := item.(map[string]any)
		row["resource"], row["errors"] = memberOf(result, "resource"), shown
		rows = append(rows, row)
	}
	return rows
}

// messagesOf returns the messages of errors on one line.
func messagesOf(errors []any) string {
	return strings.Join(lists.Map(errors, func(of any) string { return wordOf(of, "message") }), "; ")
}
