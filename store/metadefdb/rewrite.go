package metadefdb

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/objectdefinition"
	"github.com/cadastre-dev/cadastre/ent/propertydefinition"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/ent/tag"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/text"
)

// A rewrite of the contents of a namespace writes only the differences. Objects,
// properties and tags that keep their name keep their row and id. Rows that stay
// equal are not written.

// rewriteDocument makes a namespace equal a document, except for its name.
func (s *MetadefStore) rewriteDocument(ctx context.Context, tx *sqldb.Tx,
	row *ent.Namespace, document *metadef.Document) error {
	named := *document
	named.Name = row.Name
	setFields(row, &named)
	if err := writeNamespace(ctx, tx, row); err != nil {
		return err
	}
	now := s.Now()
	if err := s.rewriteAssociations(ctx, tx, row.ID, document.Associations, now); err != nil {
		return err
	}
	if err := rewriteTags(ctx, tx, row.ID, document.Tags, now); err != nil {
		return err
	}
	return rewriteDefinitions(ctx, tx, row.ID, document, now)
}

func rewriteDefinitions(ctx context.Context, tx *sqldb.Tx, namespaceID int64,
	document *metadef.Document, now time.Time) error {
	objects, err := tx.ObjectDefinition.Query().Where(objectdefinition.NamespaceID(namespaceID)).All(ctx)
	if err != nil {
		return err
	}
	properties, err := tx.PropertyDefinition.Query().Where(propertydefinition.NamespaceID(namespaceID)).All(ctx)
	if err != nil {
		return err
	}
	return writeDefinitions(ctx, tx, namespaceID, objects, properties, document, now)
}

// writeDefinitions makes the objects and properties of a namespace equal a
// document's. objects and properties are the existing rows; properties includes
// the properties of objects.
func writeDefinitions(ctx context.Context, tx *sqldb.Tx, namespaceID int64, objects []*ent.ObjectDefinition,
	properties []*ent.PropertyDefinition, document *metadef.Document, now time.Time) error {
	owned := lists.Group(properties, func(row *ent.PropertyDefinition) (int64, *ent.PropertyDefinition) {
		return sqldb.IDOf(row.ObjectID), row
	})
	there := lists.ByKey(objects, func(row *ent.ObjectDefinition) string { return row.Name })
	var added []metadef.DocumentObject
	var creates []*ent.ObjectDefinitionCreate
	for i, object := range document.Objects {
		row := there[object.Name]
		delete(there, object.Name)
		if row == nil {
			added, creates = append(added, object), append(creates, newObject(tx, namespaceID, i, object, now))
			continue
		}
		if err := writeObject(ctx, tx, row, object, i, now); err != nil {
			return err
		}
		if err := writeProperties(ctx, tx, namespaceID, &row.ID, owned[row.ID], object.Properties, now); err != nil {
			return err
		}
	}
	if len(there) > 0 {
		gone := idsOf(there, func(row *ent.ObjectDefinition) int64 { return row.ID })
		if _, err := tx.ObjectDefinition.Delete().Where(paging.Among(objectdefinition.FieldID, gone)).
			Exec(ctx); err != nil {
			return err
		}
	}
	rows, err := tx.ObjectDefinition.CreateBulk(creates...).Save(ctx)
	if err != nil {
		return err
	}
	var inside []*ent.PropertyDefinitionCreate
	for o, row := range rows {
		for i, property := range added[o].Properties {
			inside = append(inside, newProperty(tx, namespaceID, i, property, now).SetObjectID(row.ID))
		}
	}
	if err := paging.InsertAll(ctx, inside, tx.PropertyDefinition.CreateBulk); err != nil {
		return err
	}
	return writeProperties(ctx, tx, namespaceID, nil, owned[0], document.Properties, now)
}

func idsOf[Row any](rows map[string]*Row, id func(*Row) int64) []int64 {
	ids := lists.Map(slices.Collect(maps.Values(rows)), id)
	slices.Sort(ids)
	return ids
}

// writeObject updates a row to an object and its position, if they differ.
func writeObject(ctx context.Context, tx *sqldb.Tx, row *ent.ObjectDefinition, object metadef.DocumentObject,
	position int, now time.Time) error {
	required := sqldb.JSONOf(object.Required)
	same := row.Name == object.Name && row.Required == required &&
		text.OrEmpty(row.Description) == text.OrEmpty(object.Description) &&
		(row.Description == nil) == (object.Description == nil)
	if same && row.Position == position {
		return nil
	}
	if !same {
		row.UpdatedAt = now
	}
	row.Name, row.Description, row.Required, row.Position = object.Name, object.Description, required, position
	update := tx.ObjectDefinition.Update().Where(objectdefinition.ID(row.ID)).SetName(row.Name).SetRequired(required).
		SetPosition(position).SetSearchKey(text.SearchKey(row.Name, text.OrEmpty(row.Description))).
		SetUpdatedAt(row.UpdatedAt).SetNillableDescription(row.Description)
	if row.Description == nil {
		update.ClearDescription()
	}
	return update.Exec(ctx)
}

