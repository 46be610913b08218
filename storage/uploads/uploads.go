// Package uploads remembers, while the process lives, which contents are on their
// way into stores: durable, and not yet referred to by a document.
package uploads

import (
	"sync"
	"sync/atomic"
)

// Sets are the uploads of all stores. The zero value has none.
type Sets struct {
	mu   sync.Mutex
	sets map[string]*Set
}

// Set are the uploads of one store, by upload key.
type Set struct {
	name  string
	users int          // open stores; guarded by Sets.mu
	n     atomic.Int64 // len(keys), to be asked without the lock
	mu    sync.Mutex
	keys  map[string]struct{}
}

// Of returns the uploads of a store that is being opened.
func (u *Sets) Of(name string) *Set {
	u.mu.Lock()
	defer u.mu.Unlock()
	set := u.sets[name]
	if set == nil {
		set = &Set{name: name, keys: map[string]struct{}{}}
		if u.sets == nil {
			u.sets = map[string]*Set{}
		}
		u.sets[name] = set
	}
	set.users++
	return set
}

// Release is called when the store is closed.
func (u *Sets) Release(set *Set) {
	u.mu.Lock()
	defer u.mu.Unlock()
	set.users--
	if set.users == 0 && !set.Any() {
		delete(u.sets, set.name)
	}
}

// Forget is called when the store is dropped.
func (u *Sets) Forget(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.sets, name)
}

// Any reports whether there is an upload.
func (u *Set) Any() bool { return u.n.Load() > 0 }

// Len returns how many uploads there are.
func (u *Set) Len() int { return int(u.n.Load()) }

// Has reports whether a key is that of an upload.
func (u *Set) Has(key []byte) bool {
	if !u.Any() {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.keys[string(key)]
	return ok
}

// Add notes an upload.
func (u *Set) Add(key []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keys[string(key)] = struct{}{}
	u.n.Store(int64(len(u.keys)))
}

// Drop ends uploads.
func (u *Set) Drop(keys ...[]byte) {
	if len(keys) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, key := range keys {
		delete(u.keys, string(key))
	}
	u.n.Store(int64(len(u.keys)))
}
