package store

import (
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/catalog"
)

// ofEach keeps of each partition - the rows that have one key in a column - the
// rows of one page: a nested list is taken for all its parents in one
// statement. The conditions are those of the list.
func (p paging) ofEach(table, column string, keys []int64, conditions ...func(*entsql.Selector)) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		build := entsql.Dialect(s.Dialect())
		ranked := build.Select().From(build.Table(table))
		ranked.Select(ranked.C("id"))
		among(column, keys)(ranked)
		for _, condition := range conditions {
			condition(ranked)
		}
		p.within(ranked)
		window := entsql.RowNumber().PartitionBy(ranked.C(column)).OrderBy(p.direction()(ranked.C(p.key.column)), p.direction()(ranked.C("id")))
		ranked.AppendSelectExprAs(window, "place")
		ranked.As("ranked")
		s.Where(entsql.In(s.C("id"), build.Select(ranked.C("id")).From(ranked).Where(entsql.LTE(ranked.C("place"), p.limit()))))
		s.OrderBy(s.C(column))
		p.sort(s)
	}
}

// behind keeps the rows on the side where a page begins: the cursor's own row
// and what lies beyond it, which the page does not look at.
func (p paging) behind(s *entsql.Selector) {
	until, beyond := "<=", ">="
	if p.descending {
		until, beyond = beyond, until
	}
	switch {
	case p.request.Backward() && p.before != nil:
		s.Where(p.compare(s, beyond, *p.before))
	case !p.request.Backward() && p.after != nil:
		s.Where(p.compare(s, until, *p.after))
	default:
		s.Where(entsql.False())
	}
}

// pagesOf makes a page of each partition of the rows that ofEach kept, for every
// key.
func pagesOf[Row, Noun any](p paging, keys []int64, rows []Row, partition func(Row) int64, noun func(Row) Noun, place func(Row) (key any, id int64)) map[int64]catalog.Page[Noun] {
	parts := make(map[int64][]Row, len(keys))
	for _, row := range rows {
		parts[partition(row)] = append(parts[partition(row)], row)
	}
	pages := make(map[int64]catalog.Page[Noun], len(keys))
	for _, key := range keys {
		pages[key] = page(p, parts[key], noun, place)
	}
	return pages
}
