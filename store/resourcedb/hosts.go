package resourcedb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/ent/resourceprovider"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store/visible"
)

// Hosts returns the row ids of the providers that are linked to a resource which
// the viewer may see and which matches a filter, in no order. What is wrong with
// the filter stands below path.
func (s *ResourceStore) Hosts(ctx context.Context, path string, filter resource.Filter) ([]int64, error) {
	clauses, err := s.clausesOf(ctx, path, filter)
	if err != nil {
		return nil, err
	}
	var all sql.NullString
	statement := hostStatement(ctx, entsql.Dialect(s.Pool.Dialect()), clauses)
	err = s.Select(filtered(ctx, filter), statement, func(rows *entsql.Rows) error { return rows.Scan(&all) })
	if err != nil {
		return nil, fmt.Errorf("look up hosts by their resources: %w", err)
	}
	var hosts []int64
	for text := range strings.SplitSeq(all.String, ",") {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil { // none where the text is empty
			hosts = append(hosts, id)
		}
	}
	return hosts, nil
}

// hostStatement returns the row ids of the providers in one text: with thousands
// of them, rows take longer than what finds them. The links of providers stand for
// the resources where no other column of these is asked for.
func hostStatement(ctx context.Context, build *entsql.DialectBuilder, clauses []clause) *entsql.Selector {
	const links, provider = "links", "provider"
	providers := build.Table(resourceprovider.Table)
	linked := build.Select(entsql.As(providers.C(resourceprovider.FieldID), provider), entsql.As(providers.C(resourceprovider.FieldResourceID), entresource.FieldID)).
		From(providers).Where(entsql.NotNull(providers.C(resourceprovider.FieldResourceID)))
	hosts := build.Table(links)
	statement := build.Select().From(hosts)
	if !visible.AreResourcesOpen(ctx) || slices.ContainsFunc(clauses, func(c clause) bool { return !c.byID }) {
		resources := build.Table(entresource.Table)
		statement = build.Select().From(resources)
		statement.Join(hosts).On(hosts.C(entresource.FieldID), resources.C(entresource.FieldID))
		visible.Resources(ctx)(statement)
	}
	statement.Prefix(build.With(links).As(linked))
	keep(statement, clauses)
	joined := "group_concat(%s, ',')"
	if statement.Dialect() == dialect.Postgres {
		joined = "string_agg(%s::text, ',')"
	}
	return statement.SelectExpr(entsql.Raw(fmt.Sprintf(joined, hosts.C(provider))))
}
