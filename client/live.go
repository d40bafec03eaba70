package client

import (
	"context"
	"encoding/json"
	"iter"
)

// The subscriptions behind the functions below, as the server gets them.
const (
	followResources = `subscription ResourceChanges($uuids: [UUID!], $after: String) {
  resourceChanged(uuids: $uuids, after: $after) { cursor change { kind key what changedAt } resource { uuid name revision } }
}`
	followNamespaces = `subscription NamespaceChanges($names: [String!], $after: String) {
  namespaceChanged(names: $names, after: $after) { cursor change { kind key what changedAt } namespace { name revision } }
}`
	followProviders = `subscription ProviderChanges($uuids: [UUID!], $after: String) {
  resourceProviderChanged(uuids: $uuids, after: $after) { cursor change { kind key what changedAt } resourceProvider { uuid name generation } }
}`
	followCapacity = `subscription CapacityChanges($filter: ResourceProviderFilter, $groupBy: CapacityGrouping!, $resourceClasses: [String!], $after: String) {
  capacityChanged(filter: $filter, groupBy: $groupBy, resourceClasses: $resourceClasses, after: $after) {
    cursor
    capacity(first: 1000) { nodes { resourceClass aggregate trait root { uuid name } total reserved capacity used free shareUsed providers } }
  }
}`
	followCandidates = `subscription CandidateChanges($resources: [ResourceAmountInput!], $requiredAll: [String!], $requiredAny: [String!], $requiredAnySets: [TraitSetInput!], $forbidden: [String!], $memberOf: [AggregateFilter!], $inTree: UUID, $groups: [RequestGroupInput!], $groupPolicy: GroupPolicy! = NONE, $sameSubtree: [SubtreeInput!], $rootRequired: [String!], $rootForbidden: [String!], $hosts: ResourceFilter, $first: Int, $after: String) {
  allocationCandidatesChanged(resources: $resources, requiredAll: $requiredAll, requiredAny: $requiredAny, requiredAnySets: $requiredAnySets, forbidden: $forbidden, memberOf: $memberOf, inTree: $inTree, groups: $groups, groupPolicy: $groupPolicy, sameSubtree: $sameSubtree, rootRequired: $rootRequired, rootForbidden: $rootForbidden, hosts: $hosts, after: $after) {
    cursor
    allocationCandidates(first: $first) {
      totalCount totalCountIsExact
      nodes { allocations { provider { uuid name } resources { resourceClass amount } } mappings { suffix providers { uuid name } } }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    }
  }
}`
)

// ResourceChange is a change of a resource.
type ResourceChange struct {
	// Cursor is the position behind the change: the argument after of a function
	// that is to go on there.
	Cursor string `json:"cursor"`
	Change Change `json:"change"`
	// Resource is as it is now; nil when it is gone.
	Resource *struct {
		UUID     string `json:"uuid"`
		Name     string `json:"name"`
		Revision int    `json:"revision"`
	} `json:"resource"`
}

// NamespaceChange is a change of a namespace, or of what is in it.
type NamespaceChange struct {
	Cursor string `json:"cursor"`
	Change Change `json:"change"`
	// Namespace is as it is now; nil when it is gone.
	Namespace *struct {
		Name     string `json:"name"`
		Revision int    `json:"revision"`
	} `json:"namespace"`
}

// ProviderChange is a change of a resource provider, or of how much of it is used.
type ProviderChange struct {
	Cursor string `json:"cursor"`
	Change Change `json:"change"`
	// ResourceProvider is as it is now; nil when it is gone.
	ResourceProvider *struct {
		UUID       string `json:"uuid"`
		Name       string `json:"name"`
		Generation int64  `json:"generation"`
	} `json:"resourceProvider"`
}

// CapacityChange are the sums of capacity as they have become: at most the first
// thousand.
type CapacityChange struct {
	Cursor   string `json:"cursor"`
	Capacity struct {
		Nodes []*Capacity `json:"nodes"`
	} `json:"capacity"`
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
	Hosts           *ResourceFilter        `json:"hosts,omitempty"`
	// First is how many candidates an event shows at most, from 0 to 1000; nil is 50.
	First *int `json:"first,omitempty"`
}

// CandidateChange are the candidates for a request as they have become.
type CandidateChange struct {
	Cursor               string      `json:"cursor"`
	AllocationCandidates *Candidates `json:"allocationCandidates"`
}

// ResourceChanges follows the changes of the resources of some uuids, nil for all:
// those behind a cursor and then those that come, or with nil those that come. See
// Follow for how it ends.
func ResourceChanges(ctx context.Context, c *Client, uuids []string, after *string) iter.Seq2[*ResourceChange, error] {
	return changesOf[ResourceChange](ctx, c, followResources, behind(after, "uuids", uuids))
}

// NamespaceChanges follows the changes of the namespaces of some names, nil for all,
// as ResourceChanges does those of resources.
func NamespaceChanges(ctx context.Context, c *Client, names []string, after *string) iter.Seq2[*NamespaceChange, error] {
	return changesOf[NamespaceChange](ctx, c, followNamespaces, behind(after, "names", names))
}

// ProviderChanges follows the changes of the resource providers of some uuids, nil
// for all, as ResourceChanges does those of resources.
func ProviderChanges(ctx context.Context, c *Client, uuids []string, after *string) iter.Seq2[*ProviderChange, error] {
	return changesOf[ProviderChange](ctx, c, followProviders, behind(after, "uuids", uuids))
}

// CapacityChanges follows what Capacities returns: the sums as they are now, or with
// a cursor as soon as they are others, and then each time that they are.
func CapacityChanges(ctx context.Context, c *Client, filter *ResourceProviderFilter, groupBy CapacityGrouping, resourceClasses []string, after *string) iter.Seq2[*CapacityChange, error] {
	variables := behind(after, "resourceClasses", resourceClasses)
	variables["groupBy"] = groupBy
	if filter != nil {
		variables["filter"] = filter
	}
	return changesOf[CapacityChange](ctx, c, followCapacity, variables)
}

// CandidateChanges follows what FindCandidates returns: the candidates as they are
// now, or with a cursor as soon as they are others, and then each time that they are.
func CandidateChanges(ctx context.Context, c *Client, request CandidateRequest, after *string) iter.Seq2[*CandidateChange, error] {
	variables, err := variablesOf(request)
	if err != nil {
		return func(yield func(*CandidateChange, error) bool) { yield(nil, err) }
	}
	if after != nil {
		variables["after"] = *after
	}
	return changesOf[CandidateChange](ctx, c, followCandidates, variables)
}

// variablesOf returns the members of a value as variables.
func variablesOf(value any) (variables map[string]any, err error) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &variables)
	}
	return variables, err
}

// behind returns the variables of a subscription that begins behind a cursor.
func behind(after *string, name string, list []string) map[string]any {
	variables := map[string]any{}
	if after != nil {
		variables["after"] = *after
	}
	if list != nil {
		variables[name] = list
	}
	return variables
}

// changesOf follows a subscription and returns the field of each event.
func changesOf[E any](ctx context.Context, c *Client, document string, variables map[string]any) iter.Seq2[*E, error] {
	return func(yield func(*E, error) bool) {
		for data, err := range Follow[map[string]*E](ctx, c, document, variables) {
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
