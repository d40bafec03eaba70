package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/text"
)

func (r *appliedNamespaceResolver) ID(ctx context.Context, obj *metadef.AppliedNamespace) (string, error) {
	return page.Key("AppliedNamespace", obj.Association.NodeID(), obj.Search), nil
}

func (r *appliedNamespaceResolver) Properties(ctx context.Context, obj *metadef.AppliedNamespace) ([]*metadef.PropertyDefinition, error) {
	return orEmpty(obj.Properties), nil
}

func (r *appliedNamespaceResolver) Objects(ctx context.Context, obj *metadef.AppliedNamespace) ([]*metadef.ObjectDefinition, error) {
	return lists.Map(obj.Objects, func(object metadef.AppliedObject) *metadef.ObjectDefinition {
		return object.ObjectDefinition
	}), nil
}

func (r *namespaceResolver) Properties(ctx context.Context, obj *metadef.Namespace, resourceType *string, target *string, prefix *string) ([]*metadef.PropertyDefinition, error) {
	if err := r.Store.CheckResourceType(ctx, nil, resourceType); err != nil {
		return nil, err
	}
	properties, err := propertiesOfNamespace.Load(ctx, r.Store, obj)
	if err != nil || resourceType == nil {
		return orEmpty(properties), err
	}
	return dataloader.Once(ctx, obj.ID, func() ([]*metadef.PropertyDefinition, error) {
		associations, err := associationsOfNamespace.Load(ctx, r.Store, obj)
		choice := metadef.AssociationFilter{ResourceTypes: []string{*resourceType},
			Prefix: prefix, PropertiesTarget: target}
		return orEmpty(metadef.PropertiesThrough(choice.Of(obj.Name, associations), properties)), err
	})
}

func (r *namespaceResolver) Property(ctx context.Context, obj *metadef.Namespace, name string, resourceType *string) (*metadef.PropertyDefinition, error) {
	properties, err := r.Properties(ctx, obj, resourceType, nil, nil)
	if err != nil {
		return nil, err
	}
	return named(properties, name, func(p *metadef.PropertyDefinition) string { return p.Name }), nil
}

func (r *namespaceResolver) Objects(ctx context.Context, obj *metadef.Namespace, resourceType *string, target *string, prefix *string) ([]*metadef.ObjectDefinition, error) {
	if err := r.Store.CheckResourceType(ctx, nil, resourceType); err != nil {
		return nil, err
	}
	objects, err := objectsOfNamespace.Load(ctx, r.Store, obj)
	if err != nil || resourceType == nil {
		return orEmpty(objects), err
	}
	return dataloader.Once(ctx, obj.ID, func() ([]*metadef.ObjectDefinition, error) {
		associations, err := associationsOfNamespace.Load(ctx, r.Store, obj)
		choice := metadef.AssociationFilter{ResourceTypes: []string{*resourceType},
			Prefix: prefix, PropertiesTarget: target}
		return orEmpty(metadef.ObjectsThrough(choice.Of(obj.Name, associations), objects)), err
	})
}

func (r *namespaceResolver) Object(ctx context.Context, obj *metadef.Namespace, name string, resourceType *string) (*metadef.ObjectDefinition, error) {
	objects, err := r.Objects(ctx, obj, resourceType, nil, nil)
	if err != nil {
		return nil, err
	}
	return named(objects, name, func(o *metadef.ObjectDefinition) string { return o.Name }), nil
}

func (r *namespaceResolver) Tags(ctx context.Context, obj *metadef.Namespace) ([]*metadef.Tag, error) {
	return tagsOfNamespace.Load(ctx, r.Store, obj)
}

func (r *namespaceResolver) Tag(ctx context.Context, obj *metadef.Namespace, name string) (*metadef.Tag, error) {
	tags, err := r.Tags(ctx, obj)
	if err != nil {
		return nil, err
	}
	return named(tags, text.Fold(name), func(t *metadef.Tag) string { return text.Fold(t.Name) }), nil
}

func (r *namespaceResolver) PropertyConnection(ctx context.Context, obj *metadef.Namespace, resourceType *string, target *string, prefix *string, first *int, after *string, last *int, before *string) (*model.Connection[metadef.PropertyDefinition], error) {
	properties, err := r.Properties(ctx, obj, resourceType, target, prefix)
	if err != nil {
		return nil, err
	}
	return dataloader.Once(ctx, obj.ID, func() (*model.Connection[metadef.PropertyDefinition], error) {
		return model.ConnectList("properties", properties, model.PageRequest(first, after, last, before),
			nameOfProperty, (*metadef.PropertyDefinition).NodeID)
	})
}

