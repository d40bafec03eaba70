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
	moved, err := c.program.Restore(c.ctx, c.text("database"), c.program.Stdin)
	return c.moved("restored", moved, err)
}

func (c *call) moved(verb, what string, err error) error {
	if err == nil {
		c.notef("%s %s\n", verb, what)
	}
	return err
}

// checkDatabase shows the findings of a database. The worst one sets the exit
// status.
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

// showMigrations shows all migrations.
func showMigrations(c *call) error {
	all, err := c.program.Migrations(c.ctx, c.text("database"), false)
	if err != nil {
		return err
	}
	return c.listMigrations(all)
}

// applyMigrations applies the missing migrations and shows them.
func applyMigrations(c *call) error {
	all, err := c.program.Migrations(c.ctx, c.text("database"), false)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(all, func(one map[string]any) bool { return one["applied"] == true })
	if !c.is("dry-run") && len(missing) > 0 {
		if _, err := c.program.Migrations(c.ctx, c.text("database"), true); err != nil {
			return err
		}
		for _, one := range missing {
			one["applied"] = true
		}
	}
	return c.listMigrations(missing)
}

func (c *call) listMigrations(all []map[string]any) error {
	return c.list(c.columns(), lists.Map(all, func(one map[string]any) any { return one }))
}
