package placement

import (
	"cmp"
	"iter"
	"slices"
)

// TraitShares marks a provider whose inventories may be used from every tree
// with a provider in one of its aggregates.
const TraitShares = "MISC_SHARES_VIA_AGGREGATE"

// World is all data for placement decisions, as one immutable value: readers
// share it without waiting, and an update makes a new World that shares the
// unchanged parts. Providers have dense ids. Each resource class has a column
// of free capacity by id, each trait and each aggregate a set of ids. Trees are
// lists in pre-order, children by uuid, so that "in the subtree of" is two
// comparisons. Each aggregate has the roots of the trees with a member in it
// and its sharing members, which is all that sharing needs.
type World struct {
	traitNames sortedMap[bool] // names that exist
	classNames sortedMap[bool]

	nodes     array[*node]
	resources array[int64] // row ids of linked resources, 0 for none; an array because Hosts scans it
	rootOf    array[int32] // id of the tree's root plus 1, 0 for none; an array because sets are computed from it
	idLimit   int32        // ids assigned so far, free ones included
	shape     *byte        // replaced by each change of more than use
	freeIDs   []int32      // ids of deleted providers, for reuse

	byUUID sortedMap[int32]
	byName sortedMap[int32]
	trees  sortedMap[*providerTree] // by the root's uuid

	traits         interner
	classes        interner
	aggregates     interner
	traitMembers   array[bitset]    // by trait
	columns        array[*column]   // by class
	picky          array[bitset]    // by class: providers with a minUnit or stepSize above 1, which restrict amounts
	aggregateIndex array[aggregate] // by aggregate

	orphans []int32 // providers whose parent is unknown; each is the root of its tree

	lone *loneTrees

	// Assumption identifies the changes of a WhatIf. It is "" for a World of
	// stored providers alone.
	Assumption string
}

// Names are the traits and resource classes that exist, standard and custom.
type Names struct {
	Traits          []string
	ResourceClasses []string
}

// Update is a change of a World: complete new states of providers (new ones
// included), uuids of deleted providers, and names that were added or removed.
// Deletions precede new states, added names precede removed ones.
type Update struct {
	Providers []Provider
	Deleted   []string
	Added     Names
	Removed   Names
}

// column holds, per provider, the largest amount of one resource class that the
// provider can take in one allocation, plus 1; 0 means that the provider has no
// inventory of the class.
type column struct{ free array[int64] }

var noColumn column

// column returns the column of a class, an empty one for an unknown class.
func (w *World) column(class int32) *column {
	if c := w.columns.at(class); c != nil {
		return c
	}
	return &noColumn
}

// node is a provider in the form that the search reads.
type node struct {
	provider    *Provider
	id          int32
	stamp       uint64 // unique to this state, in every World
	hash        uint64 // of the uuid
	tree        *providerTree
	index       int32 // in tree.members
	sharing     bool
	traits      []int32 // sorted ids
	aggregates  []int32
	inventories []nodeInventory
}

// nodeInventory is one inventory of a node.
type nodeInventory struct {
	free, capacity   int64
	class            int32
	minUnit, maxUnit int32
	stepSize         int32
}

// providerTree is one tree of providers in pre-order.
type providerTree struct {
	root       string  // uuid
	members    []int32 // ids; a parent before its children, children by uuid
	ends       []int32 // per member: the index after its last descendant
	parents    []int32 // per member: the index of its parent, -1 for the root
	aggregates []int32 // sorted ids of every aggregate of any member
}

// aggregate holds the providers and trees that an aggregate connects.
type aggregate struct {
	members bitset
	sharing []int32          // sorted ids of its sharing members
	roots   sortedMap[int32] // by uuid: roots of the trees with a member in it
}

// NewWorld returns a World. It keeps the providers' lists, which must not be
// changed afterwards.
func NewWorld(names Names, providers []Provider) *World {
	return new(World).With(Update{Providers: providers, Added: names})
}

