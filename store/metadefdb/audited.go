package metadefdb

import (
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/text"
)

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
	out["resourceTypeAssociations"] = lists.Map(d.Associations, func(a metadef.DocumentAssociation) sqldb.Fields {
		return sqldb.Fields{"resourceType": a.ResourceType, "prefix": a.Prefix, "propertiesTarget": a.PropertiesTarget}
	})
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

func associationFields(a *metadef.ResourceTypeAssociation) sqldb.Fields {
	return sqldb.Fields{"resourceType": a.ResourceTypeName, "prefix": a.Prefix, "propertiesTarget": a.PropertiesTarget}
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
