package upkeep

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/cadastre-dev/cadastre/change"
	"github.com/cadastre-dev/cadastre/defaults"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/changelog"
	"github.com/cadastre-dev/cadastre/store/sqldb/textindex"
	"github.com/cadastre-dev/cadastre/text"
)

const (
	allocated = `(SELECT COALESCE(SUM(a.used), 0) FROM allocations AS a WHERE a.provider_id = t.provider_id AND a.resource_class_id = t.resource_class_id)`
	counted   = `(SELECT COUNT(*) FROM capability_members AS m WHERE m.capability_id = t.capability_id AND m.value = t.value)`
)

// ofRows returns the invariants of particular tables.
func ofRows() []invariant {
	all := []invariant{
		{kind: Derived, holds: "an inventory's use is the sum of its allocations",
			table: "inventories", columns: []string{"used"},
			where: "t.used <> " + allocated,
			mend:  "UPDATE inventories AS t SET used = " + allocated + " WHERE t.id = {id}"},
		{kind: Derived, holds: "an inventory's capacity follows from total, reserved and ratio", table: "inventories",
			columns: []string{"total", "reserved", "allocation_ratio", "capacity"}, wrong: wrongCapacity,
			mend: "UPDATE inventories SET capacity = {want} WHERE id = {id}"},
		{kind: Invalid, holds: "an inventory has valid amounts", table: "inventories",
			columns: []string{"total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio"},
			where: "t.total < 1 OR t.reserved < 0 OR t.min_unit < 1 OR t.max_unit < 1 OR t.step_size < 1 OR " +
				"NOT (t.allocation_ratio >= 0) OR t.capacity < 0",
			mend: "set the inventory again, with setInventory"},
		{kind: Invalid, holds: "an allocation has an amount", table: "allocations",
			columns: []string{"used"}, where: "t.used < 1",
			mend: "set the allocations of the consumer again, with setAllocations"},
		{kind: Broken, holds: "an allocation has an inventory", table: "allocations",
			columns: []string{"consumer_id", "provider_id", "resource_class_id"},
			where:   `NOT EXISTS (SELECT 1 FROM inventories AS i WHERE i.provider_id = t.provider_id AND i.resource_class_id = t.resource_class_id)`,
			mend:    "create the inventory again, or delete the allocations of the consumer"},
		{kind: Broken, holds: "a consumer has allocations", table: "consumers", columns: []string{"uuid"},
			where: "NOT EXISTS (SELECT 1 FROM allocations AS a WHERE a.consumer_id = t.id)",
			mend:  "DELETE FROM consumers WHERE id = {id}"},
		{kind: Late, holds: "a hold that has ended is released", table: "consumers",
			columns: []string{"uuid", "expires_at"}, only: postgres,
			where: "t.expires_at < clock_timestamp() - interval '1 minute'", mend: "start a server, which releases it"},
		{kind: Late, holds: "a hold that has ended is released", table: "consumers",
			columns: []string{"uuid", "expires_at"}, only: sqlite,
			where: "t.expires_at < strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 minute')",
			mend:  "start a server, which releases it"},
		{kind: Invalid, holds: "the mappings of a consumer are JSON", table: "consumers", columns: []string{"mappings"},
			wrong: notJSON[map[string][]string],
			mend:  "UPDATE consumers SET mappings = NULL WHERE id = {id}"},
		{kind: Derived, holds: "the count of a capability value is the number of its resources", table: "capability_counts",
			columns: []string{"capability_id", "value", "resource_count"}, where: "t.resource_count <> " + counted,
			mend: "UPDATE capability_counts AS t SET resource_count = " + counted + " WHERE t.id = {id}"},
		{kind: Derived, holds: "each capability value has a count", table: "capability_members",
			columns: []string{"capability_id", "value"},
			where:   "NOT EXISTS (SELECT 1 FROM capability_counts AS c WHERE c.capability_id = t.capability_id AND c.value = t.value)",
			mend:    "set the capability of the resource to another value and back"},
		{kind: Derived, holds: "each capability has the members of its value",
			table: "capability_values", columns: []string{"value"}, only: postgres,
			text: fmt.Sprintf(membersOf, "json_agg"), wrong: wrongMembers,
			mend: "set the capability of the resource to another value and back"},
		{kind: Derived, holds: "each capability has the members of its value",
			table: "capability_values", columns: []string{"value"}, only: sqlite,
			text: fmt.Sprintf(membersOf, "json_group_array"), wrong: wrongMembers,
			mend: "set the capability of the resource to another value and back"},
		{kind: Derived, holds: "a member says correctly whether its value is a list", table: "capability_members",
			columns: []string{"value", "in_list"},
			text: "(SELECT v.value FROM capability_values AS v WHERE v.resource_id = t.resource_id AND " +
				"v.capability_id = t.capability_id)",
			wrong: func(row []any) (string, bool) {
				value, ok := row[2].(string)
				_, inList := resource.CapabilityMembers(value)
				return "", ok && row[1] != inList
			}, mend: "UPDATE capability_members SET in_list = NOT in_list WHERE id = {id}"},
		{kind: Derived, holds: "a member belongs to a capability of its resource", table: "capability_members",
			columns: []string{"resource_id", "capability_id", "value"},
			where:   "NOT EXISTS (SELECT 1 FROM capability_values AS v WHERE v.resource_id = t.resource_id AND v.capability_id = t.capability_id)",
			mend:    "DELETE FROM capability_members WHERE id = {id}"},
		{kind: Broken, holds: "a capability belongs to the type of its resource", table: "capability_values",
			columns: []string{"resource_id", "capability_id"},
			where:   `(SELECT r.resource_type_id FROM resources AS r WHERE r.id = t.resource_id) <> (SELECT c.resource_type_id FROM capabilities AS c WHERE c.id = t.capability_id)`,
			mend:    "DELETE FROM capability_values WHERE id = {id}"},
		{kind: Broken, holds: "a property is in the namespace of its object", table: "property_definitions",
			columns: []string{"name", "namespace_id"},
			where:   "(SELECT o.namespace_id FROM object_definitions AS o WHERE o.id = t.object_id) <> t.namespace_id",
			mend:    "move the property into the namespace of its object"},
		{kind: Broken, holds: "a tag is in the namespace of its parent", table: "tags",
			columns: []string{"name", "namespace_id"},
			where:   "(SELECT p.namespace_id FROM tags AS p WHERE p.id = t.parent_id) <> t.namespace_id",
			mend:    "UPDATE tags SET parent_id = NULL WHERE id = {id}"},
		{kind: Invalid, holds: "the keywords of a property are valid", table: "property_definitions",
			columns: []string{"keywords", "name"}, wrong: wrongKeywords,
			mend: "update the property: {want}"},
		{kind: Invalid, holds: "the default rules of a namespace are JSON",
			table: "namespaces", columns: []string{"default_rules"},
			wrong: notJSON[[]metadef.DefaultRule], mend: "UPDATE namespaces SET default_rules = '[]' WHERE id = {id}"},
		{kind: Invalid, holds: "a limit is not negative", table: "project_limits",
			columns: []string{"project_id", "resource_class", "amount"},
			where:   "t.amount < 0", mend: "set the limits of the project again, with setLimits"},
		{kind: Invalid, holds: "the refusal of a place is JSON", table: "place_refusals",
			columns: []string{"refusal"}, wrong: notJSON[any],
			mend: "DELETE FROM place_refusals WHERE id = {id}"},
		{kind: Invalid, holds: "a bucket of the capacity history can be read",
			table: "capacity_buckets", columns: []string{"content"},
			wrong: func(row []any) (string, bool) {
				_, err := placement.UnpackHistory(row[0].(string))
				return "", err != nil
			}, mend: "DELETE FROM capacity_buckets WHERE id = {id}"},
		{kind: Invalid, holds: "the size of a bucket is known", table: "capacity_buckets", columns: []string{"size"},
			wrong: func(row []any) (string, bool) {
				size := placement.CapacityBucketSize(row[0].(string))
				return "", !slices.Contains(placement.CapacityBucketSizes(), size)
			}, mend: "DELETE FROM capacity_buckets WHERE id = {id}"},
		{kind: Invalid, holds: "the required names of an object are JSON", table: "object_definitions",
			columns: []string{"required"}, wrong: notJSON[[]string],
			mend: "UPDATE object_definitions SET required = '[]' WHERE id = {id}"},
		{kind: Invalid, holds: "the key of cursors is hexadecimal", table: "sealing_keys", columns: []string{"name"},
			where: "length(t.value) <> 64 OR trim(t.value, '0123456789abcdef') <> ''",
			mend:  "DELETE FROM sealing_keys WHERE id = {id}"}, // a server makes another one
		{kind: Invalid, holds: "a member has a role", table: "namespace_members",
			columns: []string{"project_id", "role"}, where: "t.role NOT IN ('READER', 'EDITOR')",
			mend: "UPDATE namespace_members SET role = 'READER' WHERE id = {id}"},
		{kind: Invalid, holds: "a change has a known kind", table: "changes", columns: []string{"kind", "key"},
			wrong: func(row []any) (string, bool) {
				return "", row[0] != changelog.PrunedKind &&
					!slices.Contains(change.Kinds(), change.Kind(row[0].(string)))
			}, mend: "DELETE FROM changes WHERE id = {id}"},
		{kind: Invalid, holds: "a change is a creation, an update or a deletion", table: "changes",
			columns: []string{"kind", "what"}, where: "t.what NOT IN ('CREATED', 'UPDATED', 'DELETED')",
			mend: "DELETE FROM changes WHERE id = {id}"},
		{kind: Invalid, holds: "a stored result is JSON", table: "idempotency_keys", columns: []string{"outcome"},
			wrong: notJSON[[]any], mend: "DELETE FROM idempotency_keys WHERE id = {id}"},
		{kind: Invalid, holds: "a sync has a time and a reason of failure, or neither", table: "syncs",
			columns: []string{"failed_at", "failure"}, where: "(t.failed_at IS NULL) <> (t.failure IS NULL)",
			mend: "UPDATE syncs SET failed_at = NULL, failure = NULL WHERE id = {id}"},
		{kind: Invalid, holds: "a change has an audience and a verb, or neither", table: "changes",
			columns: []string{"kind", "audience", "what"},
			where:   "(t.audience IS NULL) <> (t.what IS NULL)", mend: "DELETE FROM changes WHERE id = {id}"},
		{kind: Invalid, holds: "the projects that a change excludes are JSON", table: "changes",
			columns: []string{"named"}, wrong: notJSON[[]string], mend: "DELETE FROM changes WHERE id = {id}"},
		{kind: Late, holds: "a change belongs to a transaction that began", table: "changes",
			columns: []string{"kind", "key"}, only: postgres,
			where: `t."transaction" >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint`,
			mend:  "start a server, which numbers the changes of another PostgreSQL server again"},
		{kind: Late, holds: "a change belongs to a transaction that began", table: "changes",
			columns: []string{"kind", "key"}, only: sqlite,
			where: `t."transaction" > (SELECT COALESCE(MAX(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'changes')`,
			mend:  "delete the change; followers must read everything again"},
	}
	for _, of := range []struct{ table, from, to string }{
		{"resources", "name", "name_key"}, {"tags", "name", "name_key"}, {"resource_tags", "name", "name_key"},
		{"resources", "description", "description_key"}, {"metadata_items", "value", "value_key"},
		{"capability_members", "value", "value_key"},
	} {
		all = append(all, folded(of.table, of.from, of.to))
	}
	all = append(all,
		follows("namespaces", "search_key", []string{"name", "title", "description"}, func(row []any) any {
			return searchKey(row...)
		}),
		follows("object_definitions", "search_key", []string{"name", "description"}, func(row []any) any {
			return searchKey(row...)
		}),
		follows("property_definitions", "search_key", []string{"name", "keywords"}, func(row []any) any {
			schema := metadef.ReadPropertySchema(text.JSON(row[1].(string)))
			return searchKey(row[0], schema.Title, text.OrEmpty(schema.Description))
		}),
		follows("metadata_items", "value_hash", []string{"value"}, func(row []any) any {
			return sqldb.HashOf(row[0].(string))
		}),
		follows("metadata_items", "value_prefix", []string{"value"}, func(row []any) any {
			return sqldb.PrefixOf(row[0].(string))
		}),
		follows("capability_members", "value_hash", []string{"value"}, func(row []any) any {
			return sqldb.HashOf(row[0].(string))
		}),
		follows("capability_members", "number_key", []string{"value"}, func(row []any) any {
			if key, ok := resource.NumberKey(row[0].(string)); ok {
				return key
			}
			return nil
		}),
		follows("capability_counts", "value_digest", []string{"value"}, func(row []any) any {
			return sqldb.DigestOf(row[0].(string))
		}),
		follows("capability_counts", "value_prefix", []string{"value"}, func(row []any) any {
			return sqldb.PrefixOf(row[0].(string))
		}),
	)
	for _, name := range trees {
		all = append(all,
			invariant{kind: Broken, holds: "a tree has a root", table: name, columns: []string{"name", "parent_id"},
				where: `t.parent_id IS NOT NULL AND NOT EXISTS (WITH RECURSIVE up (id, parent_id) AS (SELECT p.id, p.parent_id FROM ` + name + ` AS p WHERE p.id = t.parent_id
				UNION SELECT p.id, p.parent_id FROM ` + name +
					` AS p JOIN up ON p.id = up.parent_id) SELECT 1 FROM up WHERE parent_id IS NULL)`,
				mend: "UPDATE " + name + " SET parent_id = NULL WHERE id = {id}"})
	}
	for _, name := range []string{"owned_keys", "owned_capabilities"} {
		all = append(all, invariant{kind: Invalid, holds: "the keys of an origin are JSON", table: "resource_origins",
			columns: []string{name}, wrong: notJSON[[]string],
			mend: "UPDATE resource_origins SET " + name + " = '[]' WHERE id = {id}"})
	}
	for _, name := range []string{"namespaces", "resources"} {
		all = append(all, invariant{kind: Invalid, holds: "visibility is PUBLIC or PRIVATE",
			table: name, columns: []string{"visibility"}, where: "t.visibility NOT IN ('PUBLIC', 'PRIVATE')",
			mend: "UPDATE " + name + " SET visibility = 'PRIVATE' WHERE id = {id}"})
	}
	for _, name := range []string{"traits", "resource_classes"} {
		all = append(all, invariant{kind: Invalid, holds: "custom names, and no others, begin with CUSTOM_",
			table: name, columns: []string{"name", "standard"},
			where: "t.standard = (substr(t.name, 1, 7) = 'CUSTOM_')",
			mend:  "UPDATE " + name + " SET standard = NOT standard WHERE id = {id}"},
			invariant{kind: Invalid, holds: "a custom name is CUSTOM_ and letters, digits or _", table: name,
				columns: []string{"name"}, where: "NOT t.standard",
				wrong: func(row []any) (string, bool) { return "", !placement.IsCustomName(row[0].(string)) },
				mend:  "replace it where clients use it, too"})
	}
	for _, name := range []string{"before", "after"} {
		all = append(all, invariant{kind: Invalid, holds: "the content of an audit event is JSON", table: "audit_events",
			columns: []string{"action", name}, wrong: func(row []any) (string, bool) { return notJSON[any](row[1:]) },
			mend: "UPDATE audit_events SET " + name + " = NULL WHERE id = {id}"})
	}
	for _, of := range defaults.ResourceTypes() {
		if of.Parent != "" {
			all = append(all, parentOf(of))
		}
	}
	for _, of := range textindex.AllUnindexed() {
		all = append(all, invariant{kind: Derived, holds: "searches find the row by " + of.Index,
			table: of.Table, where: of.Where, only: sqlite,
			mend: "stop the server, DROP TABLE " + of.Index + ", and start it again"})
	}
	return all
}

