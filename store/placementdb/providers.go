package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// WorldPage is a page of a list from a world, with that world. Total returns the
// length of the list.
type WorldPage[Item any] struct {
	page.Page[Item]
	World *placement.World
	Total func() int
}

// lengthOf returns a function that returns the length of a list.
func lengthOf[Item any](list []Item) func() int { return func() int { return len(list) } }

// providerKey returns the function that returns a provider's sort key in an
// order.
func providerKey(order placement.ProviderOrder) func(*placement.Provider) string {
	switch order.Field {
	case "CREATED_AT":
		return func(p *placement.Provider) string { return sortableTime(p.CreatedAt) }
	case "UPDATED_AT":
		return func(p *placement.Provider) string { return sortableTime(p.UpdatedAt) }
	case placement.OrderByFree, placement.OrderByShareUsed:
		return order.Key
	}
	return func(p *placement.Provider) string { return p.Name }
}

// sortableTime returns a time as a string that sorts like the time.
func sortableTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// ResourceProviders returns a page of the providers that match a filter, from
// the world. problems are the caller's problems with the rest of the input. The
// error includes them.
func (s *PlacementStore) ResourceProviders(ctx context.Context, filter placement.ProviderFilter,
	order placement.ProviderOrder, request page.Request,
	problems problem.Problems) (WorldPage[*placement.Provider], error) {
	world, err := s.World(ctx)
	if err != nil {
		return WorldPage[*placement.Provider]{}, err
	}
	found, problems := providersFrom(world, "filter", filter, problems)
	problems = append(problems, problemsIn(world, order.Validate(world, "orderBy"))...)
	by := page.Order{Field: order.Field, Descending: order.Descending}
	if order.ResourceClass != nil {
		by.Field += " " + *order.ResourceClass
	}
	key, id := providerKey(order), func(p *placement.Provider) string { return p.UUID }
	of := WorldPage[*placement.Provider]{World: world, Total: func() (total int) {
		for range found("") {
			total++
		}
		return total
	}}
	if by == byName {
		from := func(at page.Position) iter.Seq[*placement.Provider] { return found(at.Key) }
		of.Page, err = page.OfSorted("resourceProviders", by, from, request, problems, key, id)
		return of, err
	}
	var all []*placement.Provider
	if len(problems) == 0 {
		all = slices.Collect(found(""))
	}
	of.Page, err = page.OfList("resourceProviders", by, all, request, problems, key, id)
	return of, err
}

// providersThat returns the providers of a world that match the filter at a
// path. It appends the problems of the filter to problems, and returns no
// providers if there are any problems.
func providersThat(world *placement.World, path string, filter placement.ProviderFilter,
	problems problem.Problems) ([]*placement.Provider, problem.Problems) {
	from, problems := providersFrom(world, path, filter, problems)
	if len(problems) > 0 {
		return nil, problems
	}
	return slices.Collect(from("")), nil
}

// providersFrom returns a function that yields the providers of a world that match
// the filter at a path, by name, from a name on. It appends the problems of the
// filter to problems.
func providersFrom(world *placement.World, path string, filter placement.ProviderFilter,
	problems problem.Problems) (func(name string) iter.Seq[*placement.Provider], problem.Problems) {
	problems = append(problems, problemsIn(world, filter.Validate(world, path))...)
	text.CheckOptional(&problems, path+".search", filter.Search, 0, placement.MaxSearch)
	searched := text.Fold(text.OrEmpty(filter.Search))
	return func(name string) iter.Seq[*placement.Provider] {
		return func(yield func(*placement.Provider) bool) {
			for p := range world.FilterFrom(filter, name) {
				found := searched == "" || strings.Contains(text.Fold(p.Name), searched) || strings.Contains(p.UUID, searched)
				if found && !yield(p) {
					return
				}
			}
		}
	}, problems
}

// CheckProviders returns the given problems and the problems of a filter in a
// world as an error, nil for none.
func (s *PlacementStore) CheckProviders(world *placement.World,
	filter placement.ProviderFilter, problems problem.Problems) error {
	_, problems = providersFrom(world, "filter", filter, problems)
	return problems.Err()
}

