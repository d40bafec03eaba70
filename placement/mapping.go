package placement

import (
	"cmp"
	"slices"
)

// Mapping names the providers that serve a request group; the suffix of the
// unsuffixed group is "".
type Mapping struct {
	Suffix    string
	Providers []string // uuids
}

// MaxMappedProviders is the maximum number of providers in the mappings of a
// consumer. A provider counts each time that it is listed, in one group or in
// several. A candidate has at most MaxResources providers for the unsuffixed
// group and one for each other group.
const MaxMappedProviders = 1000

func (v *validator) checkMappings(path string, mappings []Mapping) {
	v.require(mappings == nil || len(mappings) > 0, path, "must name at least one group")
	v.atMost(MaxGroups+1, path, len(mappings))
	seen := map[string]bool{}
	named := 0
	for i, mapping := range mappings {
		path := at(path, i)
		if mapping.Suffix != "" && !isSuffix(mapping.Suffix) {
			v.add(under(path, "suffix"), "must be empty or 1 to 64 of A-Z, a-z, 0-9, _ and -")
		} else {
			v.duplicate(seen, under(path, "suffix"), "duplicate suffix %q", mapping.Suffix)
		}
		path = under(path, "providers")
		v.require(len(mapping.Providers) > 0, path, "must name at least one provider")
		for k, provider := range mapping.Providers {
			v.checkUUID(at(path, k), provider)
		}
		named += len(mapping.Providers)
	}
	if named > MaxMappedProviders {
		v.add(path, "has %d providers, at most %d are allowed", named, MaxMappedProviders)
	}
}

// SortedMappings returns mappings in the order of candidates: the unsuffixed
// group first, then by suffix. The providers of each are sorted by uuid,
// without duplicates.
func SortedMappings(mappings []Mapping) []Mapping {
	sorted := make([]Mapping, len(mappings))
	for i, mapping := range mappings {
		providers := slices.Sorted(slices.Values(mapping.Providers))
		sorted[i] = Mapping{Suffix: mapping.Suffix, Providers: slices.Compact(providers)}
	}
	slices.SortFunc(sorted, func(a, b Mapping) int { return cmp.Compare(a.Suffix, b.Suffix) })
	return sorted
}

// checkMapped refuses mappings that name a provider that does not exist.
func (c *claimCheck) checkMapped(mappings []Mapping, path string) {
	for i, mapping := range mappings {
		for k, provider := range mapping.Providers {
			if c.providers[provider] == nil && !c.known.Provider(provider) {
				c.refusals.add(UnknownReference, at(under(at(path, i), "providers"), k),
					"resource provider %s does not exist", provider)
			}
		}
	}
}
