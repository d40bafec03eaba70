package resourcedb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/cadastre-dev/cadastre/ent"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/ent/resourceorigin"
	"github.com/cadastre-dev/cadastre/ent/syncscope"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/origin"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/text"
)

// passHeld is how long a page keeps other passes from its scope. A page renews
// the hold of its pass once half of the time is over.
const passHeld = time.Minute

// SyncResources writes a page of things as their origin has them. It creates
// missing resources. On the others it changes the name, description, project and
// visibility, and the metadata and capabilities of the origin; all else stays. A
// page without changes writes at most the hold of its scope. A dry run returns the
// difference that the page would make, and writes nothing. SyncResources
// returns ErrConcurrentUpdate while another pass writes the scope.
func (s *ResourceStore) SyncResources(ctx context.Context, page origin.Page) (counts origin.Counts, err error) {
	if err := checkInput(page.Check); err != nil {
		return counts, err
	}
	if page.DryRun {
		err = s.Try(ctx, func(ctx context.Context, _ *sqldb.Trial) (err error) {
			counts, err = s.syncPage(ctx, page)
			return err
		})
	} else {
		counts, err = s.syncPage(ctx, page)
	}
	if err != nil {
		return origin.Counts{}, fmt.Errorf("sync resources: %w", err)
	}
	return counts, nil
}

func (s *ResourceStore) syncPage(ctx context.Context, page origin.Page) (counts origin.Counts, err error) {
	err = s.Write(ctx, "syncResources", func(tx *sqldb.Tx) error {
		counts = origin.Counts{}
		before, now, err := s.hold(ctx, tx, page.Scope(), page.Pass)
		if err != nil {
			return err
		}
		types, err := s.metadefs.EnsureResourceTypes(ctx, tx, []string{page.ResourceType})
		if err != nil {
			return err
		}
		w := &syncWriter{store: s, tx: tx, page: page, typeID: types[page.ResourceType], now: now, counts: &counts}
		if err := w.write(ctx); err != nil {
			return err
		}
		if text.OrEmpty(before.Pass) != page.Pass && !tx.IsEmpty() {
			tx.Record(ctx, sqldb.Event{Kind: "Sync", Key: page.Scope().Key(), After: sqldb.Fields{"pass": page.Pass}})
		}
		return nil
	}, &counts)
	return counts, err
}

// hold locks a scope and takes it for a pass. It returns the state before and the
// time of the database, or ErrConcurrentUpdate if another pass holds the scope.
// Between the pages of a pass the hold may end; then another pass may take the scope.
func (s *ResourceStore) hold(ctx context.Context, tx *sqldb.Tx, scope origin.Scope,
	pass string) (before *ent.SyncScope, now time.Time, err error) {
	err = s.Execute(ctx, tx,
		`INSERT INTO syncs (origin, region, kind, failures, refused) VALUES ($1, $2, $3, 0, 0) ON CONFLICT (origin, region, kind) DO NOTHING`,
		scope.Origin, scope.Region, scope.Kind)
	if err != nil {
		return nil, now, err
	}
	row, err := tx.SyncScope.Query().Where(ofScope(scope), s.Locked()).Only(ctx)
	if err != nil {
		return nil, now, err
	}
	if now, err = tx.Clock(ctx); err != nil {
		return nil, now, err
	}
	isHeld := row.HeldUntil != nil && row.HeldUntil.After(now)
	isMine := row.Pass != nil && *row.Pass == pass
	switch {
	case isMine && isHeld && row.HeldUntil.After(now.Add(passHeld/2)):
		return row, now, nil
	case !isMine && isHeld:
		return nil, now, problem.Refuse(problem.ErrConcurrentUpdate, "another pass writes %s", scope.Key()).On("input.pass")
	}
	tx.KeepAnyway()
	return row, now, tx.SyncScope.UpdateOneID(row.ID).SetPass(pass).SetHeldUntil(now.Add(passHeld)).Exec(ctx)
}

func ofScope(scope origin.Scope) func(*entsql.Selector) {
	return entsql.AndPredicates(entsql.FieldEQ(syncscope.FieldOrigin, scope.Origin),
		entsql.FieldEQ(syncscope.FieldRegion, scope.Region), entsql.FieldEQ(syncscope.FieldKind, scope.Kind))
}

