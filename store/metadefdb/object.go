package metadefdb

import (
	"cmp"
	"context"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/objectdefinition"
	"github.com/cadastre-dev/cadastre/ent/propertydefinition"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/text"
)

// CreateObject adds an object with its properties at the end of a namespace.
func (s *MetadefStore) CreateObject(ctx context.Context,
	input metadef.NewObject) (object *metadef.ObjectDefinition, in *metadef.Namespace, err error) {
	e := edit{mutation: "createObject", namespace: input.Namespace, revision: input.Revision}
	in, err = s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		defined, problems := input.Object("input")
		if err := problems.Err(); err != nil {
			return nil, err
		}
		if err := checkObjectFree(ctx, tx, row, defined.Name, "input.name"); err != nil {
			return nil, err
		}
		there, err := tx.ObjectDefinition.Query().Where(objectdefinition.NamespaceID(row.ID)).Count(ctx)
		if err != nil {
			return nil, err
		}
		if err := s.checkCount("objects", there+1); err != nil {
			return nil, err
		}
		if err := cmp.Or(s.checkObjectQuota(ctx, tx, row.ID, defined, 0), e.admit(row)); err != nil {
			return nil, err
		}
		last, err := tx.ObjectDefinition.Query().Where(objectdefinition.NamespaceID(row.ID)).
			Order(ent.Desc(objectdefinition.FieldPosition)).Limit(1).Select(objectdefinition.FieldPosition).Ints(ctx)
		if err != nil {
			return nil, err
		}
		position := 0
		if len(last) > 0 {
			position = last[0] + 1
		}
		created, err := newObject(tx, row.ID, position, defined, s.Now()).Save(ctx)
		if err != nil {
			return nil, err
		}
		object = objectNoun(created)
		err = writeProperties(ctx, tx, row.ID, &created.ID, nil, defined.Properties, s.Now())
		return &sqldb.Event{Kind: "ObjectDefinition",
			Key: row.Name + "/" + defined.Name, After: objectFields(defined)}, err
	}, &object)
	return object, in, err
}

// checkObjectQuota refuses an object if its description or a property is too
// large, or if the namespace would have too many properties. instead is the
// number of stored properties that the object's properties replace.
func (s *MetadefStore) checkObjectQuota(ctx context.Context, tx *sqldb.Tx, namespaceID int64,
	object metadef.DocumentObject, instead int) error {
	if err := s.checkSize("input.description", text.JSON(text.OrEmpty(object.Description))); err != nil {
		return err
	}
	for _, property := range object.Properties {
		if err := s.checkSize("input.properties", property.Keywords); err != nil {
			return err
		}
	}
	there, err := tx.PropertyDefinition.Query().Where(propertydefinition.NamespaceID(namespaceID)).Count(ctx)
	if err != nil {
		return err
	}
	return s.checkCount("properties", there-instead+len(object.Properties))
}

func checkObjectFree(ctx context.Context, tx *sqldb.Tx, row *ent.Namespace, name, field string) error {
	taken, err := tx.ObjectDefinition.Query().Where(objectdefinition.NamespaceID(row.ID), objectdefinition.Name(name)).
		Exist(ctx)
	if err == nil && taken {
		return problem.Refuse(problem.ErrAlreadyExists, "object %q already exists in namespace %q", name, row.Name).
			On(field)
	}
	return err
}

// UpdateObject changes an object. Given properties replace all of its
// properties. A property that keeps its name keeps its identity. In a protected
// namespace, UpdateObject refuses to delete properties.
func (s *MetadefStore) UpdateObject(ctx context.Context,
	input metadef.ObjectChange) (object *metadef.ObjectDefinition, in *metadef.Namespace, err error) {
	e := edit{mutation: "updateObject", namespace: input.Namespace, revision: input.Revision}
	in, err = s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		current, err := findObject(ctx, tx, row, input.Name, "input.name")
		if err != nil {
			return nil, err
		}
		rows, err := container{namespace: row, object: current}.properties(tx).
			Order(propertydefinition.ByPosition(), propertydefinition.ByID()).All(ctx)
		if err != nil {
			return nil, err
		}
		before := objectDocument(current, rows)
		after, problems := input.Apply(before, "input")
		description := text.JSON(text.OrEmpty(input.Description.Value))
		if err := cmp.Or(problems.Err(), s.checkSize("input.description", description)); err != nil {
			return nil, err
		}
		if after.Name != before.Name {
			if err := checkObjectFree(ctx, tx, row, after.Name, "input.newName"); err != nil {
				return nil, err
			}
		}
		if input.Properties.Set {
			if err := s.checkObjectQuota(ctx, tx, row.ID, after, len(rows)); err != nil {
				return nil, err
			}
		}
		if row.Protected && before.LosesProperties(after) {
			return nil, refuseProtected(row.Name)
		}
		if err := e.admit(row); err != nil {
			return nil, err
		}
		if err := writeProperties(ctx, tx, row.ID, &current.ID, rows, after.Properties, s.Now()); err != nil {
			return nil, err
		}
		err = writeObject(ctx, tx, current, after, current.Position, s.Now())
		object = objectNoun(current)
		return &sqldb.Event{Kind: "ObjectDefinition", Key: row.Name + "/" + before.Name,
			Before: objectFields(before), After: objectFields(after)}, err
	}, &object)
	return object, in, err
}

// DeleteObject deletes an object with its properties.
func (s *MetadefStore) DeleteObject(ctx context.Context, namespace, name string,
	revision *int) (object *metadef.ObjectDefinition, in *metadef.Namespace, err error) {
	e := edit{mutation: "deleteObject", namespace: namespace, revision: revision, deletes: true}
	in, err = s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		current, err := findObject(ctx, tx, row, name, "input.name")
		if err := cmp.Or(err, e.admit(row)); err != nil {
			return nil, err
		}
		rows, err := container{namespace: row, object: current}.properties(tx).
			Order(propertydefinition.ByPosition(), propertydefinition.ByID()).All(ctx)
		if err != nil {
			return nil, err
		}
		object = objectNoun(current)
		_, err = tx.ObjectDefinition.Delete().Where(objectdefinition.ID(current.ID)).Exec(ctx)
		return &sqldb.Event{Kind: "ObjectDefinition", Key: row.Name + "/" + name,
			Before: objectFields(objectDocument(current, rows))}, err
	}, &object)
	return object, in, err
}

// objectDocument returns a stored object and its properties as a document has
// them.
func objectDocument(row *ent.ObjectDefinition, properties []*ent.PropertyDefinition) metadef.DocumentObject {
	object := metadef.DocumentObject{Name: row.Name, Description: row.Description,
		Required: nilIfEmpty(sqldb.TextList(row.Required))}
	for _, property := range properties {
		object.Properties = append(object.Properties, metadef.DocumentProperty{
			Name: property.Name, PropertySchema: metadef.ReadPropertySchema(text.JSON(property.Keywords)),
		})
	}
	return object
}
