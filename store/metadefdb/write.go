package metadefdb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cadastre-dev/cadastre/access"
	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/resourcetype"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/store/sqldb/paging"
	"github.com/cadastre-dev/cadastre/text"
)

// CreateNamespace creates a namespace with its contents. It returns
// ErrAlreadyExists if the name is taken, even by an invisible namespace.
func (s *MetadefStore) CreateNamespace(ctx context.Context, input metadef.NamespaceInput) (*metadef.Namespace, error) {
	if err := s.mayCreate(ctx, input.Owner.Value); err != nil {
		return nil, err
	}
	if err := s.checkInputQuota(input); err != nil {
		return nil, err
	}
	document, problems := input.Document("input")
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return s.create(ctx, document)
}

// CreateNamespaceOf is CreateNamespace for a valid document. Without a visibility
// the namespace is private.
func (s *MetadefStore) CreateNamespaceOf(ctx context.Context, document *metadef.Document) (*metadef.Namespace, error) {
	if err := s.mayCreate(ctx, document.Owner); err != nil {
		return nil, err
	}
	return s.create(ctx, document)
}

// mayCreate refuses a viewer who may not create a namespace for an owner; nil
// is the viewer's project.
func (s *MetadefStore) mayCreate(ctx context.Context, owner *string) error {
	return cmp.Or(s.checkOwn(ctx, "createNamespace", metadef.NamespaceStanding.CheckManage), mayGive(ctx, owner))
}

// mayGive refuses a viewer who may not make a project the owner of a namespace; nil
// is the viewer's project.
func mayGive(ctx context.Context, owner *string) error {
	if owner == nil {
		return nil
	}
	return metadef.MayGiveNamespace(access.ViewerFrom(ctx), *owner)
}

// create creates the namespace of a document within the quota.
func (s *MetadefStore) create(ctx context.Context, document *metadef.Document) (*metadef.Namespace, error) {
	if err := s.checkQuota(document, "input"); err != nil {
		return nil, err
	}
	var created *metadef.Namespace
	err := s.Write(ctx, "createNamespace", func(tx *sqldb.Tx) error {
		row, err := s.createDocument(ctx, tx, document)
		if err == nil {
			created = namespaceNoun(row)
		}
		return err
	}, &created)
	if sqldb.IsDuplicate(err) {
		return nil, refuseTaken(document.Name, "input.name").Because(err)
	}
	if err != nil {
		return nil, fmt.Errorf("create a namespace: %w", err)
	}
	return created, nil
}

// createDocument writes a document as a new namespace for a mutation, and
// records it. It refuses if the owner has the maximum number of namespaces.
func (s *MetadefStore) createDocument(ctx context.Context, tx *sqldb.Tx,
	document *metadef.Document) (*ent.Namespace, error) {
	owned := *document
	owned.Owner = ownerOf(ctx, document)
	if err := s.checkNamespaceQuota(ctx, tx, *owned.Owner); err != nil {
		return nil, err
	}
	row, err := s.InsertDocument(ctx, tx, &owned)
	if err != nil {
		return nil, err
	}
	tx.Record(ctx, sqldb.Event{Kind: "Namespace", Key: owned.Name, After: documentFields(&owned)})
	return row, nil
}

// ownerOf returns the owner of a document. The default is the viewer's project.
func ownerOf(ctx context.Context, document *metadef.Document) *string {
	return cmp.Or(document.Owner, new(access.ViewerFrom(ctx).ProjectID))
}

// InsertDocument writes a document as a new namespace. It checks no quota and
// records no audit event.
func (s *MetadefStore) InsertDocument(ctx context.Context, tx *sqldb.Tx,
	document *metadef.Document) (*ent.Namespace, error) {
	now := s.Now()
	row, err := insertNamespace(ctx, tx, document, now)
	if err != nil {
		return nil, err
	}
	tx.Created("Namespace", document.Name)
	seesNamespace(tx, row)
	if err := s.insertAssociations(ctx, tx, row.ID, document.Associations, now); err != nil {
		return nil, err
	}
	if err := insertTags(ctx, tx, row.ID, document.Tags, map[string]int64{}, now); err != nil {
		return nil, err
	}
	return row, writeDefinitions(ctx, tx, row.ID, nil, nil, document, now)
}

func insertNamespace(ctx context.Context, tx *sqldb.Tx, document *metadef.Document,
	now time.Time) (*ent.Namespace, error) {
	return tx.Namespace.Create().SetName(document.Name).SetNillableTitle(document.DisplayName).
		SetDisplayName(*cmp.Or(document.DisplayName, &document.Name)).
		SetVisibility(string(*cmp.Or(document.Visibility, new(access.Private)))).
		SetProtected(*cmp.Or(document.Protected, new(false))).SetOwner(*ownerOf(ctx, document)).
		SetNillableDescription(document.Description).SetCreatedAt(now).SetUpdatedAt(now).
		SetSearchKey(text.SearchKey(document.Name, text.OrEmpty(document.DisplayName),
			text.OrEmpty(document.Description))).Save(ctx)
}

