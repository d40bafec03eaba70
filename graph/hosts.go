package graph

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
)

// preferencesOf returns preferences with their hosts looked up. It adds the
// problems of filters, with paths below path. Of more than
// placement.MaxPreferences it looks up none, so that the caller can refuse
// them.
func (r *Resolver) preferencesOf(ctx context.Context, path string, asked []*model.PreferenceInput,
	problems *problem.Problems) ([]placement.Preference, error) {
	preferences := make([]placement.Preference, len(asked))
	if len(asked) > placement.MaxPreferences {
		return preferences, nil
	}
	for i, one := range asked {
		p := &preferences[i]
		*p = placement.Preference{Trait: valueOf(one.Trait.Value()),
			Aggregate: valueOf(one.Aggregate.Value()), Weight: one.Weight}
		filter := one.Hosts.Value()
		hosts, err := r.hostsOf(ctx, problem.Index(path, i)+".hosts", filter, problems)
		if err != nil {
			return nil, err
		}
		if p.Hosts = hosts; filter != nil && hosts == nil { // invalid
			p.Hosts = &placement.Hosts{}
		}
	}
	return preferences, nil
}

// hostsOf returns the hosts whose resources match a filter, or nil for a nil or
// an invalid filter. It adds the filter's problems, with paths below path.
func (r *Resolver) hostsOf(ctx context.Context, path string, filter *resource.Filter,
	problems *problem.Problems) (*placement.Hosts, error) {
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