// syncWriter writes one page.
type syncWriter struct {
	store  *ResourceStore
	tx     *sqldb.Tx
	page   origin.Page
	typeID int64
	now    time.Time
	counts *origin.Counts
}

// stored is the resource of a thing as the database has it.
type stored struct {
	origin *ent.ResourceOrigin
	row    *ent.Resource
	items  []*resource.MetadataItem
	values map[string]*ent.CapabilityValue // by name
}

func (w *syncWriter) write(ctx context.Context) error {
	if err := w.leaveUnregistered(ctx); err != nil {
		return err
	}
	there, err := w.read(ctx)
	if err != nil {
		return err
	}
	var fresh []origin.Thing
	var changes []syncChange
	for _, thing := range w.page.Resources {
		if is, ok := there[thing.ForeignID]; ok {
			changes = append(changes, w.changeOf(thing, is))
		} else {
			fresh = append(fresh, thing)
		}
	}
	if err := w.create(ctx, fresh); err != nil {
		return err
	}
	if err := w.change(ctx, changes); err != nil {
		return err
	}
	if err := w.markAbsent(ctx); err != nil || !w.page.DryRun {
		return err
	}
	w.counts.Difference, err = w.difference(ctx, fresh, changes)
	return err
}

// leaveUnregistered removes unregistered capabilities from the page if the
// operator requires explicit registration.
func (w *syncWriter) leaveUnregistered(ctx context.Context) error {
	if w.store.options.CapabilityRegistration != resource.RegisterExplicitly {
		return nil
	}
	key := func(one metadef.KeyValue) capabilityKey { return capabilityKey{w.typeID, one.Key} }
	var keys []capabilityKey
	for _, thing := range w.page.Resources {
		keys = append(keys, lists.Map(thing.Capabilities, key)...)
	}
	registry, err := findCapabilities(ctx, w.tx, keys)
	if err != nil {
		return err
	}
	w.page.Resources = slices.Clone(w.page.Resources)
	for i := range w.page.Resources {
		of := &w.page.Resources[i].Capabilities
		*of = slices.DeleteFunc(slices.Clone(*of), func(one metadef.KeyValue) bool { return registry[key(one)] == 0 })
	}
	return nil
}

// read locks the resources of the page's things, and returns them by foreign
// id.
func (w *syncWriter) read(ctx context.Context) (map[string]stored, error) {
	ids := lists.Map(w.page.Resources, func(thing origin.Thing) string { return thing.ForeignID })
	origins, err := w.tx.ResourceOrigin.Query().
		Where(ofScope(w.page.Scope()), paging.Among(resourceorigin.FieldForeignID, ids)).All(ctx)
	if err != nil || len(origins) == 0 {
		return nil, err
	}
	rowIDs := lists.Map(origins, func(from *ent.ResourceOrigin) int64 { return from.ResourceID })
	rows, err := w.tx.Resource.Query().Where(paging.Among(entresource.FieldID, rowIDs), w.store.Locked()).
		Order(entresource.ByID()).All(ctx)
	if err != nil {
		return nil, err
	}
	items, err := w.store.itemsOf(ctx, w.tx.Client(), rowIDs)
	if err != nil {
		return nil, err
	}
	values, err := valuesOn(ctx, w.tx, rowIDs)
	if err != nil {
		return nil, err
	}
	byID := lists.ByKey(rows, func(row *ent.Resource) int64 { return row.ID })
	there := map[string]stored{}
	for _, from := range origins {
		if row := byID[from.ResourceID]; row != nil { // otherwise another transaction has just deleted the resource
			there[from.ForeignID] = stored{from, row, items[row.ID], values[row.ID]}
		}
	}
	return there, nil
}

