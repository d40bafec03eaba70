package placementdb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/ent"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// CreateResourceProvider creates a provider, for administrators and services.
func (s *PlacementStore) CreateResourceProvider(ctx context.Context, input placement.NewProvider) (*placement.World, *placement.Provider, error) {
	if err := problemsOf(input.Validate("input")).Err(); err != nil {
		return nil, nil, err
	}
	id := text.OrEmpty(input.UUID)
	if id == "" {
		id = uuid.NewString()
	}
	world, created, err := s.changeProvider(ctx, "createResourceProvider", func(tx *providerTx) (int64, error) {
		if err := tx.LockName(ctx, uuidsKey, id); err != nil {
			return 0, err
		}
		if err := s.refuseTaken(ctx, tx.Tx, id, input.Name); err != nil {
			return 0, err
		}
		now := s.Now()
		create := tx.ResourceProvider.Create().SetUUID(id).SetName(input.Name).SetGeneration(0).SetVersion(0).
			SetCreatedAt(now).SetUpdatedAt(now)
		var problems problem.Problems
		if input.Parent != nil {
			parent, err := s.providerRow(ctx, tx.Tx, *input.Parent, "KEY SHARE")
			if err != nil {
				return 0, err
			}
			if parent == 0 {
				problems.Add("input.parent", "resource provider %s does not exist", *input.Parent)
			}
			create.SetParentID(parent)
		}
		if input.Resource != nil {
			linked, err := s.linkedResource(ctx, tx.Tx, *input.Resource, &problems)
			if err != nil {
				return 0, err
			}
			create.SetResourceID(linked)
		}
		if err := problems.Err(); err != nil {
			return 0, err
		}
		row, err := create.Save(ctx)
		if err != nil {
			return 0, err
		}
		return row.ID, nil
	})
	if sqldb.IsDuplicate(err) {
		return nil, nil, s.duplicateProvider(id, input).Because(err)
	}
	return world, created, err
}

// uuidsKey is the class of the advisory locks under which PostgreSQL creates the
// providers of one uuid, one at a time: row ids grow with the time of insertion,
// by which the world knows what is newer. An id that was drawn while another
// provider of the uuid lived and was deleted would be taken for older.
const uuidsKey = 7_261_004

// duplicateProvider refuses what of a new provider another one has. The name
// and the uuid were free a moment before.
func (s *PlacementStore) duplicateProvider(uuid string, input placement.NewProvider) *problem.Refusal {
	world := s.cache.World()
	_, sameUUID := world.Provider(uuid)
	_, sameName := world.ProviderNamed(input.Name)
	switch {
	case sameUUID:
		return problem.Refuse(problem.ErrAlreadyExists, "resource provider %s already exists", uuid).On("input.uuid")
	case sameName || input.Resource == nil:
		return problem.Refuse(problem.ErrAlreadyExists, "resource provider named %q already exists", input.Name).On("input.name")
	}
	return problem.Refuse(problem.ErrAlreadyExists, "another resource provider is linked to resource %s", *input.Resource).On("input.resource")
}

// refuseTaken refuses a uuid and a name that a provider has.
func (s *PlacementStore) refuseTaken(ctx context.Context, tx *sqldb.Tx, uuid, name string) error {
	var refusal *problem.Refusal
	err := s.Query(ctx, tx, `SELECT uuid FROM resource_providers WHERE uuid = $1 OR name = $2`, func(rows *sql.Rows) error {
		var taken string
		if err := rows.Scan(&taken); err != nil {
			return err
		}
		if taken == uuid {
			refusal = problem.Refuse(problem.ErrAlreadyExists, "resource provider %s already exists", uuid).On("input.uuid")
		} else if refusal == nil {
			refusal = problem.Refuse(problem.ErrAlreadyExists, "resource provider named %q already exists", name).On("input.name")
		}
		return nil
	}, uuid, name)
	if err != nil || refusal == nil {
		return err
	}
	return refusal
}

