package client

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"iter"
	"maps"
)

// subscriptions has the documents of the functions below.
//
//go:embed operations/live/*.graphql
var subscriptions embed.FS

// ResourceChange is a change of a resource.
type ResourceChange struct {
	// Cursor is the position after the change. Pass it as after to continue
	// there.
	Cursor string `json:"cursor"`
	Change Change `json:"change"`
	// Resource is the current resource; nil if it is gone.
	Resource *struct {
		UUID     string `json:"uuid"`
		Name     string `json:"name"`
		Revision int    `json:"revision"`
	} `json:"resource"`
}

// NamespaceChange is a change of a namespace or its content.
type NamespaceChange struct {
	Cursor string `json:"cursor"`
	Change Change `json:"change"`
	// Namespace is the current namespace; nil if it is gone.
	Namespace *struct {
		Name     string `json:"name"`
		Revision int    `json:"revision"`
	} `json:"namespace"`
}

// ProviderChange is a change of a resource provider or its usage.
type ProviderChange struct {
	Cursor string `json:"cursor"`
	Change Change `json:"change"`
	// ResourceProvider is the current provider; nil if it is gone.
	ResourceProvider *struct {
		UUID       string `json:"uuid"`
		Name       string `json:"name"`
		Generation int64  `json:"generation"`
	} `json:"resourceProvider"`
}

// ConsumerChange is a change of a consumer, its allocations or its hold.
type ConsumerChange struct {
	Cursor string `json:"cursor"`
	Change Change `json:"change"`
	// Consumer is the current consumer; nil if it has no allocations.
	Consumer *struct {
		UUID       string `json:"uuid"`
		ProjectID  string `json:"projectId"`
		Generation int64  `json:"generation"`
	} `json:"consumer"`
}

// CapacityChange has the new sums of capacity: at most the first thousand.
type CapacityChange struct {
	Cursor   string `json:"cursor"`
	Capacity struct {
		Nodes []*Capacity `json:"nodes"`
	} `json:"capacity"`
}

// SurvivalChange has the new failures, the worst first.
type SurvivalChange struct {
	Cursor   string `json:"cursor"`
	Survives struct {
		TotalCount      int        `json:"totalCount"`
		UnsurvivedCount int        `json:"unsurvivedCount"`
		Nodes           []*Failure `json:"nodes"`
	} `json:"survives"`
}

// CandidateRequest is a request for allocation candidates; see the arguments of
// the field allocationCandidates of Query.
type CandidateRequest struct {
	Resources       []*ResourceAmountInput `json:"resources,omitempty"`
	RequiredAll     []string               `json:"requiredAll,omitempty"`
	RequiredAny     []string               `json:"requiredAny,omitempty"`
	RequiredAnySets []*TraitSetInput       `json:"requiredAnySets,omitempty"`
	Forbidden       []string               `json:"forbidden,omitempty"`
	MemberOf        []*AggregateFilter     `json:"memberOf,omitempty"`
	InTree          *string                `json:"inTree,omitempty"`
	Groups          []*RequestGroupInput   `json:"groups,omitempty"`
	GroupPolicy     GroupPolicy            `json:"groupPolicy,omitempty"`
	SameSubtree     []*SubtreeInput        `json:"sameSubtree,omitempty"`
	RootRequired    []string               `json:"rootRequired,omitempty"`
	RootForbidden   []string               `json:"rootForbidden,omitempty"`
	Tolerates       []string               `json:"tolerates,omitempty"`
	Hosts           *ResourceFilter        `json:"hosts,omitempty"`
	// First is the maximum number of candidates in an event, from 0 to 1000;
	// nil is 50.
	First *int `json:"first,omitempty"`
}

// CandidateChange has the new candidates for a request.
type CandidateChange struct {
	Cursor               string      `json:"cursor"`
	AllocationCandidates *Candidates `json:"allocationCandidates"`
}

// ResourceChanges follows the changes of the resources with these uuids, or of
// all for nil. With a cursor it begins with the changes after it, otherwise
// with new changes. See Follow for its end.
func ResourceChanges(ctx context.Context, c *Client, uuids []string, after *string) iter.Seq2[*ResourceChange, error] {
	return feedOf[ResourceChange](ctx, c, "ResourceChanges", map[string]any{"uuids": uuids}, after)
}

