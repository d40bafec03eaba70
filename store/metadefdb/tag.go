package metadefdb

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	entresource "github.com/cadastre-dev/cadastre/ent/resource"
	"github.com/cadastre-dev/cadastre/ent/resourcetag"
	"github.com/cadastre-dev/cadastre/ent/tag"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/sqldb/textindex"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

var tagOrders = map[string]paging.SortKey{"NAME": {Column: tag.FieldNameKey}}

// Tags returns a page of the tags of all visible namespaces, sorted by name,
// ignoring case. If search is not empty, it keeps the tags with that string in
// the name.
func (s *MetadefStore) Tags(ctx context.Context, search string, request page.Request) (page.Page[*metadef.Tag], error) {
	var problems problem.Problems
	if text.Check(&problems, "search", search, 0, metadef.MaxSearch); len(problems) > 0 {
		return page.Page[*metadef.Tag]{}, problems.Err()
	}
	if search != "" { // the best plan depends on how frequent the string is
		ctx = sqldb.Unprepared(ctx)
	}
	pages, err := paging.New("tags", tagOrders, page.Order{Field: "NAME"}, request)
	return paging.PageOf(ctx, s.DB, tagTable, pages, err, tagNoun, func(row *ent.Tag) (any, string) {
		return row.NameKey, row.UUID
	},
		visible.InNamespaces(ctx), tagsNamedLike(search))
}

// CountTags returns the number of tags on all pages of Tags.
func (s *MetadefStore) CountTags(ctx context.Context, search string) (int, error) {
	return tagTable.Count(ctx, s.DB, visible.InNamespaces(ctx), tagsNamedLike(search))
}

func tagsNamedLike(search string) predicate.Tag {
	if search == "" {
		return func(*entsql.Selector) {}
	}
	return func(s *entsql.Selector) { s.Where(textindex.NamesOfTags.Contains(s.C, text.Fold(search))) }
}

// CountTagged returns the number of visible resources that carry each of the
// visible tags, by row id of the tag.
func (s *MetadefStore) CountTagged(ctx context.Context, tags []int64) (map[int64]int, error) {
	return tagTable.CountBy(ctx, s.DB, tag.FieldID, paging.Among(tag.FieldID, tags),
		visible.InNamespaces(ctx), func(selector *entsql.Selector) {
			build := entsql.Dialect(selector.Dialect())
			tagged, resources := build.Table(resourcetag.Table), build.Table(entresource.Table)
			selector.Join(tagged).On(selector.C(tag.FieldNameKey), tagged.C(resourcetag.FieldNameKey)).
				Join(resources).On(tagged.C(resourcetag.FieldResourceID), resources.C(entresource.FieldID)).
				Where(visible.ResourceCondition(access.ViewerFrom(ctx), resources.C))
		})
}

// SetTags sets the tags of a namespace, or adds tags to them. Tags that keep
// their names, ignoring case, keep their identity. In a protected namespace,
// SetTags refuses to delete tags. It returns all tags after the change.
func (s *MetadefStore) SetTags(ctx context.Context,
	input metadef.TagsChange) (tags []*metadef.Tag, in *metadef.Namespace, err error) {
	e := edit{mutation: "setTags", namespace: input.Namespace, revision: input.Revision}
	in, err = s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		rows, err := tx.Tag.Query().Where(tag.NamespaceID(row.ID)).Order(tag.ByNameKey()).All(ctx)
		if err != nil {
			return nil, err
		}
		var existing []string
		if input.Append {
			for _, there := range rows {
				existing = append(existing, there.Name)
			}
		}
		if err := s.checkCount("tags", len(existing)+len(input.Tags)); err != nil {
			return nil, err
		}
		wanted, problems := metadef.CheckTags(input.Tags, existing, "input.tags")
		if err := problems.Err(); err != nil {
			return nil, err
		}
		for i, named := range wanted {
			if at := slices.IndexFunc(existing, func(name string) bool {
				return text.Fold(name) == text.Fold(named.Name)
			}); at >= 0 {
				return nil, refuseTagTaken(existing[at], row.Name, fmt.Sprintf("input.tags[%d].name", i))
			}
		}
		if row.Protected && !input.Append && losesTags(rows, wanted) {
			return nil, refuseProtected(row.Name)
		}
		if err := e.admit(row); err != nil {
			return nil, err
		}
		before := tagsFields(rows)
		if input.Append {
			ids := lists.Index(rows, func(there *ent.Tag) (string, int64) { return there.NameKey, there.ID })
			err = insertTags(ctx, tx, row.ID, wanted, ids, s.Now())
		} else {
			err = rewriteTags(ctx, tx, row.ID, wanted, s.Now())
		}
		if err != nil {
			return nil, err
		}
		after, err := tx.Tag.Query().Where(tag.NamespaceID(row.ID)).Order(tag.ByNameKey()).All(ctx)
		tags = lists.Map(after, tagNoun)
		return &sqldb.Event{Kind: "Namespace", Key: row.Name, Before: before, After: tagsFields(after)}, err
	}, &tags)
	return tags, in, err
}

