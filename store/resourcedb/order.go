package resourcedb

import (
	"context"
	"fmt"
	"maps"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/metadefdb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// resourceOrders returns the sort keys of resources by order field.
func resourceOrders() map[string]paging.SortKey {
	orders := map[string]paging.SortKey{
		string(resource.OrderByType):    {Of: nameOfType, Tie: entresource.FieldUUID},
		string(resource.OrderByProject): {Column: entresource.FieldProjectID, Tie: entresource.FieldUUID},
	}
	maps.Copy(orders, paging.NamedOrders)
	return orders
}

// nameOfType selects the name of a resource's type.
func nameOfType(s *entsql.Selector) entsql.Querier {
	types := entsql.Dialect(s.Dialect()).Table(resourcetype.Table)
	name := entsql.Dialect(s.Dialect()).Select(types.C(resourcetype.FieldName)).From(types).
		Where(entsql.ColumnsEQ(types.C(resourcetype.FieldID), s.C(entresource.FieldResourceTypeID)))
	return entsql.ExprFunc(func(b *entsql.Builder) { b.WriteString("(").Join(name).WriteString(")") })
}

// positions returns a function for the position of each row under an order: a
// key and an id. If type names are the key, one statement looks them up.
func (s *ResourceStore) positions(ctx context.Context, order page.Order,
	rows []*ent.Resource) (func(*ent.Resource) (any, string), error) {
	switch resource.OrderField(order.Field) {
	case resource.OrderByProject:
		return func(row *ent.Resource) (any, string) { return row.ProjectID, row.UUID }, nil
	case resource.OrderByType:
		names, err := typeNames(ctx, s.Ent, rows)
		if err != nil {
			return nil, fmt.Errorf("look up the types of resources: %w", err)
		}
		return func(row *ent.Resource) (any, string) {
			return names[row.ResourceTypeID], row.UUID
		}, nil
	}
	return func(row *ent.Resource) (any, string) {
		return paging.KeyUnder(order, row.Name, row.CreatedAt, row.UpdatedAt), row.UUID
	}, nil
}

// typeNames returns the names of the types of resources by the type's row id.
func typeNames(ctx context.Context, client *ent.Client, rows []*ent.Resource) (map[int64]string, error) {
	ids := lists.Map(rows, func(row *ent.Resource) int64 { return row.ResourceTypeID })
	types, err := client.ResourceType.Query().Where(paging.Among(resourcetype.FieldID, lists.Distinct(ids))).All(ctx)
	return lists.Index(types, func(of *ent.ResourceType) (int64, string) { return of.ID, of.Name }), err
}

// firstOfTypes keeps, of each type that the page can contain, the first
// resources by uuid, one more than a page has. An index has the resources of each
// type in that order, so the database reads no more of them and sorts few.
// conditions has the conditions of the list.
func firstOfTypes(pages paging.Paging, conditions ...func(*entsql.Selector)) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		build := entsql.Dialect(s.Dialect())
		first := build.Select().From(build.Table(entresource.Table))
		first.Select(first.C(entresource.FieldID))
		of, uuid := first.C(entresource.FieldResourceTypeID), first.C(entresource.FieldUUID)
		first.Where(entsql.P(func(b *entsql.Builder) {
			if s.Dialect() != dialect.Postgres {
				b.Ident(of).WriteString(" = parts.id")
				return
			}
			// PostgreSQL drops a column with one value from the order. It would
			// then walk an index on the rest of the order through all types.
			b.Ident(of).WriteString(" >= parts.id AND ").Ident(of).WriteString(" <= parts.id")
		}))
		for _, bound := range pages.Bounds() {
			first.Where(uuidBeyond(uuid, bound))
		}
		for _, condition := range conditions {
			condition(first)
		}
		if s.Dialect() == dialect.Postgres {
			first.OrderBy(pages.Direction()(of))
		}
		first.OrderBy(pages.Direction()(uuid)).Limit(pages.Limit())
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.Ident(s.C(entresource.FieldID)).
				WriteString(" IN (SELECT of_each.id FROM resource_types AS parts CROSS JOIN ")
			if s.Dialect() == dialect.Postgres {
				b.WriteString("LATERAL (").Join(first).WriteString(") AS of_each")
			} else {
				b.WriteString("resources AS of_each ON of_each.id IN (").Join(first).WriteString(")")
			}
			for i, bound := range pages.Bounds() {
				b.WriteString([]string{" WHERE ", " AND "}[i]).
					WriteString("parts.name " + bound.Operator + "= ").Arg(bound.At.Key)
			}
			b.WriteString(")")
		}))
	}
}

// maxParts is the maximum number of types that a page reads one by one. Each is
// a SELECT of the statement.
const maxParts = 8

// partsOf splits a list into parts that are each contiguous in an index. The
// parts are the resources that a viewer sees by each right, or the resources of
// each type if the viewer sees all. It returns none if the list has other
// conditions. It does not split by type on PostgreSQL, which finds a page of
// types well without it, and might walk all names for a part of one.
func (s *ResourceStore) partsOf(ctx context.Context, filter resource.Filter,
	clauses []clause) []func(*entsql.Selector) {
	switch {
	case len(clauses) == 0:
		return visible.PartsOfResources(ctx)
	case !s.Postgres() && len(clauses) == 1 && filter.Types != nil &&
		len(filter.Types) <= maxParts && visible.AreResourcesOpen(ctx):
		return lists.Map(filter.Types, func(name string) func(*entsql.Selector) {
			return func(s *entsql.Selector) {
				s.Where(metadefdb.IsOfOneType(s, s.C(entresource.FieldResourceTypeID), name))
			}
		})
	}
	return nil
}

// firstOfParts keeps the first resources of each part, one more than a page has.
// An index has each part in the order of names, so the database reads no more
// of it and sorts one page of each part. For other orders, the database sorts
// all rows with or without parts.
func firstOfParts(pages paging.Paging, parts []func(*entsql.Selector)) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		build := entsql.Dialect(s.Dialect())
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.Ident(s.C(entresource.FieldID)).WriteString(" IN (")
			for i, part := range parts {
				first := build.Select().From(build.Table(entresource.Table))
				first.Select(first.C(entresource.FieldID))
				part(first)
				pages.Take(first)
				if i > 0 {
					b.WriteString(" UNION ALL ")
				}
				b.WriteString("SELECT id FROM (").Join(first).WriteString(fmt.Sprintf(") AS part_%d", i))
			}
			b.WriteString(")")
		}))
	}
}

// uuidBeyond holds for the uuids beyond the bound in the part of the bound's
// own type, and for all uuids in the parts of other types.
func uuidBeyond(column string, bound paging.Bound) *entsql.Predicate {
	every := "" // before every uuid
	if bound.Operator == "<" {
		every = "~" // after every uuid
	}
	return entsql.P(func(b *entsql.Builder) {
		b.Ident(column).WriteString(" " + bound.Operator + " CASE WHEN parts.name = ").Arg(bound.At.Key).
			WriteString(" THEN ").Arg(bound.At.ID).WriteString(" ELSE '" + every + "' END")
	})
}
