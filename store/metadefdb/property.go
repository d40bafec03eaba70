package metadefdb

import (
	"cmp"
	"context"
	"slices"

	"github.com/cadastre-dev/cadastre/ent"
	"github.com/cadastre-dev/cadastre/ent/objectdefinition"
	"github.com/cadastre-dev/cadastre/ent/propertydefinition"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/store/sqldb"
	"github.com/cadastre-dev/cadastre/text"
)

// CreateProperty adds a property at the end of a namespace, or of an object in
// it, and returns it with the changed namespace.
func (s *MetadefStore) CreateProperty(ctx context.Context,
	input metadef.NewProperty) (property *metadef.PropertyDefinition, in *metadef.Namespace, err error) {
	e := edit{mutation: "createProperty", namespace: input.Namespace, revision: input.Revision}
	in, err = s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		within, err := findContainer(ctx, tx, row, input.Object)
		if err != nil {
			return nil, err
		}
		schema, problems := input.Schema("input")
		if err := cmp.Or(problems.Err(), s.checkSize("input", schema.Keywords)); err != nil {
			return nil, err
		}
		if err := within.checkFree(ctx, tx, input.Name, "input.name"); err != nil {
			return nil, err
		}
		count, err := tx.PropertyDefinition.Query().Where(propertydefinition.NamespaceID(row.ID)).Count(ctx)
		if err != nil {
			return nil, err
		}
		if err := cmp.Or(s.checkCount("properties", count+1), e.admit(row)); err != nil {
			return nil, err
		}
		position, err := within.end(ctx, tx)
		if err != nil {
			return nil, err
		}
		create := newProperty(tx, row.ID, position, metadef.DocumentProperty{Name: input.Name, PropertySchema: schema},
			s.Now())
		if within.object != nil {
			create.SetObjectID(within.object.ID)
		}
		created, err := create.Save(ctx)
		if err != nil {
			return nil, err
		}
		property = within.noun(created)
		return &sqldb.Event{Kind: "PropertyDefinition", Key: within.key(input.Name),
			After: propertyFields(created)}, nil
	}, &property)
	return property, in, err
}

// UpdateProperty changes a property. If it is renamed, the required list of its
// object changes, too.
func (s *MetadefStore) UpdateProperty(ctx context.Context,
	input metadef.PropertyChange) (property *metadef.PropertyDefinition, in *metadef.Namespace, err error) {
	e := edit{mutation: "updateProperty", namespace: input.Namespace, revision: input.Revision}
	in, err = s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		within, current, err := findProperty(ctx, tx, row, input.Object, input.Name)
		if err != nil {
			return nil, err
		}
		schema, problems := input.Apply(metadef.ReadPropertySchema(text.JSON(current.Keywords)), "input")
		name := metadef.RenamedAs(&problems, "input.newName", current.Name, input.NewName)
		if err := cmp.Or(problems.Err(), s.checkSize("input", schema.Keywords)); err != nil {
			return nil, err
		}
		if name != current.Name {
			if err := within.checkFree(ctx, tx, name, "input.newName"); err != nil {
				return nil, err
			}
		}
		if err := e.admit(row); err != nil {
			return nil, err
		}
		before := propertyFields(current)
		if err := within.require(ctx, tx, func(required []string) []string {
			if i := slices.Index(required, current.Name); i >= 0 {
				required[i] = name
			}
			return required
		}); err != nil {
			return nil, err
		}
		current.Name, current.Keywords, current.UpdatedAt = name, string(schema.Keywords), s.Now()
		err = tx.PropertyDefinition.Update().Where(propertydefinition.ID(current.ID)).
			SetName(name).SetKeywords(current.Keywords).SetUpdatedAt(current.UpdatedAt).
			SetSearchKey(text.SearchKey(name, schema.Title, text.OrEmpty(schema.Description))).Exec(ctx)
		property = within.noun(current)
		return &sqldb.Event{Kind: "PropertyDefinition", Key: within.key(input.Name), Before: before,
			After: propertyFields(current)}, err
	}, &property)
	return property, in, err
}

// DeleteProperty deletes a property and removes it from the required list of
// its object.
func (s *MetadefStore) DeleteProperty(ctx context.Context, namespace string, object *string, name string,
	revision *int) (property *metadef.PropertyDefinition, in *metadef.Namespace, err error) {
	e := edit{mutation: "deleteProperty", namespace: namespace, revision: revision, deletes: true}
	in, err = s.editNamespace(ctx, e, func(tx *sqldb.Tx, row *ent.Namespace) (*sqldb.Event, error) {
		within, current, err := findProperty(ctx, tx, row, object, name)
		if err := cmp.Or(err, e.admit(row)); err != nil {
			return nil, err
		}
		property = within.noun(current)
		if err := within.require(ctx, tx, func(required []string) []string {
			return slices.DeleteFunc(required, func(other string) bool { return other == name })
		}); err != nil {
			return nil, err
		}
		_, err = tx.PropertyDefinition.Delete().Where(propertydefinition.ID(current.ID)).Exec(ctx)
		return &sqldb.Event{Kind: "PropertyDefinition", Key: within.key(name), Before: propertyFields(current)}, err
	}, &property)
	return property, in, err
}