// losesTags reports whether some of the rows are missing from tags.
func losesTags(rows []*ent.Tag, tags []metadef.DocumentTag) bool {
	kept := lists.Set(tags, func(tag metadef.DocumentTag) string { return text.Fold(tag.Name) })
	return slices.ContainsFunc(rows, func(row *ent.Tag) bool { return !kept[row.NameKey] })
}

func refuseTagTaken(name, in, field string) error {
	return problem.Refuse(problem.ErrAlreadyExists, "tag %q already exists in namespace %q; case is ignored", name,
		in).On(field)
}

// UpdateTag changes the name and the parent of a tag, each only if input sets
// it.
func (s *MetadefStore) UpdateTag(ctx context.Context,
	input metadef.TagChange) (changed *metadef.Tag, in *metadef.Namespace, err error) {
	e := edit{mutation: "updateTag", namespace: input.Namespace, revision: input.Revision}
	in, err = s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		there, current, err := findTag(ctx, tx, row, input.Name)
		if err != nil {
			return nil, err
		}
		var problems problem.Problems
		name := metadef.RenamedAs(&problems, "input.newName", current.Name, input.NewName)
		parent := parentIn(there, current, input.Parent, &problems)
		if err := problems.Err(); err != nil {
			return nil, err
		}
		if other := there[text.Fold(name)]; other != nil && other.ID != current.ID {
			return nil, refuseTagTaken(other.Name, row.Name, "input.newName")
		}
		if err := e.admit(row); err != nil {
			return nil, err
		}
		before := tagFields(current, namesOfTags(slices.Collect(maps.Values(there))))
		err = writeTag(ctx, tx, current, name, parent, s.Now())
		changed = tagNoun(current)
		return &sqldb.Event{Kind: "Tag", Key: row.Name + "/" + input.Name, Before: before,
			After: tagFields(current, namesOfTags(slices.Collect(maps.Values(there))))}, err
	}, &changed)
	return changed, in, err
}

// parentIn returns the row id of a tag's parent after a change, 0 for none. It
// adds a problem for an unknown parent, and for one below the tag.
func parentIn(there map[string]*ent.Tag, current *ent.Tag,
	to metadef.Change[*string], problems *problem.Problems) int64 {
	switch {
	case !to.Set:
		return sqldb.IDOf(current.ParentID)
	case to.Value == nil:
		return 0
	}
	parent := there[text.Fold(*to.Value)]
	if parent == nil {
		problems.Add("input.parent", "is not a tag of the namespace")
		return 0
	}
	parents := map[int64]int64{}
	for _, row := range there {
		parents[row.ID] = sqldb.IDOf(row.ParentID)
	}
	if metadef.MakesTagCycle(parents, current.ID, parent.ID) {
		problems.Add("input.parent", "makes the tag its own ancestor")
	}
	return parent.ID
}

// findTag returns the tags of a namespace by their folded names, and the one
// with a name, or ErrNotFound.
func findTag(
	ctx context.Context, tx *sqldb.Tx, in *ent.Namespace, name string,
) (there map[string]*ent.Tag, found *ent.Tag, err error) {
	rows, err := tx.Tag.Query().Where(tag.NamespaceID(in.ID)).All(ctx)
	there = lists.ByKey(rows, func(row *ent.Tag) string { return row.NameKey })
	if found = there[text.Fold(name)]; err == nil && found == nil {
		err = problem.Refuse(problem.ErrNotFound, "tag %q does not exist in namespace %q", name, in.Name).
			On("input.name")
	}
	return there, found, err
}

// DeleteTag deletes a tag. Its children stay, without a parent.
func (s *MetadefStore) DeleteTag(ctx context.Context, namespace, name string,
	revision *int) (deleted *metadef.Tag, in *metadef.Namespace, err error) {
	e := edit{mutation: "deleteTag", namespace: namespace, revision: revision, deletes: true}
	in, err = s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		there, current, err := findTag(ctx, tx, row, name)
		if err := cmp.Or(err, e.admit(row)); err != nil {
			return nil, err
		}
		deleted = tagNoun(current)
		_, err = tx.Tag.Delete().Where(tag.ID(current.ID)).Exec(ctx)
		return &sqldb.Event{Kind: "Tag", Key: row.Name + "/" + current.Name,
			Before: tagFields(current, namesOfTags(slices.Collect(maps.Values(there))))}, err
	}, &deleted)
	return deleted, in, err
}
