package cli

import (
	"fmt"
	"slices"

	"github.com/cadastre-dev/cadastre/internal/lists"
)

// dumpDatabase writes a database to standard output.
func dumpDatabase(c *call) error {
	moved, err := c.program.Dump(c.ctx, c.text("database"), c.stdout)
	return c.moved("wrote", moved, err)
}

// restoreDatabase loads a dump from standard input.
func restoreDatabase(c *call) error {
	moved, err := c.program.Restore(c.ctx, c.text("database"), c.input())
	return c.moved("restored", moved, err)
}

func (c *call) moved(verb, what string, err error) error {
	if err == nil {
		c.notef("%s %s\n", verb, what)
	}
	return err
}

// checkDatabase shows the findings of a database. The exit status shows the
// severity of the worst finding.
func checkDatabase(c *call) error {
	rows, found := []any{}, 0
	checked, worst, err := c.program.Doctor(c.ctx, c.text("database"), func(finding map[string]any) error {
		if found++; found <= c.number("limit") {
			rows = append(rows, finding)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.list(c.columns(), rows); err != nil {
		return err
	}
	c.notef("checked %s: %s\n", checked, counted(found, "finding"))
	if worst > 0 {
		return statusError{fmt.Errorf("the database breaks invariants in %s", counted(found, "row")), exitFound + worst}
	}
	return nil
}

// migrate shows all migrations, or for `migrate up` the missing ones, which it
// applies unless --dry-run is set.
func migrate(c *call) error {
	rows, err := c.program.Migrations(c.ctx, c.text("database"), false)
	if err != nil {
		return err
	}
	if c.verb.name == "up" {
		rows = slices.DeleteFunc(rows, func(one map[string]any) bool { return one["applied"] == true })
		if !c.is("dry-run") && len(rows) > 0 {
			if _, err := c.program.Migrations(c.ctx, c.text("database"), true); err != nil {
				return err
			}
			for _, one := range rows {
				one["applied"] = true
			}
		}
	}
	return c.list(c.columns(), lists.Map(rows, func(one map[string]any) any { return one }))
}
