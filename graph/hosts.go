package graph

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
)

// hostsOf returns the roots whose resources match a filter, or nil without a
// filter. It adds the filter's problems, with paths below path.
func (r *Resolver) hostsOf(ctx context.Context, path string, filter *resource.Filter, problems *problem.Problems) (*placement.Hosts, error) {
	if filter == nil {
		return nil, nil
	}
	resources, err := r.Store.Hosts(ctx, path, *filter)
	var invalid *problem.InvalidInput
	if errors.As(err, &invalid) {
		*problems = append(*problems, invalid.Problems...)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	asked, err := json.Marshal(filter)
	return &placement.Hosts{Filter: string(asked), Resources: resources}, err
}
