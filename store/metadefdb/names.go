package metadefdb

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// maxSuggested is the maximum number of names that are searched for the nearest
// one: the first in the order of code points.
const maxSuggested = 10_000

// namesSeen caches the names that the viewer sees, for one field of Query or
// Mutation.
type namesSeen struct {
	mu    sync.Mutex
	known map[metadef.NameKind]map[string]bool // whether the viewer sees a name
	all   map[metadef.NameKind][]string        // for suggestions
}

type namesSeenKey struct{ field string }

// CheckNames returns the problems of arguments: the problems in checked and,
// for each name that the viewer does not see, a problem that suggests the
// nearest visible name. A list of names that already has a problem is not
// looked up. One statement looks up the names of all other lists that are not
// cached, and another one reads the names to suggest.
func (s *MetadefStore) CheckNames(ctx context.Context, checked error, mentions ...metadef.Mention) error {
	problems, ok := problem.Of(checked)
	if !ok {
		return checked
	}
	seen := sqldb.KeptOf(ctx, s.DB, namesSeenKey{access.ViewerFrom(ctx).UsedField()}, func() *namesSeen {
		return &namesSeen{known: map[metadef.NameKind]map[string]bool{}, all: map[metadef.NameKind][]string{}}
	})
	seen.mu.Lock()
	defer seen.mu.Unlock()
	var valid []metadef.Mention
	for _, mention := range mentions {
		if !problems.HasUnder(mention.Path) {
			valid = append(valid, mention)
		}
	}
	if err := s.lookUpNames(ctx, seen, valid); err != nil {
		return err
	}
	if err := s.listNames(ctx, seen, valid); err != nil {
		return err
	}
	for _, mention := range valid {
		known := seen.known[mention.Kind]
		mention.Check(&problems, func(name string) bool { return known[name] }, seen.all[mention.Kind])
	}
	return problems.Err()
}

// CheckResourceType is CheckNames for the argument resourceType.
func (s *MetadefStore) CheckResourceType(ctx context.Context, checked error, name *string) error {
	problems, ok := problem.Of(checked)
	if !ok {
		return checked
	}
	text.CheckOptional(&problems, "resourceType", name, 0, math.MaxInt)
	return s.CheckNames(ctx, problems.Err(), metadef.MentionOfOne(metadef.NameOfResourceType, "resourceType", name))
}

// lookUpNames looks up whether the viewer sees the names of mentions, unless
// cached.
func (s *MetadefStore) lookUpNames(ctx context.Context, seen *namesSeen, mentions []metadef.Mention) error {
	wanted := map[metadef.NameKind][]string{}
	for _, mention := range mentions {
		for _, name := range mention.Names {
			if _, ok := seen.known[mention.Kind][name]; !ok {
				wanted[mention.Kind] = append(wanted[mention.Kind], name)
			}
		}
	}
	parts := map[metadef.NameKind]*entsql.Selector{}
	for kind, names := range wanted {
		part, column := s.visibleNames(ctx, kind)
		parts[kind] = part.Where(paging.IsAmong(part, column, lists.Distinct(names))).Select(column)
	}
	found, err := s.selectNames(ctx, parts)
	if err != nil {
		return fmt.Errorf("look up names: %w", err)
	}
	for kind, names := range wanted {
		if seen.known[kind] == nil {
			seen.known[kind] = map[string]bool{}
		}
		for _, name := range names {
			seen.known[kind][name] = slices.Contains(found[kind], name)
		}
	}
	return nil
}

// listNames adds to seen the names that the viewer sees, for each kind with an
// unknown name in a mention. It reads at most maxSuggested names of a kind, and no
// kind twice.
func (s *MetadefStore) listNames(ctx context.Context, seen *namesSeen, mentions []metadef.Mention) error {
	parts := map[metadef.NameKind]*entsql.Selector{}
	for _, mention := range mentions {
		known := seen.known[mention.Kind]
		unknown := slices.ContainsFunc(mention.Names, func(name string) bool { return !known[name] })
		if !unknown || seen.all[mention.Kind] != nil || parts[mention.Kind] != nil {
			continue
		}
		of, column := s.visibleNames(ctx, mention.Kind)
		of.Select(column).OrderBy(column).Limit(maxSuggested).As("seen")
		parts[mention.Kind] = entsql.Dialect(s.Pool.Dialect()).Select(of.C("name")).From(of)
	}
	found, err := s.selectNames(ctx, parts)
	if err != nil {
		return fmt.Errorf("list names: %w", err)
	}
	for kind := range parts {
		seen.all[kind] = append([]string{}, found[kind]...)
	}
	return nil
}

// selectNames returns the names that the statements select, by kind. It
// combines the statements into one, and sends nothing if parts is empty.
func (s *MetadefStore) selectNames(ctx context.Context,
	parts map[metadef.NameKind]*entsql.Selector) (map[metadef.NameKind][]string, error) {
	kinds := slices.Sorted(maps.Keys(parts))
	var statement *entsql.Selector
	for i, kind := range kinds {
		part := parts[kind].AppendSelectExprAs(entsql.Raw(strconv.Itoa(i)), "kind")
		if statement == nil {
			statement = part
		} else {
			statement.UnionAll(part)
		}
	}
	found := map[metadef.NameKind][]string{}
	if statement == nil {
		return found, nil
	}
	err := s.Select(ctx, statement, func(rows *entsql.Rows) error {
		var name string
		var kind int
		err := rows.Scan(&name, &kind)
		found[kinds[kind]] = append(found[kinds[kind]], name)
		return err
	})
	return found, err
}

// visibleNames returns a statement for the visible objects of a kind, and its
// column of names.
func (s *MetadefStore) visibleNames(ctx context.Context,
	kind metadef.NameKind) (statement *entsql.Selector, column string) {
	build := entsql.Dialect(s.Pool.Dialect())
	if kind == metadef.NameOfNamespace {
		table := build.Table(namespace.Table)
		statement = build.Select().From(table)
		visible.Namespaces(ctx)(statement)
		return statement, table.C(namespace.FieldName)
	}
	table := build.Table(resourcetype.Table)
	statement = build.Select().From(table)
	visible.ResourceTypes(ctx)(statement)
	return statement, table.C(resourcetype.FieldName)
}
