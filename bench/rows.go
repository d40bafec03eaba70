package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// canonical returns a part of an answer in a form that is the same for Cadastre
// and for PostGraphile: without nulls and empty texts, connections as the lists
// of their nodes, lists sorted, and JSON that is kept as text read.
func canonical(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if nodes, ok := value["nodes"]; ok && len(value) == 1 {
			return canonical(nodes)
		}
		out := map[string]any{}
		for name, member := range value {
			if member = canonical(member); member != nil {
				out[name] = member
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, member := range value {
			out[i] = canonical(member)
		}
		slices.SortFunc(out, func(a, b any) int { return strings.Compare(canonicalText(a), canonicalText(b)) })
		return out
	case string:
		if value == "" {
			return nil
		}
		var read any
		if strings.ContainsAny(value[:1], "{[") && json.Unmarshal([]byte(value), &read) == nil {
			return canonical(read)
		}
	}
	return value
}

// canonicalText returns what canonical returned as a text.
func canonicalText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return string(text)
}

// rowsAt returns the canonical texts of a list in the data of an answer, sorted.
// An element whose only member is named like the step behind the list stands for
// that member.
func rowsAt(data json.RawMessage, path []string, member string) ([]string, error) {
	if _, err := length(data, path); err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	for _, name := range path {
		value = value.(map[string]any)[name]
	}
	var rows []string
	for _, element := range value.([]any) {
		if object, ok := element.(map[string]any); ok && member != "" {
			element = object[member]
		}
		rows = append(rows, canonicalText(canonical(element)))
	}
	slices.Sort(rows)
	return rows, nil
}

// sameRows returns an error unless rows of a peer are all Cadastre's.
func sameRows(own, peers []string) error {
	for i := range min(len(own), len(peers)) {
		if own[i] != peers[i] {
			return fmt.Errorf("other rows than Cadastre: %s", difference([]byte(own[i]), []byte(peers[i])))
		}
	}
	if len(own) != len(peers) {
		return fmt.Errorf("%d rows, and Cadastre has %d", len(peers), len(own))
	}
	return nil
}

// postgraphile returns the comparison with a query of PostGraphile, whose list is
// at a path with dots.
func postgraphile(path, query string) *comparison {
	return &comparison{
		with: postgraphilePeer, exact: true,
		call: func(context.Context, *target) (call, error) { return graphQL(request{Query: query}) },
		check: func(_ context.Context, own *series, answer []byte) error {
			return sameList(own, answer, strings.Split(path, "."), "")
		},
	}
}

// graphQL returns the call of a request.
func graphQL(r request) (call, error) {
	body, err := r.body()
	return call{method: "POST", path: "/graphql", body: body}, err
}

// sameList compares the list of Cadastre's answer with one of PostGraphile's.
func sameList(own *series, answer []byte, path []string, member string) error {
	ownData, err := dataOf(own.answer)
	if err != nil {
		return err
	}
	data, err := dataOf(answer)
	if err != nil {
		return err
	}
	wanted, err := rowsAt(ownData, own.work.list, "")
	if err != nil {
		return err
	}
	rows, err := rowsAt(data, path, member)
	if err != nil {
		return err
	}
	return sameRows(wanted, rows)
}

// resourceOfPostGraphile is the fragment of what works select of a resource.
const resourceOfPostGraphile = ` fragment resource on Resource {
	uuid name type: resourceTypeByResourceTypeId { name } projectId visibility
	metadata: metadataItemsByResourceId(orderBy: [KEY_ASC]) { nodes { key value userModifiable } }
}`

// pairByPostGraphile returns the comparison with the resources that hold the rare
// pair, which PostGraphile finds by the index that Cadastre uses.
func pairByPostGraphile() *comparison {
	const query = `query($key: String!, $hash: BigInt!) {
		items: allMetadataItems(first: 50, condition: {key: $key, valueHash: $hash}) { nodes { resource: resourceByResourceId { ...resource } } }
	}` + resourceOfPostGraphile
	return &comparison{
		with: postgraphilePeer, exact: true,
		call: func(ctx context.Context, peer *target) (call, error) {
			hash, err := peer.cluster.Text(ctx, peer.storage, "SELECT value_hash FROM metadata_items WHERE key = $1 AND value = $2 LIMIT 1", rarePair().key, rarePair().value)
			if err != nil {
				return call{}, err
			}
			return graphQL(request{Query: query, Variables: object{"key": rarePair().key, "hash": hash}})
		},
		check: func(_ context.Context, own *series, answer []byte) error {
			return sameList(own, answer, []string{"items", "nodes"}, "resource")
		},
	}
}

// candidatesOfPlacement returns the question for candidates as the reference
// placement is asked it.
func candidatesOfPlacement(context.Context, *target) (call, error) {
	var resources []string
	for _, amount := range usualInstance() {
		resources = append(resources, fmt.Sprintf("%v:%v", amount["resourceClass"], amount["amount"]))
	}
	query := url.Values{"limit": {"1000"}, "resources": {strings.Join(resources, ",")}, "required": commonTraits()[:1]}
	return call{method: "GET", path: "/allocation_candidates?" + query.Encode()}, nil
}

