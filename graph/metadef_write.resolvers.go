package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/store"
)

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
