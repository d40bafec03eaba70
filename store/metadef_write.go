package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cadastre-dev/cadastre/catalog"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
)

// rowsAtOnce bounds the rows of one INSERT, whose columns are parameters each.
const rowsAtOnce = 1000

// CreateNamespace creates a namespace with everything in it, for administrators.
// A name that is taken is ErrAlreadyExists.
func (s *Store) CreateNamespace(ctx context.Context, input catalog.NamespaceInput) (*catalog.Namespace, error) {
	viewer := catalog.ViewerFrom(ctx)
	if err := catalog.MayDefine(viewer, "create a namespace"); err != nil {
		return nil, err
	}
	document, problems := input.Document("input")
	if err := problems.Err(); err != nil {
		return nil, err
	}
	row, err := s.createDocument(ctx, "createNamespace", document)
	if err != nil {
		return nil, err
	}
	return namespaceNoun(row), nil
}

// createDocument writes a document as a new namespace, in one transaction, for a
// mutation.
func (s *Store) createDocument(ctx context.Context, action string, document *catalog.Document) (row *ent.Namespace, err error) {
	err = s.transact(ctx, func(tx *ent.Tx) error {
		if row, err = s.insertDocument(ctx, tx, document); err != nil {
			return err
		}
		return s.record(ctx, tx, change{action: action, kind: "Namespace", key: document.Name, after: document})
	})
	if isDuplicate(err) {
		return nil, catalog.Refuse(catalog.ErrAlreadyExists, "a namespace %q exists already", document.Name).On("input.name").Because(err)
	}
	if err != nil {
		return nil, fmt.Errorf("create a namespace: %w", err)
	}
	return row, nil
}

// insertDocument writes a document as a new namespace.
func (s *Store) insertDocument(ctx context.Context, tx *ent.Tx, document *catalog.Document) (*ent.Namespace, error) {
	now := s.now()
	row, err := s.insertNamespace(ctx, tx, document, now)
	if err != nil {
		return nil, err
	}
	if err := s.insertAssociations(ctx, tx, row.ID, document.Associations, now); err != nil {
		return nil, err
	}
	if err := insertTags(ctx, tx, row.ID, document.Tags, now); err != nil {
		return nil, err
	}
	objects, err := insertObjects(ctx, tx, row.ID, document.Objects, now)
	if err != nil {
		return nil, err
	}
	var properties []*ent.PropertyDefinitionCreate
	for i, property := range document.Properties {
		properties = append(properties, newProperty(tx, row.ID, i, property, now))
	}
	for o, object := range document.Objects {
		for i, property := range object.Properties {
			properties = append(properties, newProperty(tx, row.ID, i, property, now).SetObjectID(objects[o].ID))
		}
	}
	for chunk := range slices.Chunk(properties, rowsAtOnce) {
		if err := tx.PropertyDefinition.CreateBulk(chunk...).Exec(ctx); err != nil {
			return nil, err
		}
	}
	return row, nil
}

func (s *Store) insertNamespace(ctx context.Context, tx *ent.Tx, document *catalog.Document, now time.Time) (*ent.Namespace, error) {
	create := tx.Namespace.Create().SetName(document.Name).SetDisplayName(document.Name).
		SetVisibility(string(catalog.Private)).SetProtected(false).SetOwner(catalog.ViewerFrom(ctx).ProjectID).
		SetNillableDescription(document.Description).SetCreatedAt(now).SetUpdatedAt(now)
	title, description := "", ""
	if document.DisplayName != nil {
		title = *document.DisplayName
		create.SetTitle(title).SetDisplayName(title)
	}
	if document.Description != nil {
		description = *document.Description
	}
	if document.Visibility != nil {
		create.SetVisibility(string(*document.Visibility))
	}
	if document.Protected != nil {
		create.SetProtected(*document.Protected)
	}
	if document.Owner != nil {
		create.SetOwner(*document.Owner)
	}
	return create.SetSearchKey(searchKey(document.Name, title, description)).Save(ctx)
}