// Capacity returns a page of capacity sums of the providers of a world that
// match a filter. classes limits the resource classes; nil is all. See
// ResourceProviders for problems.
func (s *PlacementStore) Capacity(world *placement.World, filter placement.ProviderFilter,
	by placement.CapacityGrouping, classes []string, request page.Request,
	problems problem.Problems) (WorldPage[*placement.CapacitySum], error) {
	found, problems := providersThat(world, "filter", filter, problems)
	problems = append(problems, problemsIn(world, placement.ValidateClasses(world, "resourceClasses", classes))...)
	var all []*placement.CapacitySum
	if len(problems) == 0 {
		all = world.Capacities(found, by, classes)
	}
	page, err := page.OfList("capacity", page.Order{Field: string(by)}, all, request, problems,
		(*placement.CapacitySum).Group, func(c *placement.CapacitySum) string { return c.ResourceClass })
	return WorldPage[*placement.CapacitySum]{Page: page, World: world, Total: lengthOf(all)}, err
}

// ConsumerByUUID returns a consumer, or ErrNotFound if the viewer sees no such
// consumer.
func (s *PlacementStore) ConsumerByUUID(ctx context.Context, uuid string) (*placement.Consumer, error) {
	found, err := s.ConsumersByUUID(ctx, []string{uuid})
	if err != nil {
		return nil, err
	}
	if found[uuid] == nil {
		return nil, problem.Refuse(problem.ErrNotFound, "consumer %s has no allocations", uuid)
	}
	return found[uuid], nil
}

