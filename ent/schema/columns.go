// Package schema is the data model, with one file for each domain. It defines
// columns, unique keys, indexes and cascading deletions. It contains no
// business rules: those are in the domain packages, such as resource and
// placement.
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

// named gives a table a uuid that identifies its rows to clients. A row id
// would reveal how many rows all projects write.
type named struct{ mixin.Schema }

func (named) Fields() []ent.Field {
	return []ent.Field{
		field.String("uuid").SchemaType(varchar(36)).Optional().Immutable().DefaultFunc(newUUID),
	}
}

func (named) Indexes() []ent.Index { return []ent.Index{index.Fields("uuid").Unique()} }

// newUUID returns a uuid that sorts after all earlier uuids of this process.
func newUUID() string { return uuid.Must(uuid.NewV7()).String() }

// timed gives a table its timestamps. The store sets them, in UTC with
// microseconds.
type timed struct{ mixin.Schema }

func (timed) Fields() []ent.Field {
	return []ent.Field{
		field.Time("created_at").Immutable(),
		field.Time("updated_at"),
	}
}

// varchar returns a PostgreSQL type with a maximum length in code points.
// SQLite has no such limit. The domain packages check the length for both
// databases.
func varchar(length int) map[string]string {
	return map[string]string{dialect.Postgres: fmt.Sprintf("varchar(%d)", length)}
}

// cascade deletes the rows at the other end of an edge together with the owner.
func cascade() entsql.Annotation { return entsql.Annotation{OnDelete: entsql.Cascade} }

// restrict refuses to delete the owner while rows at the other end refer to it.
func restrict() entsql.Annotation { return entsql.Annotation{OnDelete: entsql.Restrict} }

// table sets the name of a type's table.
func table(name string) entsql.Annotation { return entsql.Annotation{Table: name} }