func (s *Store) insertAssociations(ctx context.Context, tx *ent.Tx, namespaceID int64, associations []catalog.DocumentAssociation, now time.Time) error {
	if len(associations) == 0 {
		return nil
	}
	var names []string
	for _, association := range associations {
		names = append(names, association.ResourceType)
	}
	types, err := s.ensureResourceTypes(ctx, tx, names)
	if err != nil {
		return err
	}
	creates := make([]*ent.ResourceTypeAssociationCreate, len(associations))
	for i, association := range associations {
		creates[i] = tx.ResourceTypeAssociation.Create().SetNamespaceID(namespaceID).
			SetResourceTypeID(types[association.ResourceType]).
			SetPrefix(textOrEmpty(association.Prefix)).SetPropertiesTarget(textOrEmpty(association.PropertiesTarget)).
			SetCreatedAt(now).SetUpdatedAt(now)
	}
	return tx.ResourceTypeAssociation.CreateBulk(creates...).Exec(ctx)
}

// ensureResourceTypes gives the rows of resource types by name and creates those
// that are not there, in the order of their names, so that two writers never
// wait for each other.
func (s *Store) ensureResourceTypes(ctx context.Context, tx *ent.Tx, names []string) (map[string]int64, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	find := func() (map[string]int64, error) {
		rows, err := tx.ResourceType.Query().Where(among(resourcetype.FieldName, names)).All(ctx)
		if err != nil {
			return nil, err
		}
		types := make(map[string]int64, len(rows))
		for _, row := range rows {
			types[row.Name] = row.ID
		}
		return types, nil
	}
	types, err := find()
	if err != nil || len(types) == len(names) {
		return types, err
	}
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return types[name] != 0 })
	if err := s.insertResourceTypes(ctx, tx, missing, false); err != nil {
		return nil, err
	}
	return find()
}

// insertTags writes tags level by level, parents first.
func insertTags(ctx context.Context, tx *ent.Tx, namespaceID int64, tags []catalog.DocumentTag, now time.Time) error {
	rows := make(map[string]int64, len(tags))
	for len(tags) > 0 {
		var level []catalog.DocumentTag
		var creates []*ent.TagCreate
		tags = slices.DeleteFunc(slices.Clone(tags), func(tag catalog.DocumentTag) bool {
			create := tx.Tag.Create().SetNamespaceID(namespaceID).SetName(tag.Name).SetNameKey(catalog.Fold(tag.Name)).
				SetCreatedAt(now).SetUpdatedAt(now)
			if tag.Parent != "" {
				parent, there := rows[catalog.Fold(tag.Parent)]
				if !there {
					return false
				}
				create.SetParentID(parent)
			}
			level, creates = append(level, tag), append(creates, create)
			return true
		})
		if len(level) == 0 {
			return fmt.Errorf("the tags %v have no parent among them", tags)
		}
		created, err := tx.Tag.CreateBulk(creates...).Save(ctx)
		if err != nil {
			return err
		}
		for i, row := range created {
			rows[catalog.Fold(level[i].Name)] = row.ID
		}
	}
	return nil
}

func insertObjects(ctx context.Context, tx *ent.Tx, namespaceID int64, objects []catalog.DocumentObject, now time.Time) ([]*ent.ObjectDefinition, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	creates := make([]*ent.ObjectDefinitionCreate, len(objects))
	for i, object := range objects {
		creates[i] = tx.ObjectDefinition.Create().SetNamespaceID(namespaceID).SetName(object.Name).
			SetNillableDescription(object.Description).SetRequired(textListColumn(object.Required)).SetPosition(i).
			SetSearchKey(searchKey(object.Name, textOrEmpty(object.Description))).SetCreatedAt(now).SetUpdatedAt(now)
	}
	return tx.ObjectDefinition.CreateBulk(creates...).Save(ctx)
}

func newProperty(tx *ent.Tx, namespaceID int64, position int, property catalog.DocumentProperty, now time.Time) *ent.PropertyDefinitionCreate {
	return tx.PropertyDefinition.Create().SetNamespaceID(namespaceID).SetName(property.Name).SetPosition(position).
		SetKeywords(string(property.Keywords)).
		SetSearchKey(searchKey(property.Name, property.Title, textOrEmpty(property.Description))).
		SetCreatedAt(now).SetUpdatedAt(now)
}

// searchKey is what a text search looks through: the texts folded, a line each.
func searchKey(texts ...string) string { return catalog.Fold(strings.Join(texts, "\n")) }

func textOrEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func textListColumn(list []string) string {
	if list == nil {
		list = []string{}
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // texts always have JSON
	}
	return string(text)
}
