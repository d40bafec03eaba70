package main

import (
	"fmt"
	"slices"
)

// value returns the value for a $name in the n-th request of a work.
func (w *world) value(name string, n int) any {
	switch name {
	case "consumer": // another one in each request
		return w.uuid("consumer of a work", n)
	case "free": // a provider with room for a claim, another one in each request
		return w.freeProvider(n)
	case "empty": // the first provider without consumers
		return w.providers[slices.IndexFunc(w.providers, func(p provider) bool { return len(p.consumers) == 0 })].uuid
	case "aggregate": // of a third of the trees in the nested world
		return w.nestedAggregate(0)
	case "projects": // 40 of the projects that have resources
		var some []string
		for i := range 40 {
			some = append(some, project(i))
		}
		return some
	case "traits": // more rare traits than any host has
		var some []string
		for i := range rareTraitsEach + 3 {
			some = append(some, rareTrait(i))
		}
		return some
	}
	panic(fmt.Sprintf("works.yaml names the value $%s, which the world does not have", name))
}

// freeProvider returns the uuid of a provider with room for a claim: another one
// for each n up to the number of providers.
func (w *world) freeProvider(n int) string {
	const stride = 7_919 // a prime: consecutive claims are not on neighbours in the database
	for i := n * stride; ; i++ {
		if p := w.providers[i%len(w.providers)]; !p.full {
			return p.uuid
		}
	}
}