// create writes resources for things that have none.
func (w *syncWriter) create(ctx context.Context, things []origin.Thing) error {
	if len(things) == 0 {
		return nil
	}
	var wanted []string
	for _, thing := range things {
		wanted = append(wanted, w.page.Scope().UUIDs(thing.ForeignID)...)
	}
	taken, err := w.store.takenUUIDs(ctx, w.tx, wanted)
	if err != nil {
		return err
	}
	rows := lists.Map(things, func(thing origin.Thing) newResource {
		uuids := slices.DeleteFunc(w.page.Scope().UUIDs(thing.ForeignID), func(uuid string) bool {
			return taken[uuid] || resource.IsReservedUUID(uuid)
		})
		record := ResourceRecord{Type: w.page.ResourceType, Name: thing.Name,
			Description: text.OrEmpty(thing.Description), ProjectID: thing.ProjectID, Visibility: thing.Visibility}
		if len(uuids) > 0 {
			record.UUID = uuids[0]
			taken[record.UUID] = true
		}
		record.Metadata, record.Capabilities = thing.Plan(nil, nil, w.page.IsByMembers()).Set, thing.Capabilities
		return newResource{ResourceRecord: record, typeID: w.typeID}
	})
	for i := range rows {
		if rows[i].UUID == "" {
			return problem.Refuse(problem.ErrAlreadyExists, "another resource has the uuid of %q", things[i].ForeignID).
				On("input.resources")
		}
	}
	written, err := w.store.writeResources(ctx, w.tx, rows, w.now)
	if sqldb.IsDuplicate(err) {
		return fmt.Errorf("%w: %w", sqldb.ErrRetry, err) // a transaction that has committed meanwhile took the uuid
	}
	if err != nil {
		return err
	}
	origins := make([][]any, len(things))
	for i, thing := range things {
		origins[i] = []any{written[i].ID, w.page.Origin, w.page.Region, w.page.Kind, thing.ForeignID,
			keysOf(thing.Metadata), keysOf(thing.Capabilities)}
		w.tx.Record(ctx,
			sqldb.Event{Kind: "Resource", Key: written[i].UUID, After: recordFields(rows[i].ResourceRecord)})
	}
	w.counts.Created = len(things)
	return w.store.Execute(ctx, w.tx, `INSERT INTO resource_origins (resource_id, origin, region, kind, foreign_id, owned_keys, owned_capabilities, absent, observed_at)
		SELECT d.resource_id, d.origin, d.region, d.kind, d.foreign_id, d.owned_keys, d.owned_capabilities, 0, `+w.store.Time("$2")+` FROM `+
		w.store.Rows("$1", "d", "resource_id bigint", "origin text", "region text", "kind text", "foreign_id text",
			"owned_keys text", "owned_capabilities text")+` WHERE true`,
		sqldb.JSONOf(origins), w.now)
}

// keysOf returns the keys of items, sorted, as a JSON array.
func keysOf(items []metadef.KeyValue) string {
	keys := lists.Map(items, func(item metadef.KeyValue) string { return item.Key })
	slices.Sort(keys)
	return sqldb.JSONOf(keys)
}

// syncChange is the change of a resource that exists.
type syncChange struct {
	stored
	wanted ent.Resource
	plan   resource.MetadataPlan
	set    []metadef.KeyValue // capabilities
	unset  []string
	owned  [2]string // the keys of the metadata and of the capabilities of the origin, as JSON
	// isChanged means that the resource changes, isBack that the thing was
	// absent or gone before the page.
	isChanged, isBack bool
}

func (w *syncWriter) changeOf(thing origin.Thing, is stored) syncChange {
	c := syncChange{stored: is, wanted: *is.row, owned: [2]string{keysOf(thing.Metadata), keysOf(thing.Capabilities)}}
	var keys, names []string
	_ = json.Unmarshal([]byte(is.origin.OwnedKeys), &keys) // written by keysOf
	_ = json.Unmarshal([]byte(is.origin.OwnedCapabilities), &names)
	c.plan = thing.Plan(is.items, keys, w.page.IsByMembers())
	values := map[string]string{}
	for name, value := range is.values {
		values[name] = value.Value
	}
	c.set, c.unset = thing.PlanCapabilities(values, names)
	c.wanted.Name, c.wanted.ProjectID, c.wanted.Visibility = thing.Name, thing.ProjectID, string(thing.Visibility)
	if c.wanted.Description = thing.Description; text.OrEmpty(thing.Description) == "" {
		c.wanted.Description = nil
	}
	c.isChanged = !c.plan.Empty() || len(c.set)+len(c.unset) > 0 || c.wanted.Name != is.row.Name ||
		c.wanted.ProjectID != is.row.ProjectID ||
		c.wanted.Visibility != is.row.Visibility ||
		text.OrEmpty(c.wanted.Description) != text.OrEmpty(is.row.Description)
	c.isBack = is.origin.Absent > 0 || is.origin.GoneAt != nil
	return c
}

