package placement

import (
	"maps"
	"slices"
)

// ProviderSummaries are all providers of every tree that has a provider in the candidates, be it in their
// allocations or in their mappings, with inventories or without. Trees come by their root's uuid, providers
// by their path of uuids. A sharing provider brings its own tree.
func ProviderSummaries(w *World, candidates []Candidate) []*Provider {
	roots := map[string]bool{}
	add := func(uuid string) {
		if t := w.treeOf(uuid); t != nil {
			roots[t.root] = true
		}
	}
	for _, c := range candidates {
		for _, allocation := range c.Allocations {
			add(allocation.Provider)
		}
		for _, mapping := range c.Mappings {
			for _, uuid := range mapping.Providers {
				add(uuid)
			}
		}
	}
	var summaries []*Provider
	for _, root := range slices.Sorted(maps.Keys(roots)) {
		summaries = append(summaries, w.Tree(root)...)
	}
	return summaries
}