// NamespaceChanges follows the changes of the namespaces with these names, or
// of all for nil, like ResourceChanges.
func NamespaceChanges(ctx context.Context, c *Client, names []string,
	after *string) iter.Seq2[*NamespaceChange, error] {
	return feedOf[NamespaceChange](ctx, c, "NamespaceChanges", map[string]any{"names": names}, after)
}

// ProviderChanges follows the changes of the resource providers with these
// uuids, or of all for nil, like ResourceChanges.
func ProviderChanges(ctx context.Context, c *Client, uuids []string, after *string) iter.Seq2[*ProviderChange, error] {
	return feedOf[ProviderChange](ctx, c, "ProviderChanges", map[string]any{"uuids": uuids}, after)
}

// ConsumerChanges follows the changes of the consumers with these uuids, or of
// all for nil, like ResourceChanges.
func ConsumerChanges(ctx context.Context, c *Client, uuids []string, after *string) iter.Seq2[*ConsumerChange, error] {
	return feedOf[ConsumerChange](ctx, c, "ConsumerChanges", map[string]any{"uuids": uuids}, after)
}

// CapacityChanges follows the result of Capacities. It returns the sums each
// time that they change. Without a cursor it returns the current sums first.
func CapacityChanges(ctx context.Context, c *Client, filter *ResourceProviderFilter, groupBy CapacityGrouping,
	resourceClasses []string, after *string) iter.Seq2[*CapacityChange, error] {
	request := map[string]any{"filter": filter, "groupBy": groupBy, "resourceClasses": resourceClasses}
	return changesOf[CapacityChange](ctx, c, "CapacityChanges", request, after)
}

// FailureRequest is a request for failures; see the arguments of the field
// survives of Query.
type FailureRequest struct {
	By         FailureGrouping         `json:"by"`
	Capability *string                 `json:"capability,omitempty"`
	Filter     *ResourceProviderFilter `json:"filter,omitempty"`
	// First is the maximum number of failures in an event, from 0 to 1000; nil is 50.
	First *int `json:"first,omitempty"`
}

// SurvivalChanges follows the result of ListFailures. It returns the failures
// each time that they change. Without a cursor it returns the current failures
// first.
func SurvivalChanges(ctx context.Context, c *Client, request FailureRequest,
	after *string) iter.Seq2[*SurvivalChange, error] {
	return changesOf[SurvivalChange](ctx, c, "SurvivalChanges", request, after)
}

// CandidateChanges follows the result of FindCandidates. It returns the
// candidates each time that they change. Without a cursor it returns the
// current candidates first.
func CandidateChanges(ctx context.Context, c *Client, request CandidateRequest,
	after *string) iter.Seq2[*CandidateChange, error] {
	return changesOf[CandidateChange](ctx, c, "CandidateChanges", request, after)
}

// variablesOf returns the members of a request as variables. It omits null ones.
func variablesOf(request any) (variables map[string]any, err error) {
	text, err := json.Marshal(request)
	if err == nil {
		err = json.Unmarshal(text, &variables)
	}
	maps.DeleteFunc(variables, func(_ string, value any) bool { return value == nil })
	return variables, err
}

// feedOf is changesOf for the feed of changes. Without a cursor it begins after
// the latest change: a stream that is cut before its first event then skips
// nothing.
func feedOf[E any](ctx context.Context, c *Client, name string, request any, after *string) iter.Seq2[*E, error] {
	return func(yield func(*E, error) bool) {
		from := after
		if from == nil {
			latest, err := LatestChange(ctx, c, nil)
			if ctx.Err() != nil {
				return
			} else if err != nil {
				yield(nil, err)
				return
			}
			from = latest.Changes.Latest
		}
		changesOf[E](ctx, c, name, request, from)(yield)
	}
}

// changesOf follows a subscription with the members of a request as variables,
// and returns the field of each event.
func changesOf[E any](ctx context.Context, c *Client, name string, request any, after *string) iter.Seq2[*E, error] {
	return func(yield func(*E, error) bool) {
		document, err := subscriptions.ReadFile("operations/live/" + name + ".graphql")
		variables, invalid := variablesOf(request)
		if err = errors.Join(err, invalid); err != nil {
			yield(nil, err)
			return
		}
		if after != nil {
			variables["after"] = *after
		}
		for data, err := range Follow[map[string]*E](ctx, c, string(document), variables) {
			var event *E
			for _, field := range data { // there is one
				event = field
			}
			if !yield(event, err) {
				return
			}
		}
	}
}
