package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/dataloader"
	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/page"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/text"
)

func (r *metadataProblemResolver) Rule(ctx context.Context, obj *resource.MetadataProblem) (model.ViolationRule, error) {
	return model.RuleOf(&obj.Violation), nil
}

func (r *metadataProblemCountResolver) Rule(ctx context.Context, obj *resource.ProblemCount) (*model.ViolationRule, error) {
	if obj.Rule == nil {
		return nil, nil
	}
	return new(model.RuleOf(&metadef.Violation{Rule: *obj.Rule})), nil
}

func (r *mutationResolver) CreateResource(ctx context.Context, input resource.Input) (*model.CreateResourcePayload, error) {
	resource, err := r.Store.CreateResource(ctx, input)
	return &model.CreateResourcePayload{Resource: registered(ctx, resource)}, err
}

func (r *mutationResolver) CreateResources(ctx context.Context, input resource.Inputs) (*model.CreateResourcesPayload, error) {
	outcomes, err := r.Store.CreateResources(ctx, input)
	results := make([]*model.CreateResourcesResult, len(outcomes))
	for i, outcome := range outcomes {
		results[i] = &model.CreateResourcesResult{Resource: registered(ctx, outcome.Row),
			Errors: rowErrors(outcome.Problems)}
	}
	return &model.CreateResourcesPayload{Results: results}, err
}

func (r *mutationResolver) SetMetadata(ctx context.Context, input resource.MetadataChange) (*model.SetMetadataPayload, error) {
	resource, _, err := r.Store.ChangeMetadata(ctx, input)
	return &model.SetMetadataPayload{Resource: registered(ctx, resource)}, err
}

func (r *mutationResolver) SetMetadataOnResources(ctx context.Context, input resource.MetadataChanges) (*model.SetMetadataOnResourcesPayload, error) {
	outcomes, err := r.Store.ChangeMetadataOfMany(ctx, input)
	if err != nil {
		return nil, err
	}
	payload := &model.SetMetadataOnResourcesPayload{Results: make([]*model.SetMetadataOnResourcesResult, len(outcomes)),
		Resources: []*resource.Resource{}}
	for i, outcome := range outcomes {
		payload.Results[i] = &model.SetMetadataOnResourcesResult{Resource: registered(ctx, outcome.Row),
			Errors: rowErrors(outcome.Problems)}
		if outcome.Row != nil {
			payload.Resources = append(payload.Resources, outcome.Row)
		}
	}
	return payload, nil
}

func (r *mutationResolver) ReplaceMetadata(ctx context.Context, input resource.MetadataChange) (*model.ReplaceMetadataPayload, error) {
	input.Mode = resource.ReplaceMetadata
	resource, retained, err := r.Store.ChangeMetadata(ctx, input)
	dataloader.Register(ctx, retained...)
	return &model.ReplaceMetadataPayload{Resource: registered(ctx, resource), Retained: retained}, err
}

func (r *mutationResolver) DeleteMetadata(ctx context.Context, input resource.MetadataChange) (*model.DeleteMetadataPayload, error) {
	input.Mode = resource.DeleteMetadata
	resource, _, err := r.Store.ChangeMetadata(ctx, input)
	return &model.DeleteMetadataPayload{Resource: registered(ctx, resource)}, err
}

func (r *mutationResolver) UpdateResource(ctx context.Context, input model.UpdateResourceInput) (*model.UpdateResourcePayload, error) {
	resource, err := r.Store.UpdateResource(ctx, resource.Patch{
		UUID: input.UUID, NewName: model.ChangeOf(input.NewName), Description: model.ChangeOf(input.Description),
		Visibility: model.ChangeOf(input.Visibility),
		Parent:     model.ChangeOf(input.Parent), Revision: input.Revision.Value(),
	})
	return &model.UpdateResourcePayload{Resource: registered(ctx, resource)}, err
}

func (r *mutationResolver) DeleteResource(ctx context.Context, input model.DeleteResourceInput) (*model.DeleteResourcePayload, error) {
	resource, err := r.Store.DeleteResource(ctx, input.UUID, input.Revision.Value())
	return &model.DeleteResourcePayload{Resource: registered(ctx, resource)}, err
}

func (r *mutationResolver) SetResourceTags(ctx context.Context, input model.SetResourceTagsInput) (*model.SetResourceTagsPayload, error) {
	resource, err := r.Store.SetResourceTags(ctx, input.Resource, input.Tags, input.Revision.Value())
	return &model.SetResourceTagsPayload{Resource: registered(ctx, resource)}, err
}

