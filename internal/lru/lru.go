// Package lru keeps values by key up to a total weight.
package lru

import (
	"container/list"
	"sync"
)

// Cache keeps values by key up to a total weight. It drops the least recently
// used values first. It is safe for concurrent use.
type Cache[V any] struct {
	maxWeight int64

	mu     sync.Mutex
	weight int64
	order  *list.List // of *entry[V], the most recently used first
	byKey  map[string]*list.Element
}

type entry[V any] struct {
	key    string
	value  V
	weight int64
}

// New returns a cache with a maximum total weight. With 0, Add stores nothing.
func New[V any](maxWeight int64) *Cache[V] {
	return &Cache[V]{maxWeight: maxWeight, order: list.New(), byKey: map[string]*list.Element{}}
}

// Get returns the value of a key, and reports whether there is one.
func (c *Cache[V]) Get(key string) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.byKey[key]
	if !ok {
		return value, false
	}
	c.order.MoveToFront(element)
	return element.Value.(*entry[V]).value, true
}

// GetOrCreate returns the value of a key. If there is none, it stores and
// returns the result of create, which must not use the cache. Unlike Add, it
// stores a value of any weight.
func (c *Cache[V]) GetOrCreate(key string, weight int64, create func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.byKey[key]; ok {
		c.order.MoveToFront(element)
		return element.Value.(*entry[V]).value
	}
	value := create()
	c.put(key, value, weight)
	return value
}

// Add stores a value, unless the key has one, or the value is heavier than an
// eighth of the maximum. So one value cannot displace all others.
func (c *Cache[V]) Add(key string, value V, weight int64) {
	if weight > c.maxWeight/8 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byKey[key]; !ok {
		c.put(key, value, weight)
	}
}

// Remove removes the value of a key.
func (c *Cache[V]) Remove(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.byKey[key]; ok {
		c.drop(element)
	}
}

func (c *Cache[V]) drop(element *list.Element) {
	removed := c.order.Remove(element).(*entry[V])
	delete(c.byKey, removed.key)
	c.weight -= removed.weight
}

func (c *Cache[V]) put(key string, value V, weight int64) {
	c.byKey[key] = c.order.PushFront(&entry[V]{key: key, value: value, weight: weight})
	c.weight += weight
	for c.weight > c.maxWeight && c.order.Len() > 1 {
		c.drop(c.order.Back())
	}
}