// change writes the differences, and counts the resources.
func (w *syncWriter) change(ctx context.Context, changes []syncChange) error {
	var plan resource.MetadataPlan
	var rows, origins [][]any
	for i := range changes {
		c := &changes[i]
		if c.isChanged {
			w.counts.Updated++
			c.wanted.Revision++
			rows = append(rows, []any{c.row.ID, c.wanted.Name, text.Fold(c.wanted.Name), c.wanted.Description,
				sqldb.FoldedOrNil(text.OrEmpty(c.wanted.Description)), c.wanted.ProjectID, c.wanted.Visibility})
		} else {
			w.counts.Unchanged++
		}
		for j := range c.plan.Set {
			c.plan.Set[j].ResourceID = c.row.ID
		}
		plan.Set = append(plan.Set, c.plan.Set...)
		plan.Delete = append(plan.Delete, c.plan.Delete...)
		if c.isBack {
			w.counts.Returned++
		}
		if c.isChanged || c.isBack || c.owned != [2]string{c.origin.OwnedKeys, c.origin.OwnedCapabilities} {
			origins = append(origins, []any{c.origin.ID, c.owned[0], c.owned[1]})
			noteResource(w.tx, c.row, &c.wanted)
		}
	}
	if len(origins) == 0 {
		return nil
	}
	if err := w.store.writeMetadata(ctx, w.tx, plan, w.now); err != nil {
		return err
	}
	if err := w.changeCapabilities(ctx, changes); err != nil {
		return err
	}
	err := w.store.Execute(ctx, w.tx, `UPDATE resources SET name = d.name, name_key = d.name_key, description = d.description, description_key = d.description_key,
		project_id = d.project_id, visibility = d.visibility, revision = revision + 1, updated_at = `+w.store.Time("$2")+`
		FROM `+w.store.Rows("$1", "d", "id bigint", "name text", "name_key text", "description text", "description_key text", "project_id text", "visibility text")+`
		WHERE `+w.store.IsRow("resources.id", "$1", "d", "id"), sqldb.JSONOf(rows), w.now)
	if err != nil {
		return err
	}
	err = w.store.Execute(ctx, w.tx, `UPDATE resource_origins SET owned_keys = d.owned_keys, owned_capabilities = d.owned_capabilities, absent = 0, missed_by = NULL, gone_at = NULL, observed_at = `+w.store.Time("$2")+`
		FROM `+w.store.Rows("$1", "d", "id bigint", "owned_keys text", "owned_capabilities text")+` WHERE `+
		w.store.IsRow("resource_origins.id", "$1", "d", "id"), sqldb.JSONOf(origins), w.now)
	if err != nil {
		return err
	}
	return w.record(ctx, changes)
}

// changeCapabilities writes the capabilities that differ.
func (w *syncWriter) changeCapabilities(ctx context.Context, changes []syncChange) error {
	var keys []capabilityKey
	for _, c := range changes {
		for _, one := range c.set {
			keys = append(keys, capabilityKey{c.row.ResourceTypeID, one.Key})
		}
	}
	registry, err := w.store.registered(ctx, w.tx, keys, "input.resources.capabilities")
	if err != nil {
		return err
	}
	var plan capabilityPlan
	for _, c := range changes {
		for _, name := range c.unset {
			plan.gone = append(plan.gone, c.values[name])
		}
		if err := plan.set(c.row, c.set, c.values, len(c.values)-len(c.unset),
			registry, "input.resources"); err != nil {
			return err
		}
	}
	return w.store.writeCapabilities(ctx, w.tx, plan, w.now)
}

// record records the changed and returned resources, before and after, in the
// audit log.
func (w *syncWriter) record(ctx context.Context, changes []syncChange) error {
	changes = slices.DeleteFunc(slices.Clone(changes), func(c syncChange) bool { return !c.isChanged && !c.isBack })
	if len(changes) == 0 {
		return nil
	}
	after, err := w.store.itemsOf(ctx, w.tx.Client(), lists.Map(changes, func(c syncChange) int64 { return c.row.ID }))
	for i := range changes {
		c := &changes[i]
		w.tx.Record(ctx, sqldb.Event{Kind: "Resource", Key: c.row.UUID, Before: syncFields(c.row, c.items, c.values),
			After: syncFields(&c.wanted, after[c.row.ID], c.valuesAfter())})
	}
	return err
}