// linkedResource returns the row id of the resource that a provider is to be
// linked to, which stays until the transaction ends.
func (s *PlacementStore) linkedResource(ctx context.Context, tx *sqldb.Tx, uuid string, problems *problem.Problems) (int64, error) {
	var row int64
	visible, err := tx.Resource.Query().Where(visible.Resources(ctx), entresource.UUID(uuid)).OnlyID(ctx)
	switch {
	case err == nil:
		err = s.Query(ctx, tx, `SELECT id FROM resources WHERE id = $1`+s.Locking("KEY SHARE"),
			func(rows *sql.Rows) error { return rows.Scan(&row) }, visible)
	case ent.IsNotFound(err):
		err = nil
	}
	if err == nil && row == 0 {
		problems.Add("input.resource", "resource %s does not exist", uuid)
	}
	return row, err
}

// providerRow locks a provider and returns its row id, 0 for none.
func (s *PlacementStore) providerRow(ctx context.Context, tx *sqldb.Tx, uuid, lock string) (int64, error) {
	var id int64
	err := s.Query(ctx, tx, `SELECT id FROM resource_providers WHERE uuid = $1`+s.Locking(lock),
		func(rows *sql.Rows) error { return rows.Scan(&id) }, uuid)
	return id, err
}

// lockProvider locks a provider that a mutation is about and returns its row
// id. An unknown one is ErrNotFound, another generation than the one given
// ErrConcurrentUpdate.
func (s *PlacementStore) lockProvider(ctx context.Context, tx *providerTx, uuid string, generation *int64) (int64, error) {
	var id, current, version int64
	err := s.Query(ctx, tx, `SELECT id, generation, version FROM resource_providers WHERE uuid = $1`+s.Locking("NO KEY UPDATE"),
		func(rows *sql.Rows) error { return rows.Scan(&id, &current, &version) }, uuid)
	switch {
	case err != nil:
		return 0, err
	case id == 0:
		return 0, problem.Refuse(problem.ErrNotFound, "resource provider %s does not exist", uuid).On("input.provider")
	case generation != nil && *generation != current:
		return 0, problem.Refuse(problem.ErrConcurrentUpdate, "resource provider %s has generation %d, not %d", uuid, current, *generation).On("input.generation")
	}
	return id, s.keepBefore(ctx, tx, uuid, id, version)
}

// providerTx is a transaction that changes one provider.
type providerTx struct {
	*sqldb.Tx
	before *placement.Provider // as it was when it was locked; nil for a new one
}

// keepBefore keeps how a provider is that was just locked: as the world has it, or
// where another server has changed it since, as the database does.
func (s *PlacementStore) keepBefore(ctx context.Context, tx *providerTx, uuid string, id, version int64) error {
	held, found := s.cache.World().Provider(uuid)
	if found && held.Row == id && held.Version == version {
		tx.before = held
		return nil
	}
	states, err := s.readProviders(ctx, tx, []int64{id}, func() {})
	if err == nil {
		tx.before = &states[0].Provider
	}
	return err
}

// bump moves a locked provider's version by one, and its generation too if the
// provider changed. Every transaction that notes a provider in the change log
// moves its version by exactly one, also where it leaves the provider as it is:
// the version tells the world what a commit was built on.
func (s *PlacementStore) bump(ctx context.Context, tx *sqldb.Tx, id int64, changed bool) error {
	if !changed {
		return s.Execute(ctx, tx, `UPDATE resource_providers SET version = version + 1 WHERE id = $1`, id)
	}
	return s.Execute(ctx, tx, `UPDATE resource_providers SET generation = generation + 1, version = version + 1, updated_at = $1 WHERE id = $2`, s.Now(), id)
}

