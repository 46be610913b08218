package auth

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLRUForgetsWhatWasUsedLongestAgo(t *testing.T) {
	c, now := newLRU[int, int](3), time.Now()
	for i := range 3 {
		c.put(i, i, now)
	}
	c.get(0, now, time.Hour, false)
	c.put(3, 3, now)
	for k, want := range map[int]bool{0: true, 1: false, 2: true, 3: true} {
		if _, ok := c.get(k, now, time.Hour, false); ok != want {
			t.Errorf("key %d is there: %v, want %v", k, ok, want)
		}
	}
}

func TestLRUAge(t *testing.T) {
	c, now := newLRU[string, int](8), time.Now()
	c.put("idle", 1, now)
	c.put("old", 1, now)
	for range 5 {
		now = now.Add(40 * time.Second)
		if _, ok := c.get("idle", now, time.Minute, true); !ok {
			t.Fatal("an entry in use expired")
		}
	}
	if _, ok := c.get("old", now, time.Minute, false); ok {
		t.Error("an entry outlived its age")
	}
	counts := []int{}
	for range 3 {
		c.update("count", now, time.Minute, func(n int) int { counts = append(counts, n); return n + 1 })
		now = now.Add(25 * time.Second)
	}
	now = now.Add(time.Minute)
	c.update("count", now, time.Minute, func(n int) int { counts = append(counts, n); return n + 1 })
	if want := []int{0, 1, 2, 0}; !slices.Equal(counts, want) {
		t.Errorf("counted %v, want %v", counts, want)
	}
}

// len counts the entries, expired ones included.
func (c *lru[K, V]) len() int {
	n := 0
	for i := range c.parts {
		p := &c.parts[i]
		p.Lock()
		n += p.entries.Len()
		p.Unlock()
	}
	return n
}

// TestLRUModel compares a single part with a list in order of use.
func TestLRUModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		c, now := newLRU[int, int](limit), time.Now()
		var model []int // keys, used last first
		use := func(k int) {
			for i, m := range model {
				if m == k {
					model = append(model[:i], model[i+1:]...)
					break
				}
			}
			model = append([]int{k}, model...)
			model = model[:min(len(model), limit)]
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			k := rapid.IntRange(0, 7).Draw(t, "key")
			there := false
			for _, m := range model {
				there = there || m == k
			}
			switch rapid.IntRange(0, 2).Draw(t, "op") {
			case 0:
				c.put(k, k*10, now)
				use(k)
			case 1:
				v, ok := c.get(k, now, time.Hour, false)
				if ok != there || (ok && v != k*10) {
					t.Fatalf("get(%d) = %d, %v; model %v", k, v, ok, model)
				}
				if ok {
					use(k)
				}
			case 2:
				c.remove(k)
				for i, m := range model {
					if m == k {
						model = append(model[:i], model[i+1:]...)
						break
					}
				}
			}
			if c.len() != len(model) {
				t.Fatalf("%d entries, model %v", c.len(), model)
			}
		}
	})
}

func TestLRUBound(t *testing.T) {
	c, now := newLRU[int, int](2048), time.Now()
	for i := range 10_000 {
		c.put(i, i, now)
	}
	if n := c.len(); n > 2048 || n < 1024 {
		t.Errorf("%d entries kept of a limit of 2048", n)
	}
}
