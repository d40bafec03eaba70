package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
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

func (r *defaultsResultResolver) Errors(ctx context.Context, obj *resource.DefaultsResult) ([]*model.RowError, error) {
	return rowErrors(obj.Problems), nil
}

func (r *mutationResolver) SetDefaults(ctx context.Context, input metadef.DefaultsChange) (*model.SetDefaultsPayload, error) {
	namespace, err := r.Store.SetDefaults(ctx, input)
	return &model.SetDefaultsPayload{Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) ApplyDefaults(ctx context.Context, input resource.DefaultsRun) (*resource.AppliedDefaults, error) {
	applied, err := r.Store.ApplyDefaults(ctx, input)
	return &applied, err
}

func (r *mutationResolver) CreateNamespace(ctx context.Context, input metadef.NamespaceInput) (*model.CreateNamespacePayload, error) {
	namespace, err := r.Store.CreateNamespace(ctx, input)
	return &model.CreateNamespacePayload{Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) UpdateNamespace(ctx context.Context, input metadef.NamespaceChange, problems *model.MetadataProblemScan) (*model.UpdateNamespacePayload, error) {
	var namespace *metadef.Namespace
	broken, err := r.change(ctx, input.DryRun, problems,
		store.DefinitionChange{Namespaces: []string{input.Name}, Make: func(ctx context.Context) (err error) {
			namespace, err = r.Store.UpdateNamespace(ctx, input)
			return err
		}})
	return &model.UpdateNamespacePayload{Namespace: changed(ctx, input.DryRun, namespace), Problems: broken}, err
}

func (r *mutationResolver) DeleteNamespace(ctx context.Context, input model.DeleteNamespaceInput) (*model.DeleteNamespacePayload, error) {
	namespace, err := r.Store.DeleteNamespace(ctx, input.Name, input.Revision.Value())
	return &model.DeleteNamespacePayload{Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) DeleteNamespaceContents(ctx context.Context, input model.DeleteNamespaceContentsInput) (*model.DeleteNamespaceContentsPayload, error) {
	namespace, err := r.Store.DeleteNamespaceContents(ctx, input.Namespace, input.Kinds, input.Revision.Value())
	return &model.DeleteNamespaceContentsPayload{Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) CreateProperty(ctx context.Context, input metadef.NewProperty) (*model.CreatePropertyPayload, error) {
	property, namespace, err := r.Store.CreateProperty(ctx, input)
	return &model.CreatePropertyPayload{PropertyDefinition: inNamespace(ctx, property, namespace),
		Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) UpdateProperty(ctx context.Context, input metadef.PropertyChange, problems *model.MetadataProblemScan) (*model.UpdatePropertyPayload, error) {
	var property *metadef.PropertyDefinition
	var namespace *metadef.Namespace
	broken, err := r.change(ctx, input.DryRun, problems,
		store.DefinitionChange{Namespaces: []string{input.Namespace}, Make: func(ctx context.Context) (err error) {
			property, namespace, err = r.Store.UpdateProperty(ctx, input)
			return err
		}})
	if err != nil {
		return nil, err
	}
	return &model.UpdatePropertyPayload{PropertyDefinition: changed(ctx, input.DryRun, property.Within(namespace)),
		Namespace: changed(ctx, input.DryRun, namespace), Problems: broken}, nil
}

func (r *mutationResolver) DeleteProperty(ctx context.Context, input model.DeletePropertyInput) (*model.DeletePropertyPayload, error) {
	property, namespace, err := r.Store.DeleteProperty(ctx, input.Namespace,
		input.Object.Value(), input.Name, input.Revision.Value())
	return &model.DeletePropertyPayload{PropertyDefinition: inNamespace(ctx, property, namespace),
		Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) CreateObject(ctx context.Context, input metadef.NewObject) (*model.CreateObjectPayload, error) {
	object, namespace, err := r.Store.CreateObject(ctx, input)
	return &model.CreateObjectPayload{ObjectDefinition: inNamespace(ctx, object, namespace),
		Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) UpdateObject(ctx context.Context, input metadef.ObjectChange, problems *model.MetadataProblemScan) (*model.UpdateObjectPayload, error) {
	var object *metadef.ObjectDefinition
	var namespace *metadef.Namespace
	broken, err := r.change(ctx, input.DryRun, problems,
		store.DefinitionChange{Namespaces: []string{input.Namespace}, Make: func(ctx context.Context) (err error) {
			object, namespace, err = r.Store.UpdateObject(ctx, input)
			return err
		}})
	if err != nil {
		return nil, err
	}
	return &model.UpdateObjectPayload{ObjectDefinition: changed(ctx, input.DryRun, object.Within(namespace)),
		Namespace: changed(ctx, input.DryRun, namespace), Problems: broken}, nil
}

func (r *mutationResolver) DeleteObject(ctx context.Context, input model.DeleteObjectInput) (*model.DeleteObjectPayload, error) {
	object, namespace, err := r.Store.DeleteObject(ctx, input.Namespace, input.Name, input.Revision.Value())
	return &model.DeleteObjectPayload{ObjectDefinition: inNamespace(ctx, object, namespace),
		Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) SetTags(ctx context.Context, input model.SetTagsInput) (*model.SetTagsPayload, error) {
	tags, namespace, err := r.Store.SetTags(ctx, metadef.TagsChange{
		Namespace: input.Namespace, Tags: model.Values(input.Tags),
		Append: input.Mode == model.SetTagsModeAppend, Revision: input.Revision.Value(),
	})
	for _, tag := range tags {
		inNamespace(ctx, tag, namespace)
	}
	return &model.SetTagsPayload{Tags: tags, Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) UpdateTag(ctx context.Context, input metadef.TagChange) (*model.UpdateTagPayload, error) {
	tag, namespace, err := r.Store.UpdateTag(ctx, input)
	return &model.UpdateTagPayload{Tag: inNamespace(ctx, tag, namespace), Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) DeleteTag(ctx context.Context, input model.DeleteTagInput) (*model.DeleteTagPayload, error) {
	tag, namespace, err := r.Store.DeleteTag(ctx, input.Namespace, input.Name, input.Revision.Value())
	return &model.DeleteTagPayload{Tag: inNamespace(ctx, tag, namespace), Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) CreateResourceType(ctx context.Context, input model.CreateResourceTypeInput) (*model.CreateResourceTypePayload, error) {
	resourceType, err := r.Store.CreateResourceType(ctx, input.Name, input.Strict, input.Protected)
	return &model.CreateResourceTypePayload{ResourceType: registered(ctx, resourceType)}, err
}

func (r *mutationResolver) UpdateResourceType(ctx context.Context, input metadef.ResourceTypeChange, problems *model.MetadataProblemScan) (*model.UpdateResourceTypePayload, error) {
	var resourceType *metadef.ResourceType
	broken, err := r.change(ctx, input.DryRun, problems,
		store.DefinitionChange{Types: []string{input.Name}, Make: func(ctx context.Context) (err error) {
			resourceType, err = r.Store.UpdateResourceType(ctx, input)
			return err
		}})
	return &model.UpdateResourceTypePayload{ResourceType: changed(ctx, input.DryRun, resourceType),
		Problems: broken}, err
}

func (r *mutationResolver) DeleteResourceType(ctx context.Context, input model.DeleteResourceTypeInput) (*model.DeleteResourceTypePayload, error) {
	resourceType, err := r.Store.DeleteResourceType(ctx, input.Name)
	return &model.DeleteResourceTypePayload{ResourceType: registered(ctx, resourceType)}, err
}

func (r *mutationResolver) AssociateResourceType(ctx context.Context, input metadef.NewAssociation) (*model.AssociateResourceTypePayload, error) {
	association, namespace, err := r.Store.AssociateResourceType(ctx, input)
	return &model.AssociateResourceTypePayload{ResourceTypeAssociation: inNamespace(ctx, association, namespace),
		Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) UpdateResourceTypeAssociation(ctx context.Context, input model.UpdateResourceTypeAssociationInput) (*model.UpdateResourceTypeAssociationPayload, error) {
	ref, err := associationRef(input.ID.Value(), input.Association.Value())
	if err != nil {
		return nil, err
	}
	association, namespace, err := r.Store.UpdateAssociation(ctx, metadef.AssociationChange{
		Ref: ref, Prefix: model.ChangeOf(input.NewPrefix),
		PropertiesTarget: model.ChangeOf(input.NewPropertiesTarget), Revision: input.Revision.Value(),
	})
	return &model.UpdateResourceTypeAssociationPayload{ResourceTypeAssociation: inNamespace(ctx, association,
		namespace), Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) DisassociateResourceType(ctx context.Context, input model.DisassociateResourceTypeInput) (*model.DisassociateResourceTypePayload, error) {
	ref, err := associationRef(input.ID.Value(), input.Association.Value())
	if err != nil {
		return nil, err
	}
	association, namespace, err := r.Store.DisassociateResourceType(ctx, ref, input.Revision.Value())
	return &model.DisassociateResourceTypePayload{ResourceTypeAssociation: inNamespace(ctx, association, namespace),
		Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) ShareNamespace(ctx context.Context, input model.ShareNamespaceInput) (*model.ShareNamespacePayload, error) {
	member, namespace, err := r.Store.ShareNamespace(ctx, input.Namespace,
		input.ProjectID, input.Role, input.Revision.Value())
	return &model.ShareNamespacePayload{NamespaceMember: registered(ctx, member),
		Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) UnshareNamespace(ctx context.Context, input model.UnshareNamespaceInput) (*model.UnshareNamespacePayload, error) {
	member, namespace, err := r.Store.UnshareNamespace(ctx, input.Namespace, input.ProjectID, input.Revision.Value())
	return &model.UnshareNamespacePayload{NamespaceMember: registered(ctx, member),
		Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) ImportNamespaces(ctx context.Context, input metadef.ImportRequest, problems *model.MetadataProblemScan) (*model.ImportNamespacesPayload, error) {
	var reports []*metadef.ImportReport
	broken, err := r.change(ctx, input.DryRun, problems,
		store.DefinitionChange{Namespaces: input.TriedNamespaces(), Make: func(ctx context.Context) (err error) {
			reports, err = r.Store.ImportNamespaces(ctx, input)
			return err
		}})
	return &model.ImportNamespacesPayload{Reports: reports, Problems: broken}, err
}

func (r *mutationResolver) UnloadNamespaces(ctx context.Context, input metadef.UnloadRequest) (*model.UnloadNamespacesPayload, error) {
	reports, err := r.Store.UnloadNamespaces(ctx, input)
	return &model.UnloadNamespacesPayload{Reports: reports}, err
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

func (r *objectDefinitionResolver) Properties(ctx context.Context, obj *metadef.ObjectDefinition) ([]*metadef.PropertyDefinition, error) {
	properties, err := propertiesOfObject.Load(ctx, r.Store, obj)
	return orEmpty(metadef.PropertiesOfObject(obj, properties)), err
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

func (r *tagResolver) Descendants(ctx context.Context, obj *metadef.Tag) ([]*metadef.Tag, error) {
	tags, err := tagsBesideTag.Load(ctx, r.Store, obj)
	return metadef.DescendantsOf(obj, tags), err
}

func (r *tagResolver) ResourceCount(ctx context.Context, obj *metadef.Tag) (*int, error) {
	count, err := countOfTagged.Load(ctx, r.Store, obj)
	return &count, err
}

func (r *violationResolver) Rule(ctx context.Context, obj *metadef.Violation) (model.ViolationRule, error) {
	return model.RuleOf(obj), nil
}