// Provider returns the provider with a canonical uuid.
func (w *World) Provider(uuid string) (*Provider, bool) {
	return w.providerOf(w.byUUID.get(uuid))
}

// ProviderNamed returns the provider with a name.
func (w *World) ProviderNamed(name string) (*Provider, bool) {
	return w.providerOf(w.byName.get(name))
}

func (w *World) providerOf(id int32, ok bool) (*Provider, bool) {
	if !ok {
		return nil, false
	}
	return w.nodes.at(id).provider, true
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

// Len returns the number of providers.
func (w *World) Len() int { return w.byUUID.size }

// Children returns the children of a provider, by uuid; none for an unknown
// uuid.
func (w *World) Children(uuid string) []*Provider {
	id, ok := w.byUUID.get(uuid)
	if !ok {
		return nil
	}
	var children []*Provider
	n := w.nodes.at(id)
	for i := n.index + 1; i < n.tree.ends[n.index]; i = n.tree.ends[i] {
		children = append(children, w.nodes.at(n.tree.members[i]).provider)
	}
	return children
}

// Tree returns every provider of the tree that holds the uuid, parents before
// children and children by uuid; none for an unknown uuid.
func (w *World) Tree(uuid string) []*Provider {
	id, ok := w.byUUID.get(uuid)
	if !ok {
		return nil
	}
	members := w.nodes.at(id).tree.members
	providers := make([]*Provider, len(members))
	for i, member := range members {
		providers[i] = w.nodes.at(member).provider
	}
	return providers
}

// HasTrait reports whether a trait of this name exists.
func (w *World) HasTrait(name string) bool { return w.traitNames.has(name) }

// HasResourceClass reports whether a resource class of this name exists.
func (w *World) HasResourceClass(name string) bool { return w.classNames.has(name) }

// Names returns the traits and resource classes that exist, sorted.
func (w *World) Names() Names {
	return Names{Traits: w.traitNames.keys(), ResourceClasses: w.classNames.keys()}
}

// treeOf returns the tree that holds a provider, nil for an unknown one.
func (w *World) treeOf(uuid string) *providerTree {
	if id, ok := w.byUUID.get(canonicalOr(uuid)); ok {
		return w.nodes.at(id).tree
	}
	return nil
}

// covers reports whether the other node is this one or one of its descendants.
func (n *node) covers(other *node) bool {
	return n.tree == other.tree && n.index <= other.index && other.index < n.tree.ends[n.index]
}

// reaches reports whether the node may be used from an anchor's tree: its own,
// or, for a sharing provider, one with any provider in one of its aggregates.
func (n *node) reaches(anchor *providerTree) bool {
	return n.tree == anchor || n.sharing && intersects(n.aggregates, anchor.aggregates)
}

// inventoryOf returns the node's inventory of a class, nil if it has none.
func (n *node) inventoryOf(class int32) *nodeInventory {
	for i := range n.inventories {
		if n.inventories[i].class == class {
			return &n.inventories[i]
		}
	}
	return nil
}

// fits reports whether the inventory, which may be nil, can take one amount
// (Placement reference: capacity including use, min_unit, max_unit and
// step_size).
func (i *nodeInventory) fits(amount int64) bool {
	return i != nil && amount <= i.free && int64(i.minUnit) <= amount && amount <= int64(i.maxUnit) &&
		(i.stepSize <= 1 || amount%int64(i.stepSize) == 0)
}

// pathOf returns the uuids from the root down to the node.
func (w *World) pathOf(n *node) []string {
	path := make([]string, 0, 4)
	for i := n.index; i >= 0; i = n.tree.parents[i] {
		path = append(path, w.nodes.at(n.tree.members[i]).provider.UUID)
	}
	slices.Reverse(path)
	return path
}

// comparePaths orders nodes by their paths of uuids.
func comparePaths(a, b *node) int {
	if a.tree == b.tree {
		return cmp.Compare(a.index, b.index)
	}
	return cmp.Compare(a.tree.root, b.tree.root)
}

// intersects reports whether two sorted lists have a common element.
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