// writeProperties makes the properties of an object equal a list, or if object
// is nil, the properties of the namespace itself. rows are the existing ones.
func writeProperties(ctx context.Context, tx *sqldb.Tx, namespaceID int64, object *int64,
	rows []*ent.PropertyDefinition, properties []metadef.DocumentProperty, now time.Time) error {
	there := lists.ByKey(rows, func(row *ent.PropertyDefinition) string { return row.Name })
	var creates []*ent.PropertyDefinitionCreate
	for i, property := range properties {
		row := there[property.Name]
		delete(there, property.Name)
		if row == nil {
			creates = append(creates, newProperty(tx, namespaceID, i, property, now).SetNillableObjectID(object))
			continue
		}
		same := row.Keywords == string(property.Keywords)
		if same && row.Position == i {
			continue
		}
		if !same {
			row.UpdatedAt = now
		}
		err := tx.PropertyDefinition.Update().Where(propertydefinition.ID(row.ID)).
			SetKeywords(string(property.Keywords)).SetPosition(i).
			SetSearchKey(text.SearchKey(property.Name, property.Title, text.OrEmpty(property.Description))).
			SetUpdatedAt(row.UpdatedAt).Exec(ctx)
		if err != nil {
			return err
		}
	}
	if len(there) > 0 {
		gone := idsOf(there, func(row *ent.PropertyDefinition) int64 { return row.ID })
		if _, err := tx.PropertyDefinition.Delete().Where(paging.Among(propertydefinition.FieldID, gone)).
			Exec(ctx); err != nil {
			return err
		}
	}
	return paging.InsertAll(ctx, creates, tx.PropertyDefinition.CreateBulk)
}

// rewriteTags makes the tags of a namespace equal a list.
func rewriteTags(ctx context.Context, tx *sqldb.Tx, namespaceID int64,
	tags []metadef.DocumentTag, now time.Time) error {
	rows, err := tx.Tag.Query().Where(tag.NamespaceID(namespaceID)).All(ctx)
	if err != nil {
		return err
	}
	there := lists.ByKey(rows, func(row *ent.Tag) string { return row.NameKey })
	ids := map[string]int64{}
	var added []metadef.DocumentTag
	for _, wanted := range tags {
		key := text.Fold(wanted.Name)
		row := there[key]
		delete(there, key)
		if row == nil {
			added = append(added, wanted)
			continue
		}
		ids[key] = row.ID
	}
	if len(there) > 0 {
		gone := idsOf(there, func(row *ent.Tag) int64 { return row.ID })
		if _, err := tx.Tag.Delete().Where(paging.Among(tag.FieldID, gone)).Exec(ctx); err != nil {
			return err
		}
	}
	kept := lists.ByKey(rows, func(row *ent.Tag) string { return row.NameKey })
	if err := insertTags(ctx, tx, namespaceID, added, ids, now); err != nil {
		return err
	}
	for _, wanted := range tags {
		row := kept[text.Fold(wanted.Name)]
		if row == nil {
			continue
		}
		if err := writeTag(ctx, tx, row, wanted.Name, ids[text.Fold(wanted.Parent)], now); err != nil {
			return err
		}
	}
	return nil
}

// writeTag sets the name and the parent of a tag, if they differ. 0 means no
// parent.
func writeTag(ctx context.Context, tx *sqldb.Tx, row *ent.Tag, name string, parent int64, now time.Time) error {
	if row.Name == name && sqldb.IDOf(row.ParentID) == parent {
		return nil
	}
	row.Name, row.NameKey, row.UpdatedAt, row.ParentID = name, text.Fold(name), now, nil
	update := tx.Tag.Update().Where(tag.ID(row.ID)).SetName(name).SetNameKey(row.NameKey).SetUpdatedAt(now)
	if parent == 0 {
		update.ClearParentID()
	} else {
		row.ParentID = &parent
		update.SetParentID(parent)
	}
	return update.Exec(ctx)
}

// rewriteAssociations makes the associations of a namespace equal a list.
func (s *MetadefStore) rewriteAssociations(ctx context.Context, tx *sqldb.Tx, namespaceID int64,
	wanted []metadef.DocumentAssociation, now time.Time) error {
	rows, err := associations(ctx, tx.Client()).Where(resourcetypeassociation.NamespaceID(namespaceID)).All(ctx)
	if err != nil {
		return err
	}
	key := func(a metadef.DocumentAssociation) string {
		return a.ResourceType + "\x00" + text.OrEmpty(a.Prefix) + "\x00" + text.OrEmpty(a.PropertiesTarget)
	}
	there := lists.ByKey(rows, func(row *ent.ResourceTypeAssociation) string {
		return key(documentAssociation(AssociationNoun(row)))
	})
	var added []metadef.DocumentAssociation
	for _, association := range wanted {
		if there[key(association)] == nil {
			added = append(added, association)
		}
		delete(there, key(association))
	}
	if len(there) > 0 {
		gone := idsOf(there, func(row *ent.ResourceTypeAssociation) int64 { return row.ID })
		if _, err := tx.ResourceTypeAssociation.Delete().
			Where(paging.Among(resourcetypeassociation.FieldID, gone)).Exec(ctx); err != nil {
			return err
		}
	}
	return s.insertAssociations(ctx, tx, namespaceID, added, now)
}