// membersOf is the SQL for the members of a capability value as a JSON array. Its
// argument is the aggregate function.
const membersOf = "(SELECT CAST(%s(m.value) AS text) FROM capability_members AS m WHERE " +
	"m.resource_id = t.resource_id AND m.capability_id = t.capability_id)"

func wrongMembers(row []any) (string, bool) {
	want, _ := resource.CapabilityMembers(row[0].(string))
	var is []string
	members, _ := row[1].(string) // NULL for an empty list
	err := json.Unmarshal([]byte(cmp.Or(members, "[]")), &is)
	slices.Sort(is)
	slices.Sort(want)
	return "", err != nil || !slices.Equal(is, want)
}

// parentOf returns the invariant that resources of a built-in type have a parent
// of the type's parent type, or no parent if none is required.
func parentOf(of defaults.ResourceType) invariant {
	where := "t.resource_type_id = (SELECT y.id FROM resource_types AS y WHERE y.name = " + literal(of.Name) +
		") AND NOT EXISTS (SELECT 1 FROM resources AS p JOIN resource_types AS y ON y.id = p.resource_type_id " +
		"WHERE p.id = t.parent_id AND y.name = " + literal(of.Parent) + ")"
	if !of.ParentRequired {
		where += " AND t.parent_id IS NOT NULL"
	}
	return invariant{kind: Invalid,
		holds: "the parent of a resource of the type " + of.Name + " is of the type " + of.Parent,
		table: "resources", columns: []string{"uuid", "parent_id"}, where: where, mend: "give the resource such a parent"}
}

