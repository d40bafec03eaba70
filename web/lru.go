package web

import (
	"container/list"
	"sync"
)

// lru keeps values by key up to a total weight; what was not used for longest
// goes first.
type lru[V any] struct {
	most int64

	mu     sync.Mutex
	weight int64
	order  *list.List // of *held[V], the latest used first
	byKey  map[string]*list.Element
}

type held[V any] struct {
	key    string
	value  V
	weight int64
}

func newLRU[V any](most int64) *lru[V] {
	return &lru[V]{most: most, order: list.New(), byKey: map[string]*list.Element{}}
}

func (c *lru[V]) get(key string) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, there := c.byKey[key]
	if !there {
		var none V
		return none, false
	}
	c.order.MoveToFront(element)
	return element.Value.(*held[V]).value, true
}

// getOr gives the value of a key, made where there is none.
func (c *lru[V]) getOr(key string, weight int64, make func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, there := c.byKey[key]; there {
		c.order.MoveToFront(element)
		return element.Value.(*held[V]).value
	}
	value := make()
	c.put(key, value, weight)
	return value
}

// add keeps a value, unless it is heavier than an eighth of everything: one value
// does not drive out the others.
func (c *lru[V]) add(key string, value V, weight int64) {
	if weight > c.most/8 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.byKey[key]; !there {
		c.put(key, value, weight)
	}
}

func (c *lru[V]) put(key string, value V, weight int64) {
	c.byKey[key] = c.order.PushFront(&held[V]{key: key, value: value, weight: weight})
	c.weight += weight
	for c.weight > c.most && c.order.Len() > 1 {
		oldest := c.order.Remove(c.order.Back()).(*held[V])
		delete(c.byKey, oldest.key)
		c.weight -= oldest.weight
	}
}
