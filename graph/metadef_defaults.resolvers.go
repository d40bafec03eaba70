package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
)

func (r *defaultsResultResolver) Errors(ctx context.Context, obj *resource.DefaultsResult) ([]*model.RowError, error) {
	return rowErrors(obj.Problems), nil
}

func (r *metadataItemResolver) DerivedFrom(ctx context.Context, obj *resource.MetadataItem) (*metadef.Namespace, error) {
	return derivationOfItem.Load(ctx, r.Store, obj)
}

func (r *mutationResolver) SetDefaults(ctx context.Context, input metadef.DefaultsChange) (*model.SetDefaultsPayload, error) {
	namespace, err := r.Store.SetDefaults(ctx, input)
	return &model.SetDefaultsPayload{Namespace: registered(ctx, namespace)}, err
}

func (r *mutationResolver) ApplyDefaults(ctx context.Context, input resource.DefaultsRun) (*resource.AppliedDefaults, error) {
	applied, err := r.Store.ApplyDefaults(ctx, input)
	return &applied, err
}

func (r *namespaceResolver) Defaults(ctx context.Context, obj *metadef.Namespace) ([]*metadef.DefaultRule, error) {
	return defaultsOfNamespace.Load(ctx, r.Store, obj)
}
