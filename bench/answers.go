package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cadastre-dev/cadastre/bench/local"
)

// sameAnswer returns an error unless the rows of a peer's answer are Cadastre's.
func sameAnswer(ctx context.Context, own, peer *series) error {
	if peer.target.peer == placementPeer {
		return sameCandidates(ctx, own, peer.answer)
	}
	wanted, err := rowsAt(own.answer, own.work.List, "")
	if err != nil {
		return err
	}
	rows, err := rowsAt(peer.answer, own.work.Peer.List, own.work.Peer.Member)
	if err != nil {
		return err
	}
	return sameRows(wanted, rows)
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

// rowsAt returns the canonical JSON of the elements of a list in an answer, sorted, at a path
// with dots; without a path, of the whole data. An element with the member that is
// named stands for that member.
func rowsAt(answer []byte, path, member string) ([]string, error) {
	data, err := dataOf(answer)
	if err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	if path == "" {
		return []string{textOf(canonical(value))}, nil
	}
	if count, err := length(data, path); err != nil || count == 0 {
		return nil, fmt.Errorf("the list at %s is empty: %w", path, err)
	}
	for name := range strings.SplitSeq(path, ".") {
		value = value.(map[string]any)[name]
	}
	var rows []string
	for _, element := range value.([]any) {
		if object, ok := element.(map[string]any); ok && member != "" {
			element = object[member]
		}
		rows = append(rows, textOf(canonical(element)))
	}
	slices.Sort(rows)
	return rows, nil
}

// canonical returns a part of an answer in a form that is the same for Cadastre
// and for PostGraphile: without nulls and empty strings, connections as the lists
// of their nodes, lists sorted, and JSON that is kept as a string decoded.
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
		slices.SortFunc(out, func(a, b any) int { return strings.Compare(textOf(a), textOf(b)) })
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

// textOf returns a value as JSON.
func textOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// candidates holds the candidates of an answer as JSON, and the JSON of each
// provider in the answer by its uuid.
type candidates struct {
	all       map[string]bool
	providers map[string]string
}

// candidate has the amounts by provider and class, and the providers of each
// group.
type candidate struct {
	Resources map[string]map[string]int
	Mappings  map[string][]string
}

// summary describes a provider.
type summary struct {
	Parent, Root string
	Inventories  map[string]capacity
	Traits       []string
}

type capacity struct{ Capacity, Used int }

// sameCandidates returns an error when the reference placement has other
// candidates, or describes their providers differently. Its order is its own, so
// each of its candidates is looked up among all that Cadastre has.
func sameCandidates(ctx context.Context, own *series, answer []byte) error {
	theirs, err := candidatesOfPlacement(answer)
	if err != nil {
		return err
	}
	if len(theirs.all) != own.rows {
		return fmt.Errorf("%d candidates, and Cadastre has %d", len(theirs.all), own.rows)
	}
	ours, err := allCandidates(ctx, own)
	if err != nil {
		return err
	}
	for text := range theirs.all {
		if !ours.all[text] {
			return fmt.Errorf("a candidate that Cadastre does not have: %s", text)
		}
	}
	for uuid, text := range theirs.providers {
		if ours.providers[uuid] != text {
			return fmt.Errorf("provider %s differs from Cadastre's: %s", uuid, difference([]byte(ours.providers[uuid]), []byte(text)))
		}
	}
	return nil
}

// candidatesOfPlacement reads an answer of the reference placement.
func candidatesOfPlacement(answer []byte) (*candidates, error) {
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
	out := &candidates{map[string]bool{}, map[string]string{}}
	for _, request := range read.Requests {
		one := candidate{map[string]map[string]int{}, request.Mappings}
		for uuid, allocation := range request.Allocations {
			one.Resources[uuid] = allocation.Resources
		}
		out.all[textOf(one)] = true
	}
	for uuid, of := range read.Summaries {
		out.providers[uuid] = textOf(summary{of.Parent, of.Root, of.Resources, slices.Sorted(slices.Values(of.Traits))})
	}
	return out, nil
}

// allCandidates returns all candidates that Cadastre has, page after page.
func allCandidates(ctx context.Context, own *series) (*candidates, error) {
	asked := own.work.request(own.target.world, 0)
	asked.Query = strings.Replace(asked.Query, "providerSummaries {", "pageInfo { hasNextPage endCursor } providerSummaries {", 1)
	out := &candidates{map[string]bool{}, map[string]string{}}
	for {
		var answer struct{ AllocationCandidates candidatePage }
		if err := own.target.operator.Ask(ctx, local.Request{Query: asked.Query, Variables: asked.Variables}, &answer); err != nil {
			return nil, err
		}
		page := answer.AllocationCandidates
		page.addTo(out)
		if !page.PageInfo.HasNextPage {
			return out, nil
		}
		asked.Variables = maps.Clone(asked.Variables)
		asked.Variables["after"] = page.PageInfo.EndCursor
	}
}

type named struct{ UUID string }

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
			Parent, Root named // zero for null
		}
		Inventories []struct {
			ResourceClass string
			capacity
		}
		Traits []string
	} `json:"providerSummaries"`
	PageInfo struct {
		HasNextPage bool
		EndCursor   string
	}
}

// addTo adds a page to candidates.
func (p *candidatePage) addTo(out *candidates) {
	for _, node := range p.Nodes {
		one := candidate{map[string]map[string]int{}, map[string][]string{}}
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
		out.all[textOf(one)] = true
	}
	for _, of := range p.Summaries {
		one := summary{of.Provider.Parent.UUID, of.Provider.Root.UUID, map[string]capacity{}, slices.Sorted(slices.Values(of.Traits))}
		for _, inventory := range of.Inventories {
			one.Inventories[inventory.ResourceClass] = inventory.capacity
		}
		out.providers[of.Provider.UUID] = textOf(one)
	}
}
