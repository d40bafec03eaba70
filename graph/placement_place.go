package graph

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
	"github.com/cadastre-dev/cadastre/resource"
	"github.com/cadastre-dev/cadastre/store"
)

// placingOf returns the placing of an input, with its hosts and the values of
// its capability looked up. If one of these is invalid, the error has all
// problems of the input. Otherwise the caller checks the rest.
func (r *Resolver) placingOf(ctx context.Context, input *model.PlaceInput) (placement.Placing, error) {
	asked := inOrder(*askedBy(input.Request), input.Preferences.Value(),
		input.Strategy, input.Seed, input.Shapes.Value())
	placing := placement.Placing{Request: asked.Request, Consumers: model.Values(input.Consumers), Atomic: input.Atomic,
		HoldFor: input.HoldFor.Value(), Policy: input.Policy.Value()}
	var problems problem.Problems
	var err error
	if placing.Request.Hosts, err = r.hostsOf(ctx, "input.request.hosts", asked.Hosts, &problems); err != nil {
		return placing, err
	}
	if placing.Request.Preferences, err = r.preferencesOf(ctx, "input.preferences",
		asked.Preferences, &problems); err != nil {
		return placing, err
	}
	if policy := placing.Policy; policy != nil && policy.Spread != nil && policy.Spread.Capability != nil {
		spread := *policy.Spread
		placing.Policy = &placement.Policy{Consumers: policy.Consumers, Group: policy.Group,
			Hosts: policy.Hosts, Spread: &spread}
		if spread.HostValues, err = r.Store.HostValues(ctx, "input.policy.spread.capability",
			*spread.Capability, &problems); err != nil {
			return placing, err
		}
	}
	if len(problems) > 0 {
		return placing, r.Store.CheckPlacing(ctx, &placing, problems)
	}
	return placing, nil
}

func askedBy(of *model.PlacementRequestInput) *model.CandidatesAsked {
	return candidatesAsked(of.Resources.Value(), of.RequiredAll.Value(),
		of.RequiredAny.Value(), of.RequiredAnySets.Value(),
		of.Forbidden.Value(), of.MemberOf.Value(), of.InTree.Value(),
		of.FirstOf.Value(), of.Groups.Value(), of.GroupPolicy,
		of.SameSubtree.Value(), of.RootRequired.Value(), of.RootForbidden.Value(),
		of.Tolerates.Value(), of.Hosts.Value())
}

// placedResults returns the outcomes of consumers to place, and registers the
// placed consumers.
func placedResults(ctx context.Context, request *placement.Request,
	outcomes []store.PlacedOutcome) []*model.PlaceResult {
	return lists.Map(outcomes, func(outcome store.PlacedOutcome) *model.PlaceResult {
		result := &model.PlaceResult{Consumer: registered(ctx, model.ConsumerOf(outcome.Row)),
			Errors: rowErrors(outcome.Problems), Terms: []*model.PreferenceTerm{},
			Alternatives: []*placement.GroupAlternative{}}
		if outcome.Row != nil {
			terms, score := model.TermsOf(request.Preferences, outcome.Holds)
			result.Score, result.Terms = &score, terms
			result.Alternatives = lists.Map(outcome.Alternatives,
				func(a placement.GroupAlternative) *placement.GroupAlternative { return &a })
		}
		return result
	})
}

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
