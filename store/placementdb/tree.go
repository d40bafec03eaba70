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
	world, changed, err := s.changeProvider(ctx, "updateResourceProvider", func(r *replacing) error {
		before, parent, err := s.lockForMove(ctx, r, input)
		if err != nil {
			return err
		}
		after := *before
		input.ApplyTo(&after.Provider)
		after.Version, after.UpdatedAt = before.Version+1, r.now
		var links []assigned
		if input.Parent != nil {
			after.parentRow = parent
			links = append(links, assigned{"parent_id", idOrNil(parent)})
		}
		if input.Resource != nil {
			if after.ResourceRow, err = s.resourceToLink(ctx, r.Tx, *input.Resource); err != nil {
				return err
			}
			links = append(links, assigned{"resource_id", idOrNil(after.ResourceRow)})
		}
		r.replaced = []replaced{{before, &after}}
		s.recordReplaced(ctx, r)
		statement, args := s.updateProvider(&after.Provider, links...)
		return s.Execute(ctx, r, statement, args...)
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

// lockForMove locks the provider. If the input sets a parent, it also locks the
// roots of the old and the new tree, all in the order of row ids. Every move
// within a tree needs the lock on its root. So if the roots are still roots
// once they are locked, neither tree changes, and a loop can be detected.
func (s *PlacementStore) lockForMove(ctx context.Context, r *replacing,
	input placement.ProviderPatch) (before *providerState, parent int64, err error) {
	if input.Parent == nil {
		before, err := s.lockProvider(ctx, r, input.Provider, nil)
		return before, 0, err
	}
	line, above, err := s.linesOf(ctx, r, input)
	switch {
	case err != nil:
		return nil, 0, err
	case len(line) == 0:
		return nil, 0, problem.Refuse(problem.ErrNotFound, "resource provider %s does not exist", input.Provider).
			On("input.provider")
	case len(above) == 0 && *input.Parent != "":
		return nil, 0, problem.Invalid("input.parent", "resource provider %s does not exist", *input.Parent)
	}
	locked := []string{input.Provider, line[len(line)-1].uuid}
	if len(above) > 0 {
		parent = above[0].row
		locked = append(locked, above[len(above)-1].uuid)
	}
	if err := s.lockReplaced(ctx, r, lists.Distinct(locked), nil); err != nil {
		return nil, 0, err
	}
	// Providers may have moved before the locks were taken.
	lineNow, aboveNow, err := s.linesOf(ctx, r, input)
	switch {
	case err != nil:
		return nil, 0, err
	case !slices.Equal(line, lineNow) || !slices.Equal(above, aboveNow):
		return nil, 0, sqldb.ErrRetry
	case slices.Contains(above, line[0]):
		return nil, 0, problem.Invalid("input.parent", "must not be a descendant of the provider")
	}
	return r.before[line[0].row], parent, nil
}

// inLine is a provider on the way up to a root.
type inLine struct {
	row  int64
	uuid string
}

// linesOf returns the providers from a moved provider and from its new parent up
// to their roots; none for an unknown provider.
func (s *PlacementStore) linesOf(ctx context.Context, r *replacing,
	input placement.ProviderPatch) (line, above []inLine, err error) {
	if line, err = s.lineOf(ctx, r, input.Provider); err == nil {
		above, err = s.lineOf(ctx, r, *input.Parent)
	}
	return line, above, err
}

func (s *PlacementStore) lineOf(ctx context.Context, r *replacing, uuid string) (line []inLine, err error) {
	err = s.Query(ctx, r, `WITH RECURSIVE line (id, uuid, parent_id, depth) AS (
			SELECT id, uuid, parent_id, 0 FROM resource_providers WHERE uuid = $1
			UNION ALL SELECT p.id, p.uuid, p.parent_id, line.depth + 1 FROM resource_providers p JOIN line ON p.id = line.parent_id
		) SELECT id, uuid FROM line ORDER BY depth`, func(rows *sql.Rows) error {
		var one inLine
		err := rows.Scan(&one.row, &one.uuid)
		line = append(line, one)
		return err
	}, uuid)
	return line, err
}
