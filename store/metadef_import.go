package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/cadastre-dev/cadastre/catalog"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/namespace"
)

// ImportNamespaces imports definition files, for administrators: each is stored
// as a whole or not at all, in a transaction of its own, and one that fails
// never stops the others. An existing namespace stays as it is.
func (s *Store) ImportNamespaces(ctx context.Context, documents []string) ([]*catalog.ImportReport, error) {
	if err := catalog.MayDefine(catalog.ViewerFrom(ctx), "import namespaces"); err != nil {
		return nil, err
	}
	reports := make([]*catalog.ImportReport, len(documents))
	for i, text := range documents {
		report, err := s.importNamespace(ctx, text)
		if err != nil {
			return nil, fmt.Errorf("import document %d: %w", i, err)
		}
		reports[i] = report
	}
	return reports, nil
}

func (s *Store) importNamespace(ctx context.Context, text string) (*catalog.ImportReport, error) {
	document, warnings, problems := catalog.ParseDocument(text)
	report := &catalog.ImportReport{Warnings: problemTexts(warnings), Errors: problemTexts(problems)}
	if document != nil {
		report.Namespace = document.Name
	}
	if len(problems) > 0 {
		report.Outcome = catalog.ImportFailed
		return report, nil
	}
	_, err := s.createDocument(ctx, "importNamespaces", document)
	switch {
	case err == nil:
		report.Outcome = catalog.ImportCreated
		return report, nil
	case !errors.Is(err, catalog.ErrAlreadyExists):
		return report, err
	}
	existing, err := s.documentNamed(ctx, document.Name)
	if err != nil {
		return report, err
	}
	report.Outcome = catalog.ImportSkipped
	if existing.Holds(document) {
		report.Outcome = catalog.ImportUnchanged
	}
	return report, nil
}

func problemTexts(problems catalog.Problems) []string {
	texts := make([]string, len(problems))
	for i, problem := range problems {
		texts[i] = problem.Field + ": " + problem.Message
	}
	return texts
}

// documentNamed reads a namespace with everything in it as a document.
func (s *Store) documentNamed(ctx context.Context, name string) (*catalog.Document, error) {
	row, err := s.ent.Namespace.Query().Where(visibleNamespaces(ctx), namespace.Name(name)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, catalog.Refuse(catalog.ErrNotFound, "there is no namespace %q", name)
	}
	if err != nil {
		return nil, fmt.Errorf("look up a namespace: %w", err)
	}
	documents, err := s.documents(ctx, []*ent.Namespace{row})
	if err != nil {
		return nil, err
	}
	return documents[0], nil
}

// documents reads namespaces with everything in them, in a fixed number of
// statements.
func (s *Store) documents(ctx context.Context, rows []*ent.Namespace) ([]*catalog.Document, error) {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	associations, err := s.AssociationsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	properties, err := s.PropertiesOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	objects, err := s.ObjectsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	var objectIDs []int64
	for _, id := range ids {
		for _, object := range objects[id] {
			objectIDs = append(objectIDs, object.ID)
		}
	}
	inObjects, err := s.PropertiesOfObjects(ctx, objectIDs)
	if err != nil {
		return nil, err
	}
	tags, err := s.TagsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	documents := make([]*catalog.Document, len(rows))
	for i, row := range rows {
		visibility := catalog.Visibility(row.Visibility)
		document := &catalog.Document{
			Name: row.Name, DisplayName: textOrNil(row.Title), Description: row.Description,
			Visibility: &visibility, Protected: &row.Protected, Owner: &row.Owner,
			Properties: documentProperties(properties[row.ID]), Tags: documentTags(tags[row.ID]),
		}
		for _, association := range associations[row.ID] {
			document.Associations = append(document.Associations, catalog.DocumentAssociation{
				ResourceType: association.ResourceTypeName, Prefix: association.Prefix, PropertiesTarget: association.PropertiesTarget,
			})
		}
		for _, object := range objects[row.ID] {
			document.Objects = append(document.Objects, catalog.DocumentObject{
				Name: object.Name, Description: object.Description, Required: object.Required,
				Properties: documentProperties(inObjects[object.ID]),
			})
		}
		documents[i] = document
	}
	return documents, nil
}

func documentProperties(properties []*catalog.PropertyDefinition) []catalog.DocumentProperty {
	var out []catalog.DocumentProperty
	for _, property := range properties {
		out = append(out, catalog.DocumentProperty{Name: property.Name, PropertySchema: property.PropertySchema})
	}
	return out
}

func documentTags(tags []*catalog.Tag) []catalog.DocumentTag {
	names := make(map[int64]string, len(tags))
	for _, tag := range tags {
		names[tag.ID] = tag.Name
	}
	var out []catalog.DocumentTag
	for _, tag := range tags {
		out = append(out, catalog.DocumentTag{Name: tag.Name, Parent: names[tag.ParentID]})
	}
	return out
}
