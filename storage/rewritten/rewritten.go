// Package rewritten knows which keys of an index have many versions. Pebble keeps each
// version of a key until its memtable is flushed, and a step of an iterator goes through
// all of them: a key that every update writes again, such as the topmost block of a view,
// has thousands. A seek passes them at once, but costs more than a step among other keys.
package rewritten

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	// hotWrites is how often a key is written until it counts as hot: few
	// versions are passed by a step.
	hotWrites = 16
	// maxKeys is how many keys are counted.
	maxKeys = 1024
)

// Keys counts how often keys are written. Its zero value is not of use: see New.
type Keys struct {
	seed   maphash.Seed
	counts map[uint64]uint32      // by hash of the key, which may be another one's, too; the writer's alone
	hot    atomic.Pointer[hotSet] // nil: none
}

type hotSet map[uint64]struct{}

// New returns a Keys without a written key.
func New() *Keys { return &Keys{seed: maphash.MakeSeed(), counts: map[uint64]uint32{}} }

// Wrote notes that a key is being written. One goroutine at a time may call it.
func (k *Keys) Wrote(key []byte) {
	h := maphash.Bytes(k.seed, key)
	k.counts[h]++
	switch {
	case k.counts[h] == hotWrites:
		k.publish()
	case len(k.counts) > maxKeys:
		k.age()
	}
}

// age makes space: it halves what was counted and forgets what is seldom written.
func (k *Keys) age() {
	for h, n := range k.counts {
		if n /= 2; n == 0 {
			delete(k.counts, h)
		} else {
			k.counts[h] = n
		}
	}
	if len(k.counts) > maxKeys/2 {
		clear(k.counts)
	}
	k.publish()
}

// publish shows readers what is hot.
func (k *Keys) publish() {
	set := hotSet{}
	for h, n := range k.counts {
		if n >= hotWrites {
			set[h] = struct{}{}
		}
	}
	k.hot.Store(&set)
}

// Hot is the keys that were hot at one moment.
type Hot struct {
	seed maphash.Seed
	set  hotSet
}

// Hot returns the hot keys of now. It is safe for concurrent use.
func (k *Keys) Hot() Hot {
	if set := k.hot.Load(); set != nil {
		return Hot{k.seed, *set}
	}
	return Hot{}
}

// Has reports whether a key has many versions, perhaps.
func (h Hot) Has(key []byte) bool {
	if len(h.set) == 0 {
		return false
	}
	_, ok := h.set[maphash.Bytes(h.seed, key)]
	return ok
}