func (r *namespaceResolver) ObjectConnection(ctx context.Context, obj *metadef.Namespace, resourceType *string, target *string, prefix *string, first *int, after *string, last *int, before *string) (*model.Connection[metadef.ObjectDefinition], error) {
	objects, err := r.Objects(ctx, obj, resourceType, target, prefix)
	if err != nil {
		return nil, err
	}
	return dataloader.Once(ctx, obj.ID, func() (*model.Connection[metadef.ObjectDefinition], error) {
		return model.ConnectList("objects", objects, model.PageRequest(first, after, last, before),
			nameOfObject, (*metadef.ObjectDefinition).NodeID)
	})
}

func (r *namespaceResolver) TagConnection(ctx context.Context, obj *metadef.Namespace, first *int, after *string, last *int, before *string) (*model.Connection[metadef.Tag], error) {
	tags, err := r.Tags(ctx, obj)
	if err != nil {
		return nil, err
	}
	return dataloader.Once(ctx, obj.ID, func() (*model.Connection[metadef.Tag], error) {
		return model.ConnectList("tags of a namespace", tags, model.PageRequest(first, after, last, before),
			keyOfTag, (*metadef.Tag).NodeID)
	})
}

func (r *namespaceResolver) ResourceTypeAssociations(ctx context.Context, obj *metadef.Namespace, filter *metadef.AssociationFilter) ([]*metadef.ResourceTypeAssociation, error) {
	wanted := valueOf(filter)
	if err := r.Store.CheckAssociationFilter(ctx, wanted); err != nil {
		return nil, err
	}
	associations, err := associationsOfNamespace.Load(ctx, r.Store, obj)
	return orEmpty(wanted.Of(obj.Name, associations)), err
}

func (r *namespaceResolver) Members(ctx context.Context, obj *metadef.Namespace) ([]*metadef.NamespaceMember, error) {
	return membersOfNamespace.Load(ctx, r.Store, obj)
}

func (r *objectDefinitionResolver) Properties(ctx context.Context, obj *metadef.ObjectDefinition) ([]*metadef.PropertyDefinition, error) {
	properties, err := propertiesOfObject.Load(ctx, r.Store, obj)
	return orEmpty(metadef.PropertiesOfObject(obj, properties)), err
}

func (r *objectDefinitionResolver) Namespace(ctx context.Context, obj *metadef.ObjectDefinition) (*metadef.Namespace, error) {
	return namespaceOfObject.Load(ctx, r.Store, obj)
}

func (r *propertyDefinitionResolver) Namespace(ctx context.Context, obj *metadef.PropertyDefinition) (*metadef.Namespace, error) {
	return namespaceOfProperty.Load(ctx, r.Store, obj)
}

func (r *propertyDefinitionResolver) Object(ctx context.Context, obj *metadef.PropertyDefinition) (*metadef.ObjectDefinition, error) {
	return objectOfProperty.Load(ctx, r.Store, obj)
}

func (r *queryResolver) Namespaces(ctx context.Context, filter *metadef.NamespaceFilter, orderBy *model.NamespaceOrder, first *int, after *string, last *int, before *string) (*model.Connection[metadef.Namespace], error) {
	wanted, order := valueOf(filter), namespaceOrder(orderBy)
	return connect(ctx, model.PageRequest(first, after, last, before),
		func(ctx context.Context, page page.Request) (page.Page[*metadef.Namespace], error) {
			return r.Store.Namespaces(ctx, wanted, order, page)
		},
		func(ctx context.Context) (int, error) { return r.Store.CountNamespaces(ctx, wanted) })
}

func (r *queryResolver) Namespace(ctx context.Context, name string) (*metadef.Namespace, error) {
	return lookUp(ctx, name, r.Store.NamespaceNamed)
}

func (r *queryResolver) ResourceTypes(ctx context.Context, filter *metadef.ResourceTypeFilter, orderBy *model.ResourceTypeOrder, first *int, after *string, last *int, before *string) (*model.Connection[metadef.ResourceType], error) {
	wanted, order := valueOf(filter), page.Order{Field: string(model.ResourceTypeOrderFieldName)}
	if orderBy != nil {
		order = page.Order{Field: string(orderBy.Field), Descending: descending(orderBy.Direction)}
	}
	return connect(ctx, model.PageRequest(first, after, last, before),
		func(ctx context.Context, page page.Request) (page.Page[*metadef.ResourceType], error) {
			return r.Store.ResourceTypes(ctx, wanted, order, page)
		},
		func(ctx context.Context) (int, error) { return r.Store.CountResourceTypes(ctx, wanted) })
}