// owners has the table that a column refers to; parent_id refers to the column's
// own table.
var owners = map[string]string{"provider_id": "resource_providers",
	"resource_class_id": "resource_classes", "consumer_id": "consumers",
	"trait_id": "traits", "namespace_id": "namespaces", "object_id": "object_definitions",
	"resource_type_id": "resource_types",
	"resource_id":      "resources", "capability_id": "capabilities", "parent_id": ""}

// filled are the columns that no mutation leaves empty. The owner of a namespace
// is not among them: an administrator may have no project.
var filled = []string{"name", "display_name", "project_id", "user_id", "key", "kind", "origin", "region",
	"foreign_id", "resource_class", "consumer_type"}

// perhapsEmpty are the tables whose projects and users come from viewers: there,
// they may be empty.
var perhapsEmpty = []string{"audit_events", "idempotency_keys"}

// references returns the invariants of all tables: references lead to rows, uuids
// are uuids, generations are numbers of changes, times are times, and names are
// not empty.
func references(tables []table) (all []invariant) {
	for _, of := range tables {
		for _, c := range of.columns {
			owner, isReference := owners[c.name]
			switch {
			case isReference && c.is == integer:
				all = append(all, invariant{kind: Broken, holds: c.name + " refers to a row",
					table: of.name, columns: []string{c.name},
					where: fmt.Sprintf("t.%[1]s IS NOT NULL AND NOT EXISTS (SELECT 1 FROM %[2]s AS o WHERE o.id = t.%[1]s)", c.name, cmp.Or(owner, of.name)),
					mend:  "DELETE FROM " + of.name + " WHERE id = {id}"})
			case c.name == "generation" || c.name == "version" || c.name == "revision":
				all = append(all, invariant{kind: Invalid, holds: c.name + " counts changes",
					table: of.name, columns: []string{c.name}, where: "t." + c.name + " < 0",
					mend: "UPDATE " + of.name + " SET " + c.name + " = 1 WHERE id = {id}"})
			case c.name == "uuid" || c.name == "aggregate" || c.name == "consumer":
				all = append(all, invariant{kind: Invalid, holds: c.name + " is a uuid in lower case",
					table: of.name, columns: []string{c.name},
					wrong: func(row []any) (string, bool) {
						is, _ := row[0].(string)
						parsed, err := uuid.Parse(is)
						return "", err != nil || parsed.String() != is
					}, mend: "replace it where clients use it, too"})
			case c.is == instant:
				all = append(all, invariant{kind: Invalid, holds: c.name + " is a time", table: of.name, only: sqlite,
					where: fmt.Sprintf("t.%[1]s IS NOT NULL AND julianday(t.%[1]s) IS NULL", c.name),
					mend:  "set " + c.name + " to the time that it should have"})
			case slices.Contains(filled, c.name) && !slices.Contains(perhapsEmpty, of.name):
				all = append(all, invariant{kind: Invalid, holds: c.name + " is not empty", table: of.name,
					columns: []string{c.name}, where: "t." + c.name + " = ''",
					mend: "set " + c.name + " to the text that it should have"})
			}
		}
	}
	return all
}

