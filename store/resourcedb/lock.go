package resourcedb

import (
	"context"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// lockVisible locks the resources that the viewer sees and returns them by
// uuid. It locks in the order of row ids, so that two writers never deadlock.
func (s *ResourceStore) lockVisible(ctx context.Context, tx *sqldb.Tx,
	uuids []string) (map[string]*ent.Resource, error) {
	found, err := tx.Resource.Query().
		Where(visible.Resources(ctx), paging.Among(entresource.FieldUUID, uuids), s.Locked()).Order(entresource.ByID()).
		All(ctx)
	return lists.ByKey(found, func(row *ent.Resource) string { return row.UUID }), err
}

// mayWrite refuses a resource that the viewer does not see (a nil row) or may
// not write. The problem is at the given field.
func mayWrite(viewer access.Viewer, uuid string, row *ent.Resource, field string) error {
	if row == nil {
		return refuseUnknownResource(uuid).On(field)
	}
	return problem.Under(resource.MayWriteForProject(viewer, row.ProjectID, "resource "+uuid), field)
}

// touchResources increments the revision of the touched resources, and returns
// all of rows in their new state.
func touchResources(ctx context.Context, tx *sqldb.Tx, rows []*ent.Resource, touched []int64,
	now time.Time) ([]*resource.Resource, error) {
	if len(touched) > 0 {
		err := tx.Resource.Update().Where(paging.Among(entresource.FieldID, touched)).
			AddRevision(1).SetUpdatedAt(now).Exec(ctx)
		if err != nil {
			return nil, err
		}
	}
	resources := make([]*resource.Resource, len(rows))
	changed := lists.Set(touched, lists.Itself)
	for i, row := range rows {
		if changed[row.ID] {
			noteResource(tx, row, row)
			row.Revision++
			row.UpdatedAt = now
		}
		resources[i] = resourceNoun(row)
	}
	return resources, nil
}

// lockResource locks the resource that a field of the input names. It refuses a
// resource that the viewer may not write, and any revision but the given one;
// nil allows any.
func (s *ResourceStore) lockResource(ctx context.Context, tx *sqldb.Tx, field, uuid string,
	revision *int) (*ent.Resource, error) {
	rows, err := s.lockVisible(ctx, tx, []string{uuid})
	if err != nil {
		return nil, err
	}
	if err := mayWrite(access.ViewerFrom(ctx), uuid, rows[uuid], field); err != nil {
		return nil, err
	}
	return rows[uuid], problem.Under(resource.CheckRevision(uuid, revision, rows[uuid].Revision), "input")
}
