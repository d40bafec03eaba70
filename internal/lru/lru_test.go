package lru_test

import (
	"testing"

	"github.com/cadastre-dev/cadastre/internal/lru"
)

func TestTheLeastRecentlyUsedGoFirst(t *testing.T) {
	t.Parallel()
	cache := lru.New[int](16)
	for i, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		cache.Add(key, i, 2)
	}
	cache.Get("a")
	cache.Add("i", 8, 2)
	for key, want := range map[string]bool{"a": true, "b": false, "c": true, "i": true} {
		if _, ok := cache.Get(key); ok != want {
			t.Errorf("%s is kept: %v", key, ok)
		}
	}
	cache.Add("heavy", 9, 3)
	if _, ok := cache.Get("heavy"); ok {
		t.Error("a value of more than an eighth is kept")
	}
	if got := cache.GetOrCreate("a", 1, func() int { return -1 }); got != 0 {
		t.Errorf("GetOrCreate made %d in place of what was kept", got)
	}
	if got := cache.GetOrCreate("j", 16, func() int { return 10 }); got != 10 {
		t.Errorf("GetOrCreate returned %d, not what it made", got)
	}
	if _, ok := cache.Get("c"); ok {
		t.Error("more is kept than the maximum")
	}
}
