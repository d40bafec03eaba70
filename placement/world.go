package placement

import (
	"cmp"
	"iter"
	"slices"
)

// TraitShares marks a provider whose inventories may be used from every tree with a provider in one of its
// aggregates.
const TraitShares = "MISC_SHARES_VIA_AGGREGATE"

// World is everything the decision needs to know, as one immutable value: readers share it without waiting,
// and a change makes a new World that shares what it did not touch. Providers have dense ids; per resource
// class there is a column of free capacity by id, per trait and per aggregate a set of ids; trees are lists
// in pre-order, children by uuid, so that "in the subtree of" is two comparisons. Per aggregate the roots it
// reaches and the sharing providers in it are kept, which is the whole of sharing.
type World struct {
	traitNames sorted[bool] // names that exist
	classNames sorted[bool]

	nodes  array[*node]
	limit  int32   // ids given out so far, vacant ones included
	vacant []int32 // ids free for reuse

	byUUID sorted[int32]
	byName sorted[int32]
	trees  sorted[*tree] // by the root's uuid

	traits       interned
	classes      interned
	aggregates   interned
	traitMembers array[bitset]    // by trait
	columns      array[column]    // by class
	aggregated   array[aggregate] // by aggregate

	orphans []int32 // providers whose parent is not known (yet); each is the root of its tree
}

// Names are the traits and resource classes that exist, standard and custom.
type Names struct {
	Traits          []string
	ResourceClasses []string
}

// Update is what became different: whole new states of providers (new ones included), deleted uuids, and
// names that came or went. Deletions are applied first.
type Update struct {
	Providers []Provider
	Deleted   []string
	Added     Names
	Removed   Names
}

// column is the room per provider in one resource class: 0 without inventory, else 1 more than what is free.
type column struct{ rooms array[int64] }

// node is a provider as the decision reads it.
type node struct {
	provider   *Provider
	id         int32
	tree       *tree
	place      int32 // in tree.members
	sharing    bool
	traits     []int32 // sorted ids
	aggregates []int32
	stocks     []stock
}

// stock is one inventory of a node.
type stock struct {
	class            int32
	free             int64
	minUnit, maxUnit int64
	stepSize         int64
}

// tree is one tree of providers in pre-order.
type tree struct {
	root       string  // uuid
	members    []int32 // ids; a parent before its children, children by uuid
	ends       []int32 // per member: the place after its last descendant
	parents    []int32 // per member: the place of its parent, -1 for the root
	aggregates []int32 // sorted ids of every aggregate of any member
}

// aggregate is who is in it and what that connects.
type aggregate struct {
	members bitset
	sharers []int32       // sorted ids of sharing providers in it
	roots   sorted[int32] // by uuid: roots of the trees with any member in it
}

// NewWorld builds a World. It keeps the providers' lists, which must not be changed afterwards.
func NewWorld(names Names, providers []Provider) *World {
	return new(World).With(Update{Providers: providers, Added: names})
}

// Provider is the provider of a canonical uuid.
func (w *World) Provider(uuid string) (*Provider, bool) {
	if id, found := w.byUUID.get(uuid); found {
		return w.nodes.at(id).provider, true
	}
	return nil, false
}

// ProviderNamed is the provider of a name.
func (w *World) ProviderNamed(name string) (*Provider, bool) {
	if id, found := w.byName.get(name); found {
		return w.nodes.at(id).provider, true
	}
	return nil, false
}

// Providers yields every provider by name.
func (w *World) Providers() iter.Seq[*Provider] {
	return func(yield func(*Provider) bool) {
		for _, id := range w.byName.all() {
			if !yield(w.nodes.at(id).provider) {
				return
			}
		}
	}
}

// Len is the number of providers.
func (w *World) Len() int { return w.byUUID.size }

// Children are the providers directly below one, by uuid; none for an unknown uuid.
func (w *World) Children(uuid string) []*Provider {
	id, found := w.byUUID.get(uuid)
	if !found {
		return nil
	}
	var children []*Provider
	n := w.nodes.at(id)
	for place := n.place + 1; place < n.tree.ends[n.place]; place = n.tree.ends[place] {
		children = append(children, w.nodes.at(n.tree.members[place]).provider)
	}
	return children
}

// Tree is every provider of the tree that holds the uuid, parents before children and children by uuid; none
// for an unknown uuid.
func (w *World) Tree(uuid string) []*Provider {
	id, found := w.byUUID.get(uuid)
	if !found {
		return nil
	}
	members := w.nodes.at(id).tree.members
	providers := make([]*Provider, len(members))
	for i, member := range members {
		providers[i] = w.nodes.at(member).provider
	}
	return providers
}

// HasTrait says whether a trait of this name exists.
func (w *World) HasTrait(name string) bool { return w.traitNames.has(name) }

// HasResourceClass says whether a resource class of this name exists.
func (w *World) HasResourceClass(name string) bool { return w.classNames.has(name) }

// Names are the traits and resource classes that exist, sorted.
func (w *World) Names() Names {
	return Names{Traits: w.traitNames.keys(), ResourceClasses: w.classNames.keys()}
}

// covers says whether the other node is this one or lies below it.
func (n *node) covers(other *node) bool {
	return n.tree == other.tree && n.place <= other.place && other.place < n.tree.ends[n.place]
}

// stock is the node's inventory of a class, nil if it has none.
func (n *node) stock(class int32) *stock {
	for i := range n.stocks {
		if n.stocks[i].class == class {
			return &n.stocks[i]
		}
	}
	return nil
}

// fits is the test of one amount on one inventory (Placement reference: capacity including use, min_unit,
// max_unit and step_size).
func (s *stock) fits(amount int64) bool {
	return s != nil && amount <= s.free && s.minUnit <= amount && amount <= s.maxUnit &&
		(s.stepSize <= 1 || amount%s.stepSize == 0)
}

// path are the uuids from the root down to the node.
func (w *World) path(n *node) []string {
	depth := 0
	for place := n.place; place >= 0; place = n.tree.parents[place] {
		depth++
	}
	path := make([]string, depth)
	for place := n.place; place >= 0; place = n.tree.parents[place] {
		depth--
		path[depth] = w.nodes.at(n.tree.members[place]).provider.UUID
	}
	return path
}

// comparePlaces orders nodes by their paths of uuids.
func comparePlaces(a, b *node) int {
	if a.tree == b.tree {
		return cmp.Compare(a.place, b.place)
	}
	return cmp.Compare(a.tree.root, b.tree.root)
}

// reaches says whether the node may be used from an anchor's tree: its own, or, for a sharing provider, one
// with any provider in one of its aggregates.
func (n *node) reaches(anchor *tree) bool {
	if n.tree == anchor {
		return true
	}
	return n.sharing && intersects(n.aggregates, anchor.aggregates)
}

// intersects says whether two sorted lists share an element.
func intersects(a, b []int32) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == b[0]:
			return true
		case a[0] < b[0]:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return false
}

// insertSorted and removeSorted make a new list; the given one may be shared.
func insertSorted(list []int32, id int32) []int32 {
	i, found := slices.BinarySearch(list, id)
	if found {
		return list
	}
	return slices.Insert(slices.Clip(list), i, id)
}

func removeSorted(list []int32, id int32) []int32 {
	i, found := slices.BinarySearch(list, id)
	if !found {
		return list
	}
	return slices.Concat(list[:i], list[i+1:])
}
