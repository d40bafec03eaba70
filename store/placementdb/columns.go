package placementdb

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/store/sqldb"
)

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
