package metadefdb

import (
	entsql "entgo.io/ent/dialect/sql"

	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/objectdefinition"
	"github.com/cadastre-dev/cadastre/ent/predicate"
	"github.com/cadastre-dev/cadastre/ent/propertydefinition"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/ent/tag"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/store/sqldb/textindex"
	"github.com/cadastre-dev/cadastre/text"
)

// namespacesMatching returns the predicate that keeps the namespaces that match
// a filter. One association must meet all of the filter's conditions on
// associations.
func namespacesMatching(filter metadef.NamespaceFilter) predicate.Namespace {
	return func(s *entsql.Selector) {
		if filter.Visibility != nil {
			s.Where(entsql.EQ(s.C(namespace.FieldVisibility), string(*filter.Visibility)))
		}
		if filter.Owner != nil {
			s.Where(entsql.EQ(s.C(namespace.FieldOwner), *filter.Owner))
		}
		if filter.Search != nil {
			s.Where(mentions(s, text.Fold(*filter.Search)))
		}
		if filter.ResourceTypes != nil || filter.PropertiesTarget != nil {
			associations := entsql.Dialect(s.Dialect()).Table(resourcetypeassociation.Table)
			s.Where(entsql.In(s.C(namespace.FieldID), entsql.Dialect(s.Dialect()).
				Select(associations.C(resourcetypeassociation.FieldNamespaceID)).From(associations).
				Where(entsql.And(associatedAs(s, associations, filter)...))))
		}
		if filter.DefinesKey != nil {
			s.Where(defines(s, filter))
		}
		if filter.Tag != nil {
			tags := entsql.Dialect(s.Dialect()).Table(tag.Table)
			s.Where(entsql.In(s.C(namespace.FieldID), entsql.Dialect(s.Dialect()).
				Select(tags.C(tag.FieldNamespaceID)).From(tags).
				Where(entsql.EQ(tags.C(tag.FieldNameKey), text.Fold(*filter.Tag)))))
		}
	}
}

// associationsMatching returns the predicate that keeps the associations that
// match a filter, by the rule of metadef.AssociationFilter.Of.
func associationsMatching(filter metadef.AssociationFilter) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		if filter.Namespaces != nil {
			namespaces := entsql.Dialect(s.Dialect()).Table(namespace.Table)
			s.Where(entsql.In(s.C(resourcetypeassociation.FieldNamespaceID), entsql.Dialect(s.Dialect()).
				Select(namespaces.C(namespace.FieldID)).From(namespaces).
				Where(paging.IsAmong(s, namespaces.C(namespace.FieldName), filter.Namespaces))))
		}
		if filter.ResourceTypes != nil {
			s.Where(IsOfType(s, s.C(resourcetypeassociation.FieldResourceTypeID), filter.ResourceTypes))
		}
		if filter.Prefix != nil {
			s.Where(entsql.EQ(s.C(resourcetypeassociation.FieldPrefix), *filter.Prefix))
		}
		if filter.PropertiesTarget != nil {
			s.Where(entsql.EQ(s.C(resourcetypeassociation.FieldPropertiesTarget), *filter.PropertiesTarget))
		}
	}
}

// associatedAs returns the predicates for the conditions of a filter on an
// association.
func associatedAs(s *entsql.Selector, associations *entsql.SelectTable,
	filter metadef.NamespaceFilter) []*entsql.Predicate {
	var conditions []*entsql.Predicate
	if filter.ResourceTypes != nil {
		conditions = append(conditions,
			IsOfType(s, associations.C(resourcetypeassociation.FieldResourceTypeID), filter.ResourceTypes))
	}
	if filter.PropertiesTarget != nil {
		conditions = append(conditions,
			entsql.EQ(associations.C(resourcetypeassociation.FieldPropertiesTarget), *filter.PropertiesTarget))
	}
	return conditions
}

// mentions holds for a namespace that contains a folded string: in the name,
// title or description of the namespace, of a property or of an object, or in
// the name of a tag.
func mentions(s *entsql.Selector, folded string) *entsql.Predicate {
	build := entsql.Dialect(s.Dialect())
	those := func(table, namespaceID string, searched textindex.SearchedText) *entsql.Selector {
		t := build.Table(table)
		if table == namespace.Table {
			t.As("mentioning")
		}
		return build.Select(t.C(namespaceID)).From(t).Where(searched.Contains(t.C, folded))
	}
	return textindex.FoundIn(s.C(namespace.FieldID),
		those(namespace.Table, namespace.FieldID, textindex.TextsOfNamespaces).
			UnionAll(those(propertydefinition.Table, propertydefinition.FieldNamespaceID, textindex.TextsOfProperties)).
			UnionAll(those(objectdefinition.Table, objectdefinition.FieldNamespaceID, textindex.TextsOfObjects)).
			UnionAll(those(tag.Table, tag.FieldNamespaceID, textindex.NamesOfTags)))
}

// defines holds for a namespace with a property whose name, with or without the
// prefix of an association that matches the filter, is the key DefinesKey.
// Every such name is a suffix of the key, so an index finds the candidates.
func defines(s *entsql.Selector, filter metadef.NamespaceFilter) *entsql.Predicate {
	build := entsql.Dialect(s.Dialect())
	properties, associations := build.Table(propertydefinition.Table), build.Table(resourcetypeassociation.Table)
	prefixed := append(associatedAs(s, associations, filter),
		entsql.ColumnsEQ(associations.C(resourcetypeassociation.FieldNamespaceID),
			properties.C(propertydefinition.FieldNamespaceID)),
		entsql.P(func(b *entsql.Builder) {
			prefix, name := associations.C(resourcetypeassociation.FieldPrefix),
				properties.C(propertydefinition.FieldName)
			b.Ident(prefix).WriteString(" || ").Ident(name).WriteString(" = ").Arg(*filter.DefinesKey)
			// The prefix is not repeated on a name that already has it.
			b.WriteString(" AND substr(").Ident(name).WriteString(", 1, length(").
				Ident(prefix).WriteString(")) <> ").Ident(prefix)
		}))
	return entsql.In(s.C(namespace.FieldID), build.Select(properties.C(propertydefinition.FieldNamespaceID)).
		From(properties).
		Where(entsql.And(
			paging.IsAmong(s, properties.C(propertydefinition.FieldName), metadef.KeyEnds(*filter.DefinesKey)),
			entsql.Or(
				entsql.EQ(properties.C(propertydefinition.FieldName), *filter.DefinesKey),
				entsql.Exists(build.Select(associations.C(resourcetypeassociation.FieldID)).
					From(associations).Where(entsql.And(prefixed...))),
			))))
}
