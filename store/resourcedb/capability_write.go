package resourcedb

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/capability"
	"github.com/cadastre-dev/cadastre/ent/capabilitycount"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
)

type capabilityKey struct {
	typeID int64
	name   string
}

// capabilityWrite is a value to insert.
type capabilityWrite struct {
	resourceID   int64
	capabilityID int64
	value        string
}

// insertCapabilityRegistry registers names that are not registered yet.
// Registered names keep their visibility. It writes in the order of types and
// names, so that two writers never deadlock.
func (s *ResourceStore) insertCapabilityRegistry(ctx context.Context, tx *sqldb.Tx,
	private map[capabilityKey]bool) error {
	if len(private) == 0 {
		return nil
	}
	keys := slices.SortedFunc(maps.Keys(private), compareCapabilityKeys)
	rows := lists.Map(keys, func(key capabilityKey) []any {
		return []any{uuid.Must(uuid.NewV7()).String(), key.typeID, key.name, private[key]}
	})
	return s.Query(ctx, tx, `INSERT INTO capabilities (uuid, resource_type_id, name, private, created_at, updated_at)
		SELECT d.uuid, d.resource_type_id, d.name, d.private, `+s.Time("$2")+`, `+s.Time("$2")+` FROM `+
		s.Rows("$1", "d", "uuid text", "resource_type_id bigint", "name text", "private boolean")+`
		WHERE true ON CONFLICT (resource_type_id, name) DO NOTHING
		RETURNING (SELECT t.name FROM resource_types t WHERE t.id = resource_type_id) || '/' || name`,
		func(rows *sql.Rows) error {
			var key string
			err := rows.Scan(&key)
			tx.Created("Capability", key)
			return err
		}, sqldb.JSONOf(rows), s.Now())
}

func compareCapabilityKeys(a, b capabilityKey) int {
	return cmp.Or(cmp.Compare(a.typeID, b.typeID), cmp.Compare(a.name, b.name))
}

// ensureCapabilities registers missing names, with the operator's default
// visibility, and returns the row ids of the registry entries of all names.
func (s *ResourceStore) ensureCapabilities(ctx context.Context, tx *sqldb.Tx,
	keys []capabilityKey) (map[capabilityKey]int64, error) {
	there, err := findCapabilities(ctx, tx, keys)
	if err != nil {
		return nil, err
	}
	private := map[capabilityKey]bool{}
	for _, key := range keys {
		if there[key] == 0 {
			private[key] = s.options.CapabilityDefaultVisibility != access.Public
		}
	}
	if len(private) == 0 {
		return there, nil
	}
	if err := s.insertCapabilityRegistry(ctx, tx, private); err != nil {
		return nil, err
	}
	return findCapabilities(ctx, tx, keys)
}

func findCapabilities(ctx context.Context, tx *sqldb.Tx, keys []capabilityKey) (map[capabilityKey]int64, error) {
	types, names := map[int64]bool{}, map[string]bool{}
	for _, key := range keys {
		types[key.typeID], names[key.name] = true, true
	}
	rows, err := tx.Capability.Query().Where(
		paging.Among(capability.FieldResourceTypeID, slices.Sorted(maps.Keys(types))),
		paging.Among(capability.FieldName, slices.Sorted(maps.Keys(names)))).All(ctx)
	if err != nil {
		return nil, err
	}
	return lists.Index(rows, func(row *ent.Capability) (capabilityKey, int64) {
		return capabilityKey{row.ResourceTypeID, row.Name}, row.ID
	}), nil
}

// writeCapabilities deletes the values of a plan, then writes its new ones, and
// updates the counts.
func (s *ResourceStore) writeCapabilities(ctx context.Context, tx *sqldb.Tx, plan capabilityPlan, now time.Time) error {
	counts := countChanges{}
	if err := s.deleteCapabilityValues(ctx, tx, plan.gone, counts); err != nil {
		return err
	}
	if err := insertCapabilityValues(ctx, tx, plan.writes, counts, now); err != nil {
		return err
	}
	return counts.apply(ctx, s.DB, tx)
}

// insertCapabilityValues stores values and their members, and adds the members
// to changes.
func insertCapabilityValues(ctx context.Context, tx *sqldb.Tx, writes []capabilityWrite,
	changes countChanges, now time.Time) error {
	var creates []*ent.CapabilityValueCreate
	var members []*ent.CapabilityMemberCreate
	for _, write := range writes {
		creates = append(creates, tx.CapabilityValue.Create().SetResourceID(write.resourceID).
			SetCapabilityID(write.capabilityID).
			SetValue(write.value).SetCreatedAt(now).SetUpdatedAt(now))
		values, inList := resource.CapabilityMembers(write.value)
		for _, value := range values {
			create := tx.CapabilityMember.Create().SetResourceID(write.resourceID).SetCapabilityID(write.capabilityID).
				SetValue(value).SetValueHash(sqldb.HashOf(value)).
				SetNillableValueKey(sqldb.FoldedOrNil(value)).SetInList(inList)
			if key, ok := resource.NumberKey(value); ok {
				create.SetNumberKey(key)
			}
			members = append(members, create)
			changes.add(write.capabilityID, value, 1)
		}
	}
	if err := paging.InsertAll(ctx, creates, tx.CapabilityValue.CreateBulk); err != nil {
		return err
	}
	return paging.InsertAll(ctx, members, tx.CapabilityMember.CreateBulk)
}

