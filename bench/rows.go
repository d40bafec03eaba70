package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
			return callWithHash(ctx, peer, query, rarePair())
		},
		check: func(_ context.Context, own *series, answer []byte) error {
			return sameList(own, answer, []string{"items", "nodes"}, "resource")
		},
	}
}

// numberByPostGraphile returns the comparison with how many items are the frequent
// pair, which a resource has once.
func numberByPostGraphile() *comparison {
	const query = `query($key: String!, $hash: BigInt!) { resources: allMetadataItems(condition: {key: $key, valueHash: $hash}) { totalCount } }`
	return &comparison{
		with: postgraphilePeer, exact: true,
		call: func(ctx context.Context, peer *target) (call, error) {
			return callWithHash(ctx, peer, query, commonPair())
		},
		check: func(_ context.Context, own *series, answer []byte) error {
			ownData, err := dataOf(own.answer)
			if err != nil {
				return err
			}
			data, err := dataOf(answer)
			if err != nil {
				return err
			}
			return sameRows([]string{canonicalText(ownData)}, []string{canonicalText(data)})
		},
	}
}

// callWithHash returns the call of a query with the key of a pair, and the hash of
// its value that Cadastre keeps.
func callWithHash(ctx context.Context, peer *target, query string, of pair) (call, error) {
	hash, err := peer.cluster.Text(ctx, peer.storage, "SELECT value_hash FROM metadata_items WHERE key = $1 AND value = $2 LIMIT 1", of.key, of.value)
	if err != nil {
		return call{}, err
	}
	return graphQL(request{Query: query, Variables: object{"key": of.key, "hash": hash}})
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

// candidateTexts are the candidates of an answer as texts, and every provider that
// it tells of as a text by its uuid.
type candidateTexts struct {
	candidates map[string]bool
	providers  map[string]string
}

// candidate is what takes what from whom.
type candidate struct {
	Resources map[string]map[string]int // by provider and class
	Mappings  map[string][]string
}

// summarized is what an answer tells of a provider.
type summarized struct {
	Parent, Root string
	Inventories  map[string]capacity
	Traits       []string
}

type capacity struct{ Capacity, Used int }

// sameCandidates returns an error when the reference placement has other
// candidates, or tells other things of their providers. Which candidates come
// first is its own choice, so each of them is looked up among all that Cadastre
// has.
func sameCandidates(ctx context.Context, own *series, answer []byte) error {
	theirs, err := placementCandidates(answer)
	if err != nil {
		return err
	}
	if len(theirs.candidates) != own.rows {
		return fmt.Errorf("%d candidates, and Cadastre has %d", len(theirs.candidates), own.rows)
	}
	ours, err := allCandidates(ctx, own)
	if err != nil {
		return err
	}
	for text := range theirs.candidates {
		if !ours.candidates[text] {
			return fmt.Errorf("a candidate that Cadastre does not have: %s", text)
		}
	}
	for uuid, text := range theirs.providers {
		if ours.providers[uuid] != text {
			return fmt.Errorf("provider %s is another one than Cadastre's: %s", uuid, difference([]byte(ours.providers[uuid]), []byte(text)))
		}
	}
	return nil
}

// placementCandidates returns the candidates of an answer of the reference
// placement.
func placementCandidates(answer []byte) (*candidateTexts, error) {
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
	all := &candidateTexts{map[string]bool{}, map[string]string{}}
	for _, request := range read.Requests {
		one := candidate{Resources: map[string]map[string]int{}, Mappings: request.Mappings}
		for uuid, allocation := range request.Allocations {
			one.Resources[uuid] = allocation.Resources
		}
		all.candidates[textOf(one)] = true
	}
	for uuid, summary := range read.Summaries {
		all.providers[uuid] = textOf(summarized{Parent: summary.Parent, Root: summary.Root, Inventories: summary.Resources, Traits: slices.Sorted(slices.Values(summary.Traits))})
	}
	return all, nil
}

// allCandidates returns all candidates that Cadastre has, page after page.
func allCandidates(ctx context.Context, own *series) (*candidateTexts, error) {
	asked := own.work.request(own.target.world, 0)
	asked.Query = strings.Replace(asked.Query, fullCandidates, fullCandidates+` pageInfo { hasNextPage endCursor }`, 1)
	all := &candidateTexts{map[string]bool{}, map[string]string{}}
	for {
		var answer struct{ AllocationCandidates candidatePage }
		if err := own.target.server.ask(ctx, asked, &answer); err != nil {
			return nil, err
		}
		page := answer.AllocationCandidates
		page.addTo(all)
		if !page.PageInfo.HasNextPage {
			return all, nil
		}
		variables := maps.Clone(asked.Variables)
		variables["after"] = page.PageInfo.EndCursor
		asked.Variables = variables
	}
}

// candidatePage is a page of candidates as Cadastre answers it.
type candidatePage struct {
	Nodes []struct {
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
	Summaries []struct {
		Provider struct {
			named
			Parent, Root *named
		}
		Inventories []struct {
			ResourceClass  string
			Capacity, Used int
		}
		Traits []string
	} `json:"providerSummaries"`
	PageInfo struct {
		HasNextPage bool
		EndCursor   string
	}
}

type named struct{ UUID string }

// addTo adds what a page has.
func (p *candidatePage) addTo(all *candidateTexts) {
	for _, node := range p.Nodes {
		one := candidate{Resources: map[string]map[string]int{}, Mappings: map[string][]string{}}
		for _, allocation := range node.Allocations {
			one.Resources[allocation.Provider.UUID] = map[string]int{}
			for _, resource := range allocation.Resources {
				one.Resources[allocation.Provider.UUID][resource.ResourceClass] = resource.Amount
			}
		}
		for _, mapping := range node.Mappings {
			for _, provider := range mapping.Providers {
				one.Mappings[mapping.Suffix] = append(one.Mappings[mapping.Suffix], provider.UUID)
			}
		}
		all.candidates[textOf(one)] = true
	}
	for _, summary := range p.Summaries {
		one := summarized{Inventories: map[string]capacity{}, Traits: slices.Sorted(slices.Values(summary.Traits))}
		if summary.Provider.Parent != nil {
			one.Parent = summary.Provider.Parent.UUID
		}
		if summary.Provider.Root != nil {
			one.Root = summary.Provider.Root.UUID
		}
		for _, inventory := range summary.Inventories {
			one.Inventories[inventory.ResourceClass] = capacity{inventory.Capacity, inventory.Used}
		}
		all.providers[summary.Provider.UUID] = textOf(one)
	}
}

// textOf returns a value of texts and numbers as a text.
func textOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}
