package resourcedb

import (
	"context"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/ent"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// parentRow is the parent of resources to be written.
type parentRow struct {
	id      int64 // 0 for one that is not written yet
	project string
	kind    string // the name of its type
}

// lockParents locks the visible parents of new or moved resources against
// deletion, and returns them by uuid.
func (s *ResourceStore) lockParents(ctx context.Context, tx *sqldb.Tx, uuids []string) (map[string]parentRow, error) {
	if len(uuids) == 0 {
		return map[string]parentRow{}, nil
	}
	rows, err := tx.Resource.Query().
		Where(visible.Resources(ctx), paging.Among(entresource.FieldUUID, uuids), s.Locked()).Order(entresource.ByID()).
		All(ctx)
	if err != nil || len(rows) == 0 {
		return map[string]parentRow{}, err
	}
	names, err := typeNames(ctx, tx.Client(), rows)
	if err != nil {
		return nil, err
	}
	return lists.Index(rows, func(row *ent.Resource) (string, parentRow) {
		return row.UUID, parentRow{row.ID, row.ProjectID, names[row.ResourceTypeID]}
	}), nil
}

// checkParent refuses a parent that the viewer does not see, whose project the
// viewer may not write for, or that does not fit the type. Some types require a
// parent, and some allow parents of one type only. An empty parent means none.
func checkParent(viewer access.Viewer, parents map[string]parentRow, typeName, parent string) error {
	var natural defaults.ResourceType
	for _, builtIn := range defaults.ResourceTypes() {
		if builtIn.Name == typeName {
			natural = builtIn
		}
	}
	if parent == "" {
		if natural.ParentRequired {
			return problem.Invalid("input.parent", "a resource of the type %s needs a parent of the type %s", typeName,
				natural.Parent)
		}
		return nil
	}
	found, ok := parents[parent]
	if !ok {
		return problem.Invalid("input.parent", "resource %s does not exist", parent)
	}
	if err := resource.MayWriteForProject(viewer, found.project, "resource "+parent); err != nil {
		return problem.Under(err, "input.parent")
	}
	if natural.Parent != "" && found.kind != natural.Parent {
		return problem.Invalid("input.parent", "the parent of a resource of the type %s must be of the type %s, not %s",
			typeName, natural.Parent, found.kind)
	}
	return nil
}

// parentFor locks the parent of a resource of a type and returns its row id, 0
// for none. It refuses the parents that checkParent refuses.
func (s *ResourceStore) parentFor(ctx context.Context, tx *sqldb.Tx, typeName, parent string) (int64, error) {
	var uuids []string
	if parent != "" {
		uuids = []string{parent}
	}
	parents, err := s.lockParents(ctx, tx, uuids)
	if err != nil {
		return 0, err
	}
	return parents[parent].id, checkParent(access.ViewerFrom(ctx), parents, typeName, parent)
}