// deleteCapabilityValues deletes values with their members, and subtracts the
// members from changes.
func (s *ResourceStore) deleteCapabilityValues(ctx context.Context, tx *sqldb.Tx,
	rows []*ent.CapabilityValue, changes countChanges) error {
	if len(rows) == 0 {
		return nil
	}
	pairs := make([][]any, len(rows))
	for i, row := range rows {
		pairs[i] = []any{row.ResourceID, row.CapabilityID}
		members, _ := resource.CapabilityMembers(row.Value)
		for _, member := range members {
			changes.add(row.CapabilityID, member, -1)
		}
	}
	for _, table := range []string{"capability_values", "capability_members"} {
		err := s.Execute(ctx, tx, `DELETE FROM `+table+` WHERE id IN (SELECT v.id FROM `+
			s.Rows("$1", "d", "resource_id bigint", "capability_id bigint")+`
			JOIN `+table+` v ON v.resource_id = d.resource_id AND v.capability_id = d.capability_id)`,
			sqldb.JSONOf(pairs))
		if err != nil {
			return err
		}
	}
	return nil
}

// countChanges are the changes in the number of resources that have each value.
type countChanges map[countKey]int

type countKey struct {
	capabilityID int64
	value        string
}

func (c countChanges) add(capabilityID int64, value string, by int) {
	c[countKey{capabilityID, value}] += by
}

// apply updates the stored counts, in the same order for every writer, and
// deletes the counts that reach 0.
func (c countChanges) apply(ctx context.Context, d *sqldb.DB, tx *sqldb.Tx) error {
	maps.DeleteFunc(c, func(_ countKey, by int) bool { return by == 0 })
	keys := slices.SortedFunc(maps.Keys(c), func(a, b countKey) int {
		return cmp.Or(cmp.Compare(a.capabilityID, b.capabilityID), cmp.Compare(a.value, b.value))
	})
	var capabilities []int64
	var digests []string
	for chunk := range slices.Chunk(keys, paging.RowsAtOnce) {
		rows := lists.Map(chunk, func(key countKey) []any {
			digest := sqldb.DigestOf(key.value)
			if c[key] < 0 {
				capabilities, digests = append(capabilities, key.capabilityID), append(digests, digest)
			}
			return []any{key.capabilityID, key.value, digest, sqldb.PrefixOf(key.value), c[key]}
		})
		err := d.Execute(ctx, tx, `INSERT INTO capability_counts (capability_id, value, value_digest, value_prefix, resource_count)
			SELECT n.* FROM `+d.Rows("$1", "n", "capability_id bigint", "value text", "value_digest text", "value_prefix text", "resource_count bigint")+`
			WHERE TRUE ON CONFLICT (capability_id, value_digest)
			DO UPDATE SET resource_count = capability_counts.resource_count + excluded.resource_count`,
			sqldb.JSONOf(rows))
		if err != nil {
			return err
		}
	}
	if len(digests) == 0 {
		return nil
	}
	_, err := tx.CapabilityCount.Delete().Where(
		paging.Among(capabilitycount.FieldCapabilityID, slices.Compact(capabilities)),
		paging.Among(capabilitycount.FieldValueDigest, digests), capabilitycount.ResourceCountLTE(0)).Exec(ctx)
	return err
}

// CapabilityRecord is an entry of the capability registry, with its resource
// type by name.
type CapabilityRecord struct {
	ResourceType string
	Name         string
	Private      bool
}

// InsertRegistry registers capabilities, and creates missing resource types.
func (s *ResourceStore) InsertRegistry(ctx context.Context, tx *sqldb.Tx, records []CapabilityRecord) error {
	names := lists.Map(records, func(record CapabilityRecord) string { return record.ResourceType })
	types, err := s.metadefs.EnsureResourceTypes(ctx, tx, names)
	if err != nil {
		return err
	}
	private := lists.Index(records, func(record CapabilityRecord) (capabilityKey, bool) {
		return capabilityKey{types[record.ResourceType], record.Name}, record.Private
	})
	return s.insertCapabilityRegistry(ctx, tx, private)
}
