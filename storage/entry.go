package storage

import (
	"container/list"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"divan/storage/instance"
)

// handle is the state of an open store or index that all kinds have.
type handle struct {
	env     *environment
	cache   *storeCache
	entry   *entry      // guarded by cache.mu
	dropped atomic.Bool // while it was pinned
	counted bool        // in lru.open, or the weight in lru.smallBytes; guarded by cache.mu
	weight  int64       // about the bytes in memory of one that is small, 0: it has an instance; guarded by cache.mu
	name    string
	inst    *instance.Instance
	log     *zap.Logger
}

func (h *handle) base() *handle { return h }

// Name returns the name of the store, its path below the data directory.
func (h *handle) Name() string { return h.name }

// Err returns why the store has stopped, nil while it works. The error is
// fault.Unavailable, or fault.InsufficientStorage when the disk is full.
func (h *handle) Err() error { return h.inst.Err() }

// Dropped is fault.NoCopy when the store was dropped while it was pinned.
func (h *handle) Dropped() error {
	if h.dropped.Load() {
		return noStore()
	}
	return nil
}

// FileSize returns the bytes that the store keeps: instance.Instance.FileSize.
func (h *handle) FileSize() (int64, error) { return h.inst.FileSize(), h.Err() }

// member is a store of any kind.
type member interface {
	base() *handle
	close(dropped bool) error
	remove() error // takes the files of a closed store out of their place
}

// entry is one store that is open, or being opened or closed. It is guarded by storeCache.mu.
type entry struct {
	name      string
	store     member
	busy      chan struct{} // not nil while opened or closed; closed at the end
	pins      int
	dropped   bool // remove the directory when closed
	displaced bool // that was done before; see storeCache.displace
	unused    *list.Element
	in        *list.List // that has unused
	since     time.Time  // of becoming unused
}

// pin adds a pin.
func (en *entry) pin() {
	if en.unused != nil {
		en.in.Remove(en.unused)
		en.unused = nil
	}
	en.pins++
}

// take makes an unused entry busy.
func (en *entry) take() *entry {
	en.in.Remove(en.unused)
	en.unused = nil
	en.busy = make(chan struct{})
	return en
}

func (en *entry) endBusy() {
	close(en.busy)
	en.busy = nil
}