// valuesAfter returns the values of the resource after the change, by name.
func (c *syncChange) valuesAfter() map[string]*ent.CapabilityValue {
	after := map[string]*ent.CapabilityValue{}
	maps.Copy(after, c.values)
	for _, name := range c.unset {
		delete(after, name)
	}
	for _, one := range c.set {
		after[one.Key] = &ent.CapabilityValue{Value: one.Value}
	}
	return after
}

// syncFields returns a resource for the audit log.
func syncFields(row *ent.Resource, items []*resource.MetadataItem,
	values map[string]*ent.CapabilityValue) sqldb.Fields {
	fields := resourceFields(row, nil)
	delete(fields, "parent") // no sync changes it
	fields["metadata"], fields["capabilities"] = metadataFields(items), capabilityFields(sortedValues(values))
	return fields
}

// markAbsent counts one more pass without the things of the page's range that
// the page does not have. The things in page.Absent count as absent for long
// enough immediately. No resource may be locked afterwards.
func (w *syncWriter) markAbsent(ctx context.Context) error {
	if len(w.page.Absent) > 0 {
		if err := w.mark(ctx, origin.EnoughAbsences, w.store.Listed("foreign_id", "$6", "text"),
			sqldb.JSONOf(w.page.Absent)); err != nil {
			return err
		}
	}
	if w.page.Range != nil {
		seen := lists.Map(w.page.Resources, func(thing origin.Thing) string { return thing.ForeignID })
		within, args := w.within(6)
		condition := `(missed_by IS NULL OR missed_by <> $5) AND NOT (` +
			w.store.Listed("foreign_id", "$6", "text") + `)` + within
		if err := w.mark(ctx, 1, condition, append([]any{sqldb.JSONOf(seen)}, args...)...); err != nil {
			return err
		}
	}
	if w.counts.Absent > 0 {
		w.tx.Record(ctx,
			sqldb.Event{Kind: "Sync", Key: w.page.Scope().Key(), After: sqldb.Fields{"absent": w.counts.Absent}})
	}
	return nil
}

// within returns the conditions that a foreign id is in the range (After, Through]
// of the page, each with AND before it, "" without bounds. others is the number
// of the parameters that precede args.
func (w *syncWriter) within(others int) (condition string, args []any) {
	for _, bound := range []struct {
		operator string
		value    *string
	}{{">", w.page.Range.After}, {"<=", w.page.Range.Through}} {
		if bound.value != nil {
			args = append(args, *bound.value)
			condition += fmt.Sprintf(" AND foreign_id %s $%d", bound.operator, others+len(args))
		}
	}
	return condition, args
}

// mark adds absences to the things that meet a condition, whose parameters
// begin at $6. A thing that was not absent counts as observed by the last
// complete pass.
func (w *syncWriter) mark(ctx context.Context, absences int, condition string, args ...any) error {
	marked, err := sqldb.Column[int64](ctx, w.store.DB, w.tx,
		`UPDATE resource_origins SET absent = absent + $4, missed_by = $5,
		observed_at = CASE WHEN absent = 0 AND s.completed_at > observed_at THEN s.completed_at ELSE observed_at END
		FROM syncs AS s WHERE s.origin = $1 AND s.region = $2 AND s.kind = $3
		AND resource_origins.origin = $1 AND resource_origins.region = $2 AND resource_origins.kind = $3
		AND gone_at IS NULL AND absent < `+strconv.Itoa(origin.EnoughAbsences)+
			` AND `+condition+` RETURNING resource_id`,
		append([]any{w.page.Origin, w.page.Region, w.page.Kind, absences, w.page.Pass}, args...)...)
	if err != nil || len(marked) == 0 {
		return err
	}
	w.counts.Absent += len(marked)
	rows, err := w.tx.Resource.Query().Where(paging.Among(entresource.FieldID, marked)).Order(entresource.ByID()).
		All(ctx)
	for _, row := range rows {
		noteResource(w.tx, row, row)
	}
	return err
}

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
