package graph

import (
	"context"

	"github.com/cadastre-dev/cadastre/graph/model"
	"github.com/cadastre-dev/cadastre/internal/lists"
	"github.com/cadastre-dev/cadastre/placement"
	"github.com/cadastre-dev/cadastre/problem"
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
		problems = append(problems, r.Store.CheckPlacing(&placing)...)
	}
	return placing, problems.Err()
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