func (r *queryResolver) ResourceType(ctx context.Context, name string) (*metadef.ResourceType, error) {
	return lookUp(ctx, name, r.Store.ResourceTypeNamed)
}

func (r *queryResolver) Tags(ctx context.Context, search *string, first *int, after *string, last *int, before *string) (*model.Connection[metadef.Tag], error) {
	return connect(ctx, model.PageRequest(first, after, last, before),
		func(ctx context.Context, page page.Request) (page.Page[*metadef.Tag], error) {
			return r.Store.Tags(ctx, valueOf(search), page)
		},
		func(ctx context.Context) (int, error) { return r.Store.CountTags(ctx, valueOf(search)) })
}

func (r *queryResolver) Definitions(ctx context.Context, resourceType string, target *string, search *string) ([]*metadef.AppliedNamespace, error) {
	applied, err := r.Store.Definitions(ctx, resourceType, target, valueOf(search))
	registerApplied(ctx, applied)
	return applied, err
}

func (r *queryResolver) ValidateMetadata(ctx context.Context, resourceType *string, target *string, values []*metadef.KeyValue, resource *string, project *string) (*metadef.MetadataReport, error) {
	report, err := r.Store.ValidateMetadata(ctx, validationOf(resource, project, resourceType, target, values))
	if err != nil {
		return nil, err
	}
	dataloader.Register(ctx, definitionsOfReport(report)...)
	return report, nil
}

func (r *queryResolver) ExportNamespaces(ctx context.Context, names []string, resourceTypes []string, portable bool) ([]string, error) {
	return r.Store.ExportNamespaces(ctx, names, resourceTypes, portable, maxExport(ctx))
}

func (r *resourceTypeResolver) Namespaces(ctx context.Context, obj *metadef.ResourceType, orderBy *model.NamespaceOrder, first *int, after *string, last *int, before *string) (*model.Connection[metadef.Namespace], error) {
	return namespacesOfType.connect(ctx, r.Store, obj, namespaceOrder(orderBy),
		model.PageRequest(first, after, last, before))
}

func (r *resourceTypeResolver) Associations(ctx context.Context, obj *metadef.ResourceType, filter *metadef.AssociationFilter, first *int, after *string, last *int, before *string) (*model.Connection[metadef.ResourceTypeAssociation], error) {
	return associationsOfType.connect(ctx, r.Store, obj, valueOf(filter), model.PageRequest(first, after, last, before))
}

func (r *resourceTypeAssociationResolver) ResourceType(ctx context.Context, obj *metadef.ResourceTypeAssociation) (*metadef.ResourceType, error) {
	return typeOfAssociation.Load(ctx, r.Store, obj)
}

func (r *resourceTypeAssociationResolver) Namespace(ctx context.Context, obj *metadef.ResourceTypeAssociation) (*metadef.Namespace, error) {
	return namespaceOfAssociation.Load(ctx, r.Store, obj)
}

func (r *tagResolver) Parent(ctx context.Context, obj *metadef.Tag) (*metadef.Tag, error) {
	return parentOfTag.Load(ctx, r.Store, obj)
}

func (r *tagResolver) Children(ctx context.Context, obj *metadef.Tag) ([]*metadef.Tag, error) {
	return childrenOfTag.Load(ctx, r.Store, obj)
}

func (r *tagResolver) Descendants(ctx context.Context, obj *metadef.Tag) ([]*metadef.Tag, error) {
	tags, err := tagsBesideTag.Load(ctx, r.Store, obj)
	return metadef.DescendantsOf(obj, tags), err
}

func (r *tagResolver) Namespace(ctx context.Context, obj *metadef.Tag) (*metadef.Namespace, error) {
	return namespaceOfTag.Load(ctx, r.Store, obj)
}

func (r *tagResolver) ResourceCount(ctx context.Context, obj *metadef.Tag) (*int, error) {
	count, err := countOfTagged.Load(ctx, r.Store, obj)
	return &count, err
}

func (r *violationResolver) Rule(ctx context.Context, obj *metadef.Violation) (model.ViolationRule, error) {
	return model.RuleOf(obj), nil
}