func (r *queryResolver) Resources(ctx context.Context, filter *resource.Filter, orderBy *model.ResourceOrder, first *int, after *string, last *int, before *string) (*model.ResourceConnection, error) {
	wanted, order := valueOf(filter), resourceOrder(orderBy)
	connection, err := connect(ctx, model.PageRequest(first, after, last, before),
		func(ctx context.Context, page page.Request) (page.Page[*resource.Resource], error) {
			return r.Store.Resources(ctx, wanted, order, page)
		},
		func(ctx context.Context) (int, error) { return r.Store.CountResources(ctx, wanted) })
	metadata := func(ctx context.Context, keys []string, first int) ([]*resource.MetadataFacet, error) {
		facets, err := r.Store.MetadataFacets(ctx, resource.EveryResource, []int64{0}, wanted, keys, first)
		return facets[0], err
	}
	facets := func(ctx context.Context, of []resource.FacetRequest) ([]*resource.Facet, error) {
		facets, err := r.Store.Facets(ctx, resource.EveryResource, []int64{0}, wanted, of)
		return facets[0], err
	}
	return &model.ResourceConnection{Connection: connection, CountMetadata: metadata, CountFacets: facets}, err
}

func (r *queryResolver) Resource(ctx context.Context, uuid string) (*resource.Resource, error) {
	return lookUp(ctx, uuid, r.Store.ResourceByUUID)
}

func (r *queryResolver) MetadataKeys(ctx context.Context, filter *resource.Filter, resourceType *string, search *string, first *int, after *string) (*model.Connection[resource.MetadataKey], error) {
	wanted := valueOf(filter)
	return connect(ctx, model.PageRequest(first, after, nil, nil),
		func(ctx context.Context, page page.Request) (page.Page[*resource.MetadataKey], error) {
			return r.Store.MetadataKeys(ctx, wanted, resourceType, valueOf(search), page)
		},
		func(ctx context.Context) (int, error) {
			return r.Store.CountMetadataKeys(ctx, wanted, resourceType, valueOf(search))
		})
}

func (r *queryResolver) ExplainResources(ctx context.Context, filter resource.Filter) (*resource.Explanation, error) {
	return r.Store.ExplainResources(ctx, filter)
}

func (r *queryResolver) MetadataProblems(ctx context.Context, filter *model.MetadataProblemFilter, first int, after *string, scan int) (*model.MetadataProblemConnection, error) {
	found, err := r.Store.MetadataProblems(ctx,
		resource.ProblemScan{Filter: model.ProblemFilterOf(filter), First: first, Scan: scan, After: after})
	return connectProblems(ctx, found), err
}

func (r *resourceResolver) Children(ctx context.Context, obj *resource.Resource, filter *resource.Filter, orderBy *model.ResourceOrder, first *int, after *string, last *int, before *string) (*model.ResourceConnection, error) {
	return childrenOfResource.connect(ctx, r.Store, obj, filter, orderBy, model.PageRequest(first, after, last, before))
}

func (r *resourceResolver) Metadata(ctx context.Context, obj *resource.Resource, keys []string) ([]*resource.MetadataItem, error) {
	return r.metadataOf(ctx, obj, keys)
}

func (r *resourceResolver) MetadataItem(ctx context.Context, obj *resource.Resource, key string) (*resource.MetadataItem, error) {
	if err := text.CheckAny("key", key); err != nil {
		return nil, err
	}
	items, err := r.Metadata(ctx, obj, []string{key})
	return named(items, key, func(item *resource.MetadataItem) string { return item.Key }), err
}

func (r *resourceResolver) Tags(ctx context.Context, obj *resource.Resource) ([]string, error) {
	tags, err := tagsOfResource.Load(ctx, r.Store, obj)
	return orEmpty(tags), err
}

func (r *resourceClauseResolver) Kind(ctx context.Context, obj *resource.Clause) (model.ResourceClauseKind, error) {
	return model.KindOf(obj), nil
}

func (r *resourceTypeResolver) Resources(ctx context.Context, obj *metadef.ResourceType, filter *resource.Filter, orderBy *model.ResourceOrder, first *int, after *string, last *int, before *string) (*model.ResourceConnection, error) {
	return resourcesOfType.connect(ctx, r.Store, obj, filter, orderBy, model.PageRequest(first, after, last, before))
}
