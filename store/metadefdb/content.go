package metadefdb

import (
	"context"
	"fmt"

	"github.com/cadastre-dev/cadastre/access"
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

// Content is the contents of namespaces by row id of the namespace. Properties
// and objects are in their stored order. Associations are sorted by type,
// prefix and target, and tags by name.
type Content struct {
	associations map[int64][]*metadef.ResourceTypeAssociation
	Properties   map[int64][]*metadef.PropertyDefinition // including properties of objects
	Objects      map[int64][]*metadef.ObjectDefinition
	tags         map[int64][]*metadef.Tag
}

// contentOf reads the contents of namespaces, which the viewer must see, in
// four statements, from the database or within a transaction.
func contentOf(ctx context.Context, client *ent.Client, namespaces []int64) (Content, error) {
	var c Content
	associations, err := associations(ctx, client).
		Where(paging.Among(resourcetypeassociation.FieldNamespaceID, namespaces)).All(ctx)
	if c.associations, err = paging.ByParent(associations, err, "associations", AssociationNoun,
		func(row *ent.ResourceTypeAssociation) int64 { return row.NamespaceID }); err != nil {
		return c, err
	}
	tags, err := client.Tag.Query().Where(paging.Among(tag.FieldNamespaceID, namespaces)).
		Order(tag.ByNameKey(), tag.ByID()).All(ctx)
	if c.tags, err = paging.ByParent(tags, err, "tags", tagNoun, func(row *ent.Tag) int64 {
		return row.NamespaceID
	}); err != nil {
		return c, err
	}
	err = c.ReadDefinitions(ctx, client, namespaces, propertyNoun)
	return c, err
}

// ReadDefinitions sets Properties and Objects to the ones of the namespaces,
// regardless of visibility, in two statements. property converts a property
// row.
func (c *Content) ReadDefinitions(
	ctx context.Context, client *ent.Client, namespaces []int64,
	property func(*ent.PropertyDefinition) *metadef.PropertyDefinition,
) error {
	objects, err := client.ObjectDefinition.Query().Where(paging.Among(objectdefinition.FieldNamespaceID, namespaces)).
		Order(objectdefinition.ByNamespaceID(), objectdefinition.ByPosition(), objectdefinition.ByID()).All(ctx)
	if c.Objects, err = paging.ByParent(objects, err, "objects", objectNoun, func(row *ent.ObjectDefinition) int64 {
		return row.NamespaceID
	}); err != nil {
		return err
	}
	properties, err := client.PropertyDefinition.Query().
		Where(paging.Among(propertydefinition.FieldNamespaceID, namespaces)).
		Order(propertydefinition.ByNamespaceID(), propertydefinition.ByPosition(), propertydefinition.ByID()).All(ctx)
	c.Properties, err = paging.ByParent(properties, err, "properties", property,
		func(row *ent.PropertyDefinition) int64 { return row.NamespaceID })
	return err
}

// documents returns the documents of namespaces, in the order of rows. It reads
// their contents in four statements.
func documents(ctx context.Context, client *ent.Client, rows []*ent.Namespace) ([]*metadef.Document, error) {
	ids := lists.Map(rows, func(row *ent.Namespace) int64 { return row.ID })
	held, err := contentOf(ctx, client, ids)
	if err != nil {
		return nil, fmt.Errorf("read the content of namespaces: %w", err)
	}
	return lists.Map(rows, held.document), nil
}

// document returns the document of a namespace with its contents.
func (c Content) document(row *ent.Namespace) *metadef.Document {
	document := namespaceDocument(row)
	for _, association := range c.associations[row.ID] {
		document.Associations = append(document.Associations, documentAssociation(association))
	}
	own := c.Properties[row.ID]
	properties := lists.Group(own, func(p *metadef.PropertyDefinition) (int64, metadef.DocumentProperty) {
		return p.ObjectID, metadef.DocumentProperty{Name: p.Name, PropertySchema: p.PropertySchema}
	})
	document.Properties = properties[0]
	for _, object := range c.Objects[row.ID] {
		document.Objects = append(document.Objects, metadef.DocumentObject{
			Name: object.Name, Description: object.Description,
			Required: nilIfEmpty(object.Required), Properties: properties[object.ID],
		})
	}
	names := lists.Index(c.tags[row.ID], func(tag *metadef.Tag) (int64, string) { return tag.ID, tag.Name })
	for _, tag := range c.tags[row.ID] {
		document.Tags = append(document.Tags, metadef.DocumentTag{Name: tag.Name, Parent: names[tag.ParentID]})
	}
	return document
}

// namespaceDocument returns the document of a namespace without its contents.
func namespaceDocument(row *ent.Namespace) *metadef.Document {
	visibility, protected, owner := access.Visibility(row.Visibility), row.Protected, row.Owner
	return &metadef.Document{
		Name: row.Name, DisplayName: sqldb.TextOrNil(row.Title), Description: row.Description,
		Visibility: &visibility, Protected: &protected, Owner: &owner,
	}
}

func nilIfEmpty(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

// The audit log uses the names and values of the API.

// namespaceFields returns the audit fields of a namespace without its contents.
func namespaceFields(d *metadef.Document) sqldb.Fields {
	return sqldb.Fields{"name": d.Name, "displayName": d.DisplayName, "description": d.Description,
		"visibility": d.Visibility, "protected": d.Protected, "owner": d.Owner}
}

// documentFields returns the audit fields of a namespace with its contents.
func documentFields(d *metadef.Document) sqldb.Fields {
	out := namespaceFields(d)
	out["properties"] = propertiesFields(d.Properties)
	out["objects"] = lists.Map(d.Objects, objectFields)
	out["tags"] = lists.Map(d.Tags, func(t metadef.DocumentTag) sqldb.Fields {
		return sqldb.Fields{"name": t.Name, "parent": sqldb.TextOrNil(t.Parent)}
	})
	out["resourceTypeAssociations"] = lists.Map(d.Associations, associationFields)
	return out
}

// objectFields returns the audit fields of an object with its properties.
func objectFields(o metadef.DocumentObject) sqldb.Fields {
	return sqldb.Fields{"name": o.Name, "description": o.Description, "required": append([]string{}, o.Required...),
		"properties": propertiesFields(o.Properties)}
}

func propertiesFields(properties []metadef.DocumentProperty) []sqldb.Fields {
	return lists.Map(properties, func(p metadef.DocumentProperty) sqldb.Fields {
		return sqldb.Fields{"name": p.Name, "jsonSchema": p.Keywords}
	})
}

func propertyFields(row *ent.PropertyDefinition) sqldb.Fields {
	return sqldb.Fields{"name": row.Name, "jsonSchema": text.JSON(row.Keywords)}
}

func associationFields(a metadef.DocumentAssociation) sqldb.Fields {
	return sqldb.Fields{"resourceType": a.ResourceType, "prefix": a.Prefix, "propertiesTarget": a.PropertiesTarget}
}

// tagsFields returns the audit field with all tags of a namespace.
func tagsFields(rows []*ent.Tag) sqldb.Fields {
	names := namesOfTags(rows)
	return sqldb.Fields{"tags": lists.Map(rows, func(row *ent.Tag) sqldb.Fields { return tagFields(row, names) })}
}

func namesOfTags(rows []*ent.Tag) map[int64]string {
	return lists.Index(rows, func(row *ent.Tag) (int64, string) { return row.ID, row.Name })
}

// tagFields returns the audit fields of a tag. names has the name of its parent
// by row id.
func tagFields(row *ent.Tag, names map[int64]string) sqldb.Fields {
	out := sqldb.Fields{"name": row.Name, "parent": nil}
	if row.ParentID != nil {
		out["parent"] = names[*row.ParentID]
	}
	return out
}
