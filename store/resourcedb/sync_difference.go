package resourcedb

import (
	"context"
	"database/sql"
	"slices"
	"strconv"

	"github.com/cadastre-dev/cadastre/origin"
	"github.com/cadastre-dev/cadastre/text"
)

// maxAbsentChanges is the maximum number of absent, gone and deleted things in a
// difference.
const maxAbsentChanges = 1000

// difference returns the difference that the page has made in a trial.
func (w *syncWriter) difference(ctx context.Context, fresh []origin.Thing,
	changes []syncChange) (*origin.Difference, error) {
	d := &origin.Difference{Changes: []*origin.Change{}}
	for _, thing := range fresh {
		of := &origin.Change{Effect: origin.Created, ForeignID: thing.ForeignID, Name: thing.Name, Changed: []string{}}
		d.Changes = append(d.Changes, of)
	}
	for i := range changes {
		if of := changes[i].difference(); of != nil {
			d.Changes = append(d.Changes, of)
		}
	}
	if w.page.Range == nil {
		return d, nil
	}
	within, args := w.within(5)
	args = append([]any{w.page.Origin, w.page.Region, w.page.Kind,
		origin.EnoughAbsences, w.now.Add(-origin.DefaultDelay)},
		args...)
	isGone := `gone_at IS NULL AND absent >= $4 AND NOT ` + dependents
	isDeleted := `gone_at <= ` + w.store.Time("$5") + ` AND NOT ` + dependents
	from := ` FROM resource_origins o JOIN resources r ON r.id = o.resource_id
		WHERE o.origin = $1 AND o.region = $2 AND o.kind = $3` + within
	count := func(condition string) string {
		return `COALESCE(SUM(CASE WHEN ` + condition + ` THEN 1 ELSE 0 END), 0)`
	}
	counts := `SELECT ` + count("gone_at IS NULL") + `, ` + count(isGone) + `, ` + count(isDeleted) + from
	err := w.store.Query(ctx, w.tx, counts, func(rows *sql.Rows) error {
		return rows.Scan(&d.Present, &d.Gone, &d.Deleted)
	}, args...)
	if err != nil {
		return nil, err
	}
	absent := `SELECT o.foreign_id, r.name,
		CASE WHEN ` + isGone + ` THEN 'GONE' WHEN ` + isDeleted + ` THEN 'DELETED' ELSE 'ABSENT' END` + from + `
		AND (gone_at IS NULL AND absent > 0 OR ` + isDeleted +
		`) ORDER BY o.foreign_id LIMIT ` + strconv.Itoa(maxAbsentChanges)
	err = w.store.Query(ctx, w.tx, absent, func(rows *sql.Rows) error {
		of := &origin.Change{Changed: []string{}}
		d.Changes = append(d.Changes, of)
		return rows.Scan(&of.ForeignID, &of.Name, &of.Effect)
	}, args...)
	return d, err
}

// difference returns how the resource changes or returns, nil if it does
// neither.
func (c *syncChange) difference() *origin.Change {
	of := &origin.Change{Effect: origin.Updated, ForeignID: c.origin.ForeignID,
		Name: c.wanted.Name, Changed: []string{}}
	for _, field := range []struct {
		name     string
		has, was string
	}{
		{"description", text.OrEmpty(c.wanted.Description), text.OrEmpty(c.row.Description)},
		{"name", c.wanted.Name, c.row.Name},
		{"projectId", c.wanted.ProjectID, c.row.ProjectID},
		{"visibility", c.wanted.Visibility, c.row.Visibility},
	} {
		if field.has != field.was {
			of.Changed = append(of.Changed, field.name)
		}
	}
	for _, item := range slices.Concat(c.plan.Set, c.plan.Delete) {
		of.Changed = append(of.Changed, "metadata."+item.Key)
	}
	for _, one := range c.set {
		of.Changed = append(of.Changed, "capabilities."+one.Key)
	}
	for _, name := range c.unset {
		of.Changed = append(of.Changed, "capabilities."+name)
	}
	slices.Sort(of.Changed)
	switch {
	case c.isChanged:
		return of
	case c.isBack:
		of.Effect = origin.Returned
		return of
	}
	return nil
}
