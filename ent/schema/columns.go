// Package schema is the data model: one file a domain. It knows no rule that
// catalog or placement could hold; it says which columns there are, which are
// unique, which are indexed and what a deletion takes with it.
package schema

import (
	"fmt"

	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"entgo.io/ent/schema/mixin"
	"github.com/google/uuid"
)

// identified gives a table a 64-bit id that is never used twice.
type identified struct{ mixin.Schema }

func (identified) Fields() []ent.Field {
	return []ent.Field{field.Int64("id").Immutable()}
}

// named gives a table a uuid, by which its rows are known outside: ids of rows
// count what everybody writes.
type named struct{ mixin.Schema }

func (named) Fields() []ent.Field {
	return []ent.Field{
		field.String("uuid").SchemaType(varchar(36)).Optional().Immutable().DefaultFunc(newUUID),
	}
}

func (named) Indexes() []ent.Index { return []ent.Index{index.Fields("uuid").Unique()} }

// newUUID returns a uuid that sorts behind those made before in this process.
func newUUID() string { return uuid.Must(uuid.NewV7()).String() }

// timed gives a table its times, in UTC with microseconds, set by the store.
type timed struct{ mixin.Schema }

func (timed) Fields() []ent.Field {
	return []ent.Field{
		field.Time("created_at").Immutable(),
		field.Time("updated_at"),
	}
}

// varchar is a PostgreSQL type of at most length code points. SQLite has no
// such limit; the rules in catalog and placement hold it on both.
func varchar(length int) map[string]string {
	return map[string]string{dialect.Postgres: fmt.Sprintf("varchar(%d)", length)}
}

// cascade takes the rows at the other end of an edge away with the owner.
func cascade() entsql.Annotation { return entsql.Annotation{OnDelete: entsql.Cascade} }

// restrict refuses to delete the owner while rows at the other end refer to it.
func restrict() entsql.Annotation { return entsql.Annotation{OnDelete: entsql.Restrict} }

// table names the table of a type.
func table(name string) entsql.Annotation { return entsql.Annotation{Table: name} }