// searchKey returns the search key of columns, which may be null.
func searchKey(columns ...any) string {
	texts := make([]string, len(columns))
	for i, one := range columns {
		texts[i], _ = one.(string)
	}
	return text.SearchKey(texts...)
}

// follows is the invariant that a column follows from others.
func follows(table, column string, from []string, of func(row []any) any) invariant {
	return invariant{kind: Derived, holds: column + " follows from " + strings.Join(from, ", "), table: table,
		columns: append(slices.Clone(from), column),
		wrong: func(row []any) (string, bool) {
			want := of(row[:len(from)])
			return literal(want), want != row[len(from)]
		}, mend: "UPDATE " + table + " SET " + column + " = {want} WHERE id = {id}"}
}

// folded is the invariant of a column with the folded text of another.
func folded(table, from, column string) invariant {
	return follows(table, column, []string{from}, func(row []any) any {
		is, ok := row[0].(string)
		key := sqldb.FoldedOrNil(is)
		switch {
		case column == "name_key":
			return text.Fold(is)
		case !ok || key == nil:
			return nil
		}
		return *key
	})
}

// literal returns a value as an SQL literal.
func literal(value any) string {
	switch value := value.(type) {
	case nil:
		return "NULL"
	case string:
		return "'" + strings.ReplaceAll(value, "'", "''") + "'"
	}
	return fmt.Sprint(value)
}

func wrongCapacity(row []any) (string, bool) {
	want := placement.Capacity(int32(row[0].(int64)), int32(row[1].(int64)), row[2].(float64))
	return fmt.Sprint(want), want != row[3]
}

func wrongKeywords(row []any) (string, bool) {
	_, _, problems := metadef.ParsePropertySchema(text.JSON(row[0].(string)),
		row[1].(string), "the property", metadef.Lenient)
	if err := problems.Err(); err != nil {
		return err.Error(), true
	}
	return "", false
}

// notJSON reports whether a string is set and is not the JSON of a type.
func notJSON[V any](row []any) (string, bool) {
	is, ok := row[0].(string)
	var value V
	return "", ok && json.Unmarshal([]byte(is), &value) != nil
}
