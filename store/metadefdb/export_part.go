package metadefdb

import (
	"context"
	"fmt"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
	"github.com/cadastre-dev/cadastre/ent/objectdefinition"
	"github.com/cadastre-dev/cadastre/ent/propertydefinition"
	"github.com/cadastre-dev/cadastre/ent/resourcetypeassociation"
	"github.com/cadastre-dev/cadastre/ent/tag"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/visible"
	"github.com/cadastre-dev/cadastre/text"
)

// exportPart is which part of a namespace is exported: some of the rows of a
// section, from an offset on, at a revision.
type exportPart struct {
	revision, offset int
	section          exportSection
}

// exportSection is what parts are made of, one section after the other.
type exportSection int

const (
	sectionHead       exportSection = iota // the namespace itself, associations and tags
	sectionProperties                      // its properties
	sectionObjects                         // its objects, without properties
	sectionMembers                         // the properties of its objects
)

const (
	exportParts = "parts of a namespace"
	// definitionsOfPart is how many definitions a part has at most: 4 MiB, where
	// each is as long as may be.
	definitionsOfPart = 60
)

// cursor returns where a part begins.
func (p exportPart) cursor(namespace string) *string {
	return new(page.Position{List: exportParts, Key: fmt.Sprintf("%d %d %d", p.revision, p.section, p.offset), ID: namespace}.Cursor())
}

// parseExportPart reads where a part of a namespace begins; false is not of this
// namespace.
func parseExportPart(cursor, namespace string) (exportPart, bool) {
	position, ok := page.ParsePosition(cursor, exportParts)
	var p exportPart
	if !ok || position.ID != namespace {
		return p, false
	}
	_, err := fmt.Sscanf(position.Key, "%d %d %d", &p.revision, &p.section, &p.offset)
	return p, err == nil && p.offset >= 0 && p.section >= sectionHead && p.section <= sectionMembers
}

// ExportNamespacePart returns a part of a namespace that the viewer may see: the
// first one, or that which begins at a cursor of the part before.
func (s *MetadefStore) ExportNamespacePart(ctx context.Context, name string, portable bool, after *string) (*metadef.NamespacePart, error) {
	var part exportPart
	var problems problem.Problems
	text.CheckName(&problems, "name", name)
	if after != nil {
		var ok bool
		if part, ok = parseExportPart(*after, name); !ok {
			problems.Add("after", "is not a cursor of a part of this namespace")
		}
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	row, err := s.Ent.Namespace.Query().Where(visible.Namespaces(ctx), namespace.Name(name)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, refuseUnknownNamespace(name).On("name")
	}
	if err != nil {
		return nil, fmt.Errorf("look up a namespace to export: %w", err)
	}
	if after != nil && part.revision != row.Revision {
		return nil, problem.Refuse(problem.ErrConcurrentUpdate, "namespace %q has revision %d, the part before was of %d; begin again", name, row.Revision, part.revision).On("after")
	}
	part.revision = row.Revision
	written, rows, err := s.partText(ctx, row, part, portable)
	if err != nil {
		return nil, fmt.Errorf("export a part of a namespace: %w", err)
	}
	found := &metadef.NamespacePart{Text: written}
	switch {
	case rows > definitionsOfPart:
		part.offset += definitionsOfPart
	case part.section < sectionMembers:
		part.section, part.offset = part.section+1, 0
	default:
		return found, nil
	}
	found.Next = part.cursor(name)
	return found, nil
}

// partText returns a part, and how many definitions there are from where it
// begins: one more than it has stands for any more.
func (s *MetadefStore) partText(ctx context.Context, row *ent.Namespace, part exportPart, portable bool) (text string, rows int, err error) {
	switch part.section {
	case sectionProperties:
		return s.propertiesPart(ctx, row, part.offset)
	case sectionObjects:
		return s.objectsPart(ctx, row, part.offset)
	case sectionMembers:
		return s.membersPart(ctx, row, part.offset)
	}
	var held Content
	associations, err := associations(ctx, s.Ent).Where(resourcetypeassociation.NamespaceID(row.ID)).All(ctx)
	if err != nil {
		return "", 0, err
	}
	tags, err := s.Ent.Tag.Query().Where(tag.NamespaceID(row.ID)).Order(tag.ByNameKey(), tag.ByID()).All(ctx)
	if err != nil {
		return "", 0, err
	}
	held.associations = map[int64][]*metadef.ResourceTypeAssociation{row.ID: lists.Map(associations, AssociationNoun)}
	held.tags = map[int64][]*metadef.Tag{row.ID: lists.Map(tags, tagNoun)}
	document := held.document(row)
	if portable {
		document = document.Portable()
	}
	return document.Line(), 0, nil
}

func (s *MetadefStore) propertiesPart(ctx context.Context, row *ent.Namespace, offset int) (string, int, error) {
	rows, err := s.Ent.PropertyDefinition.Query().Where(propertydefinition.NamespaceID(row.ID), propertydefinition.ObjectIDIsNil()).
		Order(propertydefinition.ByPosition(), propertydefinition.ByID()).Offset(offset).Limit(definitionsOfPart + 1).All(ctx)
	if err != nil {
		return "", 0, err
	}
	shown := rows[:min(len(rows), definitionsOfPart)]
	document := metadef.Document{Name: row.Name, Properties: lists.Map(shown, documentProperty)}
	return document.Line(), len(rows), nil
}

func documentProperty(row *ent.PropertyDefinition) metadef.DocumentProperty {
	property := propertyNoun(row)
	return metadef.DocumentProperty{Name: property.Name, PropertySchema: property.PropertySchema}
}

func (s *MetadefStore) objectsPart(ctx context.Context, row *ent.Namespace, offset int) (string, int, error) {
	rows, err := s.Ent.ObjectDefinition.Query().Where(objectdefinition.NamespaceID(row.ID)).
		Order(objectdefinition.ByPosition(), objectdefinition.ByID()).Offset(offset).Limit(definitionsOfPart + 1).All(ctx)
	if err != nil {
		return "", 0, err
	}
	document := metadef.Document{Name: row.Name}
	for _, object := range rows[:min(len(rows), definitionsOfPart)] {
		noun := objectNoun(object)
		document.Objects = append(document.Objects, metadef.DocumentObject{Name: noun.Name, Description: noun.Description, Required: nilIfEmpty(noun.Required)})
	}
	return document.Line(), len(rows), nil
}

func (s *MetadefStore) membersPart(ctx context.Context, row *ent.Namespace, offset int) (string, int, error) {
	rows, err := s.Ent.PropertyDefinition.Query().Where(propertydefinition.NamespaceID(row.ID), propertydefinition.ObjectIDNotNil()).
		Order(propertydefinition.ByObjectField(objectdefinition.FieldPosition), propertydefinition.ByObjectID(), propertydefinition.ByPosition(), propertydefinition.ByID()).
		WithObject().Offset(offset).Limit(definitionsOfPart + 1).All(ctx)
	if err != nil {
		return "", 0, err
	}
	var objects []metadef.DocumentObject
	for _, property := range rows[:min(len(rows), definitionsOfPart)] {
		name := property.Edges.Object.Name
		if last := len(objects) - 1; last < 0 || objects[last].Name != name {
			objects = append(objects, metadef.DocumentObject{Name: name})
		}
		of := &objects[len(objects)-1]
		of.Properties = append(of.Properties, documentProperty(property))
	}
	return metadef.ContinuedText(row.Name, objects), len(rows), nil
}
