package resourcedb

import (
	"context"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// lockResources locks the resources to be written, in the order of their rows,
// so that two writers never deadlock, and returns them in the order
// in which they were named. It refuses those that the viewer may not see, then
// those that the viewer may not write, each about its field of the input.
func (s *ResourceStore) lockResources(ctx context.Context, tx *sqldb.Tx, uuids []string, field func(int) string) ([]*ent.Resource, error) {
	found, err := tx.Resource.Query().Where(visible.Resources(ctx), sqldb.Among(entresource.FieldUUID, uuids), s.Locked()).Order(entresource.ByID()).All(ctx)
	if err != nil {
		return nil, err
	}
	byUUID := lists.ByKey(found, func(row *ent.Resource) string { return row.UUID })
	rows := make([]*ent.Resource, len(uuids))
	for i, uuid := range uuids {
		if rows[i] = byUUID[uuid]; rows[i] == nil {
			return nil, refuseUnknownResource(uuid).On(field(i))
		}
	}
	for i, row := range rows {
		if err := resource.MayWriteForProject(access.ViewerFrom(ctx), row.ProjectID, "resource "+row.UUID); err != nil {
			return nil, problem.Under(err, field(i))
		}
	}
	return rows, nil
}

// touchResources moves the revision of the resources that were changed, and
// returns all of them as they are now.
func touchResources(ctx context.Context, tx *sqldb.Tx, rows []*ent.Resource, touched []int64, now time.Time) ([]*resource.Resource, error) {
	if len(touched) > 0 {
		err := tx.Resource.Update().Where(sqldb.Among(entresource.FieldID, touched)).AddRevision(1).SetUpdatedAt(now).Exec(ctx)
		if err != nil {
			return nil, err
		}
	}
	resources := make([]*resource.Resource, len(rows))
	for i, row := range rows {
		if slices.Contains(touched, row.ID) {
			noteResource(tx, row, row)
			row.Revision++
			row.UpdatedAt = now
		}
		resources[i] = resourceNoun(row)
	}
	return resources, nil
}

// lockResource locks the one resource to be written, which a field of the input
// names, and which must be at the revision that its writer knows, if any.
func (s *ResourceStore) lockResource(ctx context.Context, tx *sqldb.Tx, field, uuid string, revision *int) (*ent.Resource, error) {
	rows, err := s.lockResources(ctx, tx, []string{uuid}, func(int) string { return field })
	if err != nil {
		return nil, err
	}
	return rows[0], problem.Under(resource.CheckRevision(uuid, revision, rows[0].Revision), "input")
}