func (s *MetadefStore) insertAssociations(ctx context.Context, tx *sqldb.Tx, namespaceID int64,
	associations []metadef.DocumentAssociation, now time.Time) error {
	if len(associations) == 0 {
		return nil
	}
	names := lists.Map(associations, func(association metadef.DocumentAssociation) string {
		return association.ResourceType
	})
	if err := tx.Affects(ctx, "ResourceType", lists.Distinct(names)...); err != nil {
		return err
	}
	types, err := s.EnsureResourceTypes(ctx, tx, names)
	if err != nil {
		return err
	}
	creates := lists.Map(associations,
		func(association metadef.DocumentAssociation) *ent.ResourceTypeAssociationCreate {
			return tx.ResourceTypeAssociation.Create().SetNamespaceID(namespaceID).
				SetResourceTypeID(types[association.ResourceType]).
				SetPrefix(text.OrEmpty(association.Prefix)).
				SetPropertiesTarget(text.OrEmpty(association.PropertiesTarget)).
				SetCreatedAt(now).SetUpdatedAt(now)
		})
	return tx.ResourceTypeAssociation.CreateBulk(creates...).Exec(ctx)
}

// EnsureResourceTypes returns the row ids of resource types by name, regardless
// of visibility. It creates missing ones in the order of their names, so that
// two writers never deadlock.
func (s *MetadefStore) EnsureResourceTypes(ctx context.Context, tx *sqldb.Tx,
	names []string) (map[string]int64, error) {
	names = lists.Distinct(names)
	find := func() (map[string]int64, error) {
		rows, err := tx.ResourceType.Query().Where(paging.Among(resourcetype.FieldName, names)).All(ctx)
		if err != nil {
			return nil, err
		}
		return lists.Index(rows, func(row *ent.ResourceType) (string, int64) { return row.Name, row.ID }), nil
	}
	types, err := find()
	if err != nil || len(types) == len(names) {
		return types, err
	}
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return types[name] != 0 })
	if err := s.InsertResourceTypes(ctx, tx, missing, impliedType); err != nil {
		return nil, err
	}
	return find()
}

// insertTags writes tags level by level, parents first. rows has the ids of
// existing tags by folded name. insertTags adds the ids of new tags.
func insertTags(ctx context.Context, tx *sqldb.Tx, namespaceID int64, tags []metadef.DocumentTag,
	rows map[string]int64, now time.Time) error {
	for len(tags) > 0 {
		var level []metadef.DocumentTag
		var creates []*ent.TagCreate
		tags = slices.DeleteFunc(slices.Clone(tags), func(tag metadef.DocumentTag) bool {
			create := tx.Tag.Create().SetNamespaceID(namespaceID).SetName(tag.Name).SetNameKey(text.Fold(tag.Name)).
				SetCreatedAt(now).SetUpdatedAt(now)
			if tag.Parent != "" {
				parent, there := rows[text.Fold(tag.Parent)]
				if !there {
					return false
				}
				create.SetParentID(parent)
			}
			level, creates = append(level, tag), append(creates, create)
			return true
		})
		if len(level) == 0 {
			return fmt.Errorf("the parents of the tags %v are missing or form a cycle", tags)
		}
		created, err := tx.Tag.CreateBulk(creates...).Save(ctx)
		if err != nil {
			return err
		}
		for i, row := range created {
			rows[text.Fold(level[i].Name)] = row.ID
		}
	}
	return nil
}

func newObject(tx *sqldb.Tx, namespaceID int64, position int, object metadef.DocumentObject,
	now time.Time) *ent.ObjectDefinitionCreate {
	return tx.ObjectDefinition.Create().SetNamespaceID(namespaceID).SetName(object.Name).
		SetNillableDescription(object.Description).SetRequired(sqldb.JSONOf(object.Required)).SetPosition(position).
		SetSearchKey(text.SearchKey(object.Name, text.OrEmpty(object.Description))).SetCreatedAt(now).SetUpdatedAt(now)
}

func newProperty(tx *sqldb.Tx, namespaceID int64, position int, property metadef.DocumentProperty,
	now time.Time) *ent.PropertyDefinitionCreate {
	return tx.PropertyDefinition.Create().SetNamespaceID(namespaceID).SetName(property.Name).SetPosition(position).
		SetKeywords(string(property.Keywords)).
		SetSearchKey(text.SearchKey(property.Name, property.Title, text.OrEmpty(property.Description))).
		SetCreatedAt(now).SetUpdatedAt(now)
}