// changeProvider runs a mutation that is about one provider and returns the
// provider as it is afterwards, with the world that it is in. Write returns the
// id of the provider's row, which it holds locked.
func (s *PlacementStore) changeProvider(ctx context.Context, mutation string, write func(tx *providerTx) (id int64, err error)) (*placement.World, *placement.Provider, error) {
	var written *placement.Provider
	err := s.Write(ctx, mutation, func(begun *sqldb.Tx) error {
		tx := &providerTx{Tx: begun}
		id, err := write(tx)
		if err != nil {
			return err
		}
		states, err := s.readProviders(ctx, tx, []int64{id}, func() {})
		if err != nil {
			return err
		}
		written = &states[0].Provider
		event := sqldb.Event{Kind: "ResourceProvider", Key: written.UUID, After: providerFields(written)}
		if tx.before != nil {
			event.Before = providerFields(tx.before)
		}
		tx.Record(ctx, event)
		if mutation == "createResourceProvider" {
			tx.Created("ResourceProvider", written.UUID)
			s.publish(begun, ownCommit{created: states})
		} else {
			tx.Changed("ResourceProvider", written.UUID)
			s.publish(begun, ownCommit{written: states})
		}
		return nil
	}, &written)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", mutation, err)
	}
	world := s.worldAfter(ctx)
	return world, inTree(world, written), nil
}

// inTree returns a provider as a commit left it, with the root that it has in a
// world after that.
func inTree(world *placement.World, written *placement.Provider) *placement.Provider {
	if now, found := world.Provider(written.UUID); found && now.Row == written.Row && now.Version == written.Version {
		return now
	}
	placed := *written
	placed.Root = placed.UUID
	if parent, found := world.Provider(placed.Parent); found {
		placed.Root = parent.Root
	}
	return &placed
}

// worldAfter returns the world after a commit of this process.
func (s *PlacementStore) worldAfter(ctx context.Context) *placement.World {
	world, err := s.World(ctx)
	if err != nil {
		return s.cache.World() // it has the commit; what reads more fails by itself
	}
	return world
}

// providerFields returns a provider for the audit log.
func providerFields(p *placement.Provider) sqldb.Fields {
	return sqldb.Fields{
		"name": p.Name, "generation": p.Generation, "parent": sqldb.TextOrNil(p.Parent), "resource": sqldb.TextOrNil(p.Resource),
		"traits": append([]string{}, p.Traits...), "aggregates": append([]string{}, p.Aggregates...),
		"inventories": lists.Map(p.Inventories, func(v placement.Inventory) sqldb.Fields {
			return sqldb.Fields{"resourceClass": v.ResourceClass, "total": v.Total, "reserved": v.Reserved, "minUnit": v.MinUnit,
				"maxUnit": v.MaxUnit, "stepSize": v.StepSize, "allocationRatio": v.AllocationRatio}
		}),
	}
}

// rowsNamed returns the row ids of a table by names. The rows stay until the
// transaction ends.
func (s *PlacementStore) rowsNamed(ctx context.Context, on sqldb.Conn, table string, names []string) (map[string]int64, error) {
	return sqldb.Pairs[string, int64](ctx, s.DB, on,
		`SELECT name, id FROM `+table+` WHERE `+s.Listed("name", "$1", "text")+s.Locking("KEY SHARE"), sqldb.JSONOf(names))
}

// CheckRequest returns what is wrong with a request for candidates.
func (s *PlacementStore) CheckRequest(world *placement.World, request *placement.Request) problem.Problems {
	return problemsIn(world, placement.Validate(world, request))
}

// problemsIn returns problems of placement's rules as problems of an input: with
// an unknown trait or resource class stands the one of the world that it may mean.
func problemsIn(world *placement.World, found []placement.Problem) problem.Problems {
	problems := problemsOf(found)
	var traits, classes text.Speller
	if slices.ContainsFunc(found, func(one placement.Problem) bool { return one.Trait+one.ResourceClass != "" }) {
		names := world.Names()
		traits, classes = text.NewSpeller(names.Traits), text.NewSpeller(names.ResourceClasses)
	}
	for i, one := range found {
		switch {
		case one.Trait != "":
			problems[i].Message += traits.DidYouMean(one.Trait)
		case one.ResourceClass != "":
			problems[i].Message += classes.DidYouMean(one.ResourceClass)
		}
	}
	return problems
}

// problemsOf returns the violations of placement's rules as problems of an
// input.
func problemsOf(violations []placement.Problem) problem.Problems {
	var problems problem.Problems
	for _, violation := range violations {
		problems = append(problems, problem.Problem{Field: violation.Path, Message: violation.Message})
	}
	return problems
}
