package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/metadef"
	"github.com/cadastre-dev/cadastre/resource"
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

func (r *queryResolver) MetadataProblems(ctx context.Context, filter *model.MetadataProblemFilter, first int, after *string, scan int) (*model.MetadataProblemConnection, error) {
	found, err := r.Store.MetadataProblems(ctx,
		resource.ProblemScan{Filter: model.ProblemFilterOf(filter), First: first, Scan: scan, After: after})
	return connectProblems(ctx, found), err
}
