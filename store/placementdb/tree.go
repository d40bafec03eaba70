package placementdb

import (
	"context"
	"database/sql"
	"slices"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

// UpdateResourceProvider renames a provider, moves it with its subtree, or
// links it to a resource. It increments no generation.
func (s *PlacementStore) UpdateResourceProvider(ctx context.Context,
	input placement.ProviderPatch) (*placement.World, *placement.Provider, error) {
	if err := problemsOf(input.Validate("input")).Err(); err != nil {
		return nil, nil, err
	}
	world, changed, err := s.changeProvider(ctx, "updateResourceProvider", func(tx *providerTx) (int64, error) {
		id, parent, err := s.lockForMove(ctx, tx, input)
		if err != nil {
			return 0, err
		}
		var links []assigned
		if input.Parent != nil {
			links = append(links, assigned{"parent_id", idOrNil(parent)})
		}
		if input.Resource != nil {
			resource, err := s.resourceToLink(ctx, tx.Tx, *input.Resource)
			if err != nil {
				return 0, err
			}
			links = append(links, assigned{"resource_id", idOrNil(resource)})
		}
		after := *tx.before
		input.ApplyTo(&after)
		statement, args := s.updateProvider(id, &after, links...)
		return id, s.Execute(ctx, tx, statement, args...)
	})
	if sqldb.IsDuplicate(err) {
		return nil, nil, duplicateChange(input).Because(err)
	}
	return world, changed, err
}

// resourceToLink returns the row id of the resource to link, 0 for none.
func (s *PlacementStore) resourceToLink(ctx context.Context, tx *sqldb.Tx, uuid string) (int64, error) {
	if uuid == "" {
		return 0, nil
	}
	linked, err := s.linkedResources(ctx, tx, []string{uuid})
	if err == nil && linked[uuid] == 0 {
		err = problem.Invalid("input.resource", "resource %s does not exist", uuid)
	}
	return linked[uuid], err
}

func duplicateChange(input placement.ProviderPatch) *problem.Refusal {
	if input.NewName != nil && (input.Resource == nil || *input.Resource == "") {
		return problem.Refuse(problem.ErrAlreadyExists, "resource provider named %q already exists", *input.NewName).
			On("input.newName")
	}
	if input.NewName == nil && input.Resource != nil {
		return problem.Refuse(problem.ErrAlreadyExists, "another resource provider is linked to resource %s",
			*input.Resource).On("input.resource")
	}
	return problem.Refuse(problem.ErrAlreadyExists, "another resource provider has this name or resource").On("input")
}

// lockForMove locks the provider. If the provider moves below a parent, it also
// locks the roots of both trees, all in the order of row ids. Every move within
// a tree needs the lock on its root. So if the roots are still roots once they
// are locked, neither tree changes, and a loop can be detected.
func (s *PlacementStore) lockForMove(ctx context.Context, tx *providerTx,
	input placement.ProviderPatch) (id, parent int64, err error) {
	if input.Parent == nil {
		id, err := s.lockProvider(ctx, tx, input.Provider, nil)
		return id, 0, err
	}
	line, err := s.lineOf(ctx, tx.Tx, input.Provider)
	if err != nil {
		return 0, 0, err
	}
	if len(line) == 0 {
		return 0, 0, problem.Refuse(problem.ErrNotFound, "resource provider %s does not exist", input.Provider).
			On("input.provider")
	}
	above, err := s.lineOf(ctx, tx.Tx, *input.Parent)
	if err != nil {
		return 0, 0, err
	}
	if len(above) == 0 && *input.Parent != "" {
		return 0, 0, problem.Invalid("input.parent", "resource provider %s does not exist", *input.Parent)
	}
	id = line[0]
	locked := []int64{id, line[len(line)-1]}
	if len(above) > 0 {
		locked = append(locked, above[len(above)-1])
	}
	versions := map[int64]int64{}
	if err := s.Query(ctx, tx, `SELECT id, version FROM resource_providers WHERE `+s.Listed("id", "$1", "bigint")+
		` ORDER BY id`+s.Locking("NO KEY UPDATE"),
		func(rows *sql.Rows) error {
			var row, version int64
			err := rows.Scan(&row, &version)
			versions[row] = version
			return err
		}, sqldb.JSONOf(lists.Distinct(locked))); err != nil {
		return 0, 0, err
	}
	// Providers may have moved before the locks were taken.
	lineNow, err := s.lineOf(ctx, tx.Tx, input.Provider)
	if err != nil {
		return 0, 0, err
	}
	aboveNow, err := s.lineOf(ctx, tx.Tx, *input.Parent)
	if err != nil {
		return 0, 0, err
	}
	if !slices.Equal(line, lineNow) || !slices.Equal(above, aboveNow) {
		return 0, 0, sqldb.ErrRetry
	}
	if slices.Contains(above, id) {
		return 0, 0, problem.Invalid("input.parent", "must not be a descendant of the provider")
	}
	if len(above) > 0 {
		parent = above[0]
	}
	return id, parent, s.keepBefore(ctx, tx, input.Provider, id, versions[id])
}

// lineOf returns the row ids from a provider up to its root; none for an
// unknown provider.
func (s *PlacementStore) lineOf(ctx context.Context, tx *sqldb.Tx, uuid string) ([]int64, error) {
	return sqldb.Column[int64](ctx, s.DB, tx, `WITH RECURSIVE line (id, parent_id, depth) AS (
			SELECT id, parent_id, 0 FROM resource_providers WHERE uuid = $1
			UNION ALL SELECT p.id, p.parent_id, line.depth + 1 FROM resource_providers p JOIN line ON p.id = line.parent_id
		) SELECT id FROM line ORDER BY depth`, uuid)
}
