package cli

import (
	"fmt"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

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
