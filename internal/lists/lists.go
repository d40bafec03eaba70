// Package lists makes lists and maps from other lists.
package lists

import (
	"cmp"
	"slices"
)

// Map returns the results of a function for each item of a list.
func Map[From, To any](items []From, of func(From) To) []To {
	list := make([]To, len(items))
	for i, item := range items {
		list[i] = of(item)
	}
	return list
}

// ByKey returns the items of a list by their keys. If several have the same
// key, the last one wins.
func ByKey[Key comparable, Item any](items []Item, key func(Item) Key) map[Key]Item {
	found := make(map[Key]Item, len(items))
	for _, item := range items {
		found[key(item)] = item
	}
	return found
}

// Index returns a value for each item of a list, by the item's key. If several
// have the same key, the last one wins.
func Index[Key comparable, Item, Value any](items []Item, of func(Item) (Key, Value)) map[Key]Value {
	found := make(map[Key]Value, len(items))
	for _, item := range items {
		key, value := of(item)
		found[key] = value
	}
	return found
}

// Group returns the values of the items of a list by the item's key, in order.
func Group[Key comparable, Item, Value any](items []Item, of func(Item) (Key, Value)) map[Key][]Value {
	found := map[Key][]Value{}
	for _, item := range items {
		key, value := of(item)
		found[key] = append(found[key], value)
	}
	return found
}

// Set returns the keys of the items of a list.
func Set[Key comparable, Item any](items []Item, key func(Item) Key) map[Key]bool {
	return Index(items, func(item Item) (Key, bool) { return key(item), true })
}

// Itself returns its argument, as the key function of items that are their own
// keys.
func Itself[T any](item T) T { return item }

// Without returns the values of list that are not in other, in order.
func Without[V comparable](list, other []V) []V {
	held := Set(other, Itself[V])
	var left []V
	for _, value := range list {
		if !held[value] {
			left = append(left, value)
		}
	}
	return left
}

// Distinct returns the values of a list without duplicates, sorted.
func Distinct[V cmp.Ordered](list []V) []V {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}