// candidate is one on one provider, with everything that an answer tells of it.
type candidate struct {
	Provider, Parent, Root string
	Resources              map[string]int
	Mappings               map[string][]string
	Inventories            map[string]capacity
	Traits                 []string
}

type capacity struct{ Capacity, Used int }

// sameCandidates returns an error when the reference placement has other
// candidates. Which come first is its own choice, so each of them is looked up
// among all that Cadastre has.
func sameCandidates(ctx context.Context, own *series, answer []byte) error {
	theirs, err := placementCandidates(answer)
	if err != nil {
		return err
	}
	if len(theirs) != own.rows {
		return fmt.Errorf("%d candidates, and Cadastre has %d", len(theirs), own.rows)
	}
	ours, err := allCandidates(ctx, own)
	if err != nil {
		return err
	}
	for uuid, text := range theirs {
		if ours[uuid] == "" {
			return fmt.Errorf("a candidate that Cadastre does not have: %s", text)
		}
		if ours[uuid] != text {
			return fmt.Errorf("another candidate than Cadastre: %s", difference([]byte(ours[uuid]), []byte(text)))
		}
	}
	return nil
}

// placementCandidates returns the candidates of an answer of the reference
// placement, as texts by their provider.
func placementCandidates(answer []byte) (map[string]string, error) {
	var read struct {
		Requests []struct {
			Allocations map[string]struct{ Resources map[string]int }
			Mappings    map[string][]string
		} `json:"allocation_requests"`
		Summaries map[string]struct {
			Resources map[string]capacity
			Traits    []string
			Parent    string `json:"parent_provider_uuid"`
			Root      string `json:"root_provider_uuid"`
		} `json:"provider_summaries"`
	}
	if err := json.Unmarshal(answer, &read); err != nil {
		return nil, fmt.Errorf("read the candidates: %w", err)
	}
	all := map[string]string{}
	for _, request := range read.Requests {
		for uuid, allocation := range request.Allocations {
			summary := read.Summaries[uuid]
			slices.Sort(summary.Traits)
			all[uuid] = candidateText(candidate{
				Provider: uuid, Parent: summary.Parent, Root: summary.Root, Resources: allocation.Resources,
				Mappings: request.Mappings, Inventories: summary.Resources, Traits: summary.Traits,
			})
		}
	}
	return all, nil
}

// allCandidates returns all candidates that Cadastre has, page after page, as
// texts by their provider.
func allCandidates(ctx context.Context, own *series) (map[string]string, error) {
	asked := own.work.request(own.target.world, 0)
	asked.Query = candidatesOf(fullCandidates + ` pageInfo { hasNextPage endCursor }`)
	all := map[string]string{}
	for {
		var answer struct {
			AllocationCandidates struct {
				Nodes     []candidateNode
				Summaries []candidateSummary `json:"providerSummaries"`
				PageInfo  struct {
					HasNextPage bool
					EndCursor   string
				}
			}
		}
		if err := own.target.server.ask(ctx, asked, &answer); err != nil {
			return nil, err
		}
		read := answer.AllocationCandidates
		summaries := map[string]candidateSummary{}
		for _, summary := range read.Summaries {
			summaries[summary.Provider.UUID] = summary
		}
		for _, node := range read.Nodes {
			if len(node.Allocations) != 1 {
				return nil, errors.New("a candidate on several providers")
			}
			uuid := node.Allocations[0].Provider.UUID
			all[uuid] = candidateText(node.with(summaries[uuid]))
		}
		if !read.PageInfo.HasNextPage {
			return all, nil
		}
		variables := object{"after": read.PageInfo.EndCursor}
		for name, value := range asked.Variables {
			if name != "after" {
				variables[name] = value
			}
		}
		asked.Variables = variables
	}
}

type named struct{ UUID string }

type candidateNode struct {
	Allocations []struct {
		Provider  named
		Resources []struct {
			ResourceClass string
			Amount        int
		}
	}
	Mappings []struct {
		Suffix    string
		Providers []named
	}
}

type candidateSummary struct {
	Provider struct {
		named
		Parent, Root *named
	}
	Inventories []struct {
		ResourceClass  string
		Capacity, Used int
	}
	Traits []string
}

// with returns the candidate of a node and the summary of its provider.
func (n candidateNode) with(summary candidateSummary) candidate {
	of := n.Allocations[0]
	c := candidate{
		Provider: of.Provider.UUID, Resources: map[string]int{}, Mappings: map[string][]string{},
		Inventories: map[string]capacity{}, Traits: slices.Sorted(slices.Values(summary.Traits)),
	}
	if summary.Provider.Parent != nil {
		c.Parent = summary.Provider.Parent.UUID
	}
	if summary.Provider.Root != nil {
		c.Root = summary.Provider.Root.UUID
	}
	for _, resource := range of.Resources {
		c.Resources[resource.ResourceClass] = resource.Amount
	}
	for _, mapping := range n.Mappings {
		for _, provider := range mapping.Providers {
			c.Mappings[mapping.Suffix] = append(c.Mappings[mapping.Suffix], provider.UUID)
		}
	}
	for _, inventory := range summary.Inventories {
		c.Inventories[inventory.ResourceClass] = capacity{inventory.Capacity, inventory.Used}
	}
	return c
}

func candidateText(c candidate) string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // texts and numbers
	}
	return string(text)
}