// ConsumersByUUID returns, by uuid, the consumers that exist and that the
// viewer sees.
func (s *PlacementStore) ConsumersByUUID(ctx context.Context, uuids []string) (map[string]*placement.Consumer, error) {
	if err := visible.SeesPlacement(ctx); err != nil {
		return nil, err
	}
	found := map[string]*placement.Consumer{}
	seen, args := visible.ConsumerClause(ctx, "c.project_id", 2)
	err := s.Query(ctx, s.Pool, `SELECT `+consumerColumns+` FROM consumers c WHERE `+
		s.Listed("c.uuid", "$1", "text")+` AND `+seen,
		func(rows *sql.Rows) error {
			_, consumer, err := scanConsumer(rows)
			found[consumer.UUID] = consumer
			return err
		}, append([]any{sqldb.JSONOf(uuids)}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("look up consumers: %w", err)
	}
	return found, nil
}

const consumerColumns = `c.id, c.uuid, c.project_id, c.user_id, c.consumer_type, c.generation, c.created_at, c.updated_at, c.expires_at`

// scanConsumer scans consumerColumns and returns the row id and the consumer.
// It scans the columns after them into more.
func scanConsumer(rows *sql.Rows, more ...any) (int64, *placement.Consumer, error) {
	var id int64
	c := new(placement.Consumer)
	err := rows.Scan(append([]any{&id, &c.UUID, &c.ProjectID, &c.UserID, &c.Type, &c.Generation, &c.CreatedAt,
		&c.UpdatedAt, &c.ExpiresAt}, more...)...)
	c.CreatedAt, c.UpdatedAt, c.ExpiresAt = c.CreatedAt.UTC(), c.UpdatedAt.UTC(), sqldb.InUTC(c.ExpiresAt)
	return id, c, err
}

// AllocationsOfConsumers returns the allocations of the consumers that the
// viewer sees, by uuid of the consumer, each list ordered by provider and
// class.
func (s *PlacementStore) AllocationsOfConsumers(ctx context.Context,
	uuids []string) (map[string][]*placement.Allocation, error) {
	if err := visible.SeesPlacement(ctx); err != nil {
		return nil, err
	}
	found := map[string][]*placement.Allocation{}
	seen, args := visible.ConsumerClause(ctx, "o.project_id", 2)
	err := s.Query(ctx, s.Pool, `SELECT o.uuid, p.uuid, c.name, a.used FROM allocations a
		JOIN consumers o ON o.id = a.consumer_id JOIN resource_providers p ON p.id = a.provider_id
		JOIN resource_classes c ON c.id = a.resource_class_id
		WHERE `+s.Listed("o.uuid", "$1", "text")+` AND `+seen+` ORDER BY o.uuid, p.uuid, c.name`,
		func(rows *sql.Rows) error {
			a := new(placement.Allocation)
			err := rows.Scan(&a.Consumer, &a.Provider, &a.ResourceClass, &a.Used)
			found[a.Consumer] = append(found[a.Consumer], a)
			return err
		}, append([]any{sqldb.JSONOf(uuids)}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("list allocations of consumers: %w", err)
	}
	return found, nil
}

// ProvidersOfResources returns the providers linked to resources, by row id of
// the resource, with the world. It returns nil to a viewer who may not read
// placement.
func (s *PlacementStore) ProvidersOfResources(ctx context.Context,
	resources []int64) (*placement.World, map[int64]*placement.Provider, error) {
	if visible.SeesPlacement(ctx) != nil {
		return nil, nil, nil
	}
	of, err := sqldb.Pairs[int64, string](ctx, s.DB, s.Pool,
		`SELECT resource_id, uuid FROM resource_providers WHERE `+s.Listed("resource_id", "$1", "bigint"),
		sqldb.JSONOf(resources))
	if err != nil {
		return nil, nil, fmt.Errorf("look up the providers of resources: %w", err)
	}
	world, err := s.World(ctx)
	if err != nil {
		return nil, nil, err
	}
	found := map[int64]*placement.Provider{}
	for id, uuid := range of {
		if provider, known := world.Provider(uuid); known {
			found[id] = provider
		}
	}
	return world, found, nil
}

// providerColumn maps a column of resource_providers to a field of a provider
// with the same value. The table below drives creation, filling, updates, reads
// and the audit log.
type providerColumn struct {
	column string
	typ    string                          // in PostgreSQL
	key    string                          // in audit events
	field  func(p *placement.Provider) any // a pointer to the field
}

var providerColumns = []providerColumn{
	{"name", "text", "name", func(p *placement.Provider) any { return &p.Name }},
}

// listed returns the column names with a prefix, each after a comma, to append
// to a list of columns.
func listed(prefix string) string {
	var list strings.Builder
	for _, of := range providerColumns {
		list.WriteString(", " + prefix + of.column)
	}
	return list.String()
}

// fieldsOf returns pointers to the fields that have columns.
func fieldsOf(p *placement.Provider) []any {
	return lists.Map(providerColumns, func(of providerColumn) any { return of.field(p) })
}

// providerInsertion returns the INSERT of providers. Its parameters are the
// rows, see rowOf, and the time.
func (s *PlacementStore) providerInsertion() string {
	columns := []string{"uuid text", "parent_id bigint", "resource_id bigint"}
	for _, of := range providerColumns {
		columns = append(columns, of.column+" "+of.typ)
	}
	return `INSERT INTO resource_providers (uuid, generation, version, parent_id, resource_id, created_at, updated_at` + listed("") + `)
		SELECT d.uuid, 0, 0, d.parent_id, d.resource_id, ` + s.Time("$2") + `, ` + s.Time("$2") + listed("d.") + `
		FROM ` + s.Rows("$1", "d", columns...) + ` WHERE true RETURNING id, uuid`
}

// rowOf returns a row for providerInsertion. A row id of 0 becomes NULL.
func rowOf(p *placement.Provider, parent int64) []any {
	return append([]any{p.UUID, idOrNil(parent), idOrNil(p.ResourceRow)}, fieldsOf(p)...)
}

func idOrNil(row int64) any {
	if row == 0 {
		return nil
	}
	return row
}

// assigned is a column with its new value.
type assigned struct {
	column string
	value  any
}

// updateProvider returns a statement that updates a provider's own fields and
// other columns, and increments its version. Its first parameter is the time.
func (s *PlacementStore) updateProvider(p *placement.Provider, others ...assigned) (statement string, args []any) {
	for i, field := range fieldsOf(p) {
		others = append(others, assigned{providerColumns[i].column, reflect.ValueOf(field).Elem().Interface()})
	}
	set := `version = version + 1, updated_at = $1`
	args = []any{p.UpdatedAt}
	for _, one := range others {
		args = append(args, one.value)
		set += fmt.Sprintf(", %s = $%d", one.column, len(args))
	}
	args = append(args, p.Row)
	return fmt.Sprintf(`UPDATE resource_providers SET %s WHERE id = $%d`, set, len(args)), args
}

// ownFields returns a provider's own fields for the audit log.
func ownFields(p *placement.Provider) sqldb.Fields {
	fields := sqldb.Fields{}
	for _, of := range providerColumns {
		fields[of.key] = reflect.ValueOf(of.field(p)).Elem().Interface()
	}
	return fields
}

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