// container is the parent of a property: a namespace or an object in it.
type container struct {
	namespace *ent.Namespace
	object    *ent.ObjectDefinition // nil for the namespace itself
}

func findContainer(ctx context.Context, tx *sqldb.Tx, row *ent.Namespace, object *string) (container, error) {
	p := container{namespace: row}
	if object == nil {
		return p, nil
	}
	var err error
	p.object, err = findObject(ctx, tx, row, *object, "input.object")
	return p, err
}

// findObject returns the object of a namespace with a name, or ErrNotFound.
func findObject(ctx context.Context, tx *sqldb.Tx, row *ent.Namespace, name,
	field string) (*ent.ObjectDefinition, error) {
	if err := text.CheckAny(field, name); err != nil {
		return nil, err
	}
	object, err := tx.ObjectDefinition.Query().Where(objectdefinition.NamespaceID(row.ID), objectdefinition.Name(name)).
		Only(ctx)
	if ent.IsNotFound(err) {
		return nil, problem.Refuse(problem.ErrNotFound, "object %q does not exist in namespace %q", name, row.Name).
			On(field)
	}
	return object, err
}

func findProperty(ctx context.Context, tx *sqldb.Tx, row *ent.Namespace, object *string,
	name string) (container, *ent.PropertyDefinition, error) {
	p, err := findContainer(ctx, tx, row, object)
	if err == nil {
		err = text.CheckAny("input.name", name)
	}
	if err != nil {
		return p, nil, err
	}
	property, err := p.properties(tx).Where(propertydefinition.Name(name)).Only(ctx)
	if ent.IsNotFound(err) {
		return p, nil, problem.Refuse(problem.ErrNotFound, "property %q does not exist in %s", name, p).On("input.name")
	}
	return p, property, err
}

func (p container) String() string {
	if p.object != nil {
		return "object \"" + p.object.Name + "\" of namespace \"" + p.namespace.Name + "\""
	}
	return "namespace \"" + p.namespace.Name + "\""
}

// key returns the key of a property in the audit log.
func (p container) key(name string) string {
	if p.object != nil {
		return p.namespace.Name + "/" + p.object.Name + "/" + name
	}
	return p.namespace.Name + "/" + name
}

func (p container) properties(tx *sqldb.Tx) *ent.PropertyDefinitionQuery {
	query := tx.PropertyDefinition.Query().Where(propertydefinition.NamespaceID(p.namespace.ID))
	if p.object != nil {
		return query.Where(propertydefinition.ObjectID(p.object.ID))
	}
	return query.Where(propertydefinition.ObjectIDIsNil())
}

// checkFree refuses the name of another property of the container.
func (p container) checkFree(ctx context.Context, tx *sqldb.Tx, name, field string) error {
	taken, err := p.properties(tx).Where(propertydefinition.Name(name)).Exist(ctx)
	if err == nil && taken {
		return problem.Refuse(problem.ErrAlreadyExists, "property %q already exists in %s", name, p).On(field)
	}
	return err
}

// end returns the position after the last property of the container.
func (p container) end(ctx context.Context, tx *sqldb.Tx) (int, error) {
	last, err := p.properties(tx).Order(ent.Desc(propertydefinition.FieldPosition)).Limit(1).
		Select(propertydefinition.FieldPosition).Ints(ctx)
	if err != nil || len(last) == 0 {
		return 0, err
	}
	return last[0] + 1, nil
}

// require replaces the required list of the container's object by the result of
// to. It does nothing for the namespace itself.
func (p container) require(ctx context.Context, tx *sqldb.Tx, to func([]string) []string) error {
	if p.object == nil {
		return nil
	}
	required := sqldb.JSONOf(to(sqldb.TextList(p.object.Required)))
	if required == p.object.Required {
		return nil
	}
	p.object.Required = required
	return tx.ObjectDefinition.Update().Where(objectdefinition.ID(p.object.ID)).SetRequired(required).Exec(ctx)
}

// noun returns the property of a row of the container.
func (p container) noun(row *ent.PropertyDefinition) *metadef.PropertyDefinition {
	row.Edges.Object = p.object
	return propertyNoun(row)
}
