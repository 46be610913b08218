package storage

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"divan/storage/fault"
	"divan/storage/instance"
	"divan/storage/paths"
	"divan/storage/small"
)

// A store whose directory is there may have lost what it held: the instance of the small stores is gone or
// cannot be opened, a block of it was damaged, or a log of its own is gone. Such a store is lost as
// one without a directory is, until it can be opened again: other copies fill it, or an operator
// accepts the loss. Nothing of it is removed; its directory is set aside when another one takes its place.

// lostContents is the stores that have lost what they held. It is safe for concurrent use.
type lostContents struct {
	mu    sync.Mutex
	names map[string]struct{}
	news  chan struct{} // room for one
}

func newLostContents() *lostContents {
	return &lostContents{names: make(map[string]struct{}), news: make(chan struct{}, 1)}
}

// note notes a store and reports whether that is news.
func (l *lostContents) note(name string) bool {
	l.mu.Lock()
	_, known := l.names[name]
	l.names[name] = struct{}{}
	l.mu.Unlock()
	if !known {
		select {
		case l.news <- struct{}{}:
		default:
		}
	}
	return !known
}

func (l *lostContents) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.names, name)
}

func (l *lostContents) has(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.names[name]
	return ok
}

// ContentLost reports whether a store has its directory, and has lost what it held.
func (e *Engine) ContentLost(name string) bool { return e.contents.has(name) }

// ContentsLost returns the stores that ContentLost is true of, as far as is known, sorted.
func (e *Engine) ContentsLost() []string {
	e.contents.mu.Lock()
	defer e.contents.mu.Unlock()
	return slices.Sorted(maps.Keys(e.contents.names))
}

// LossNews has something when there are more of them.
func (e *Engine) LossNews() <-chan struct{} { return e.contents.news }

// noteContent notes that a store cannot be opened because what it held is lost, and returns what is said of it.
func (e *Engine) noteContent(name string, inst *instance.Instance, err error) error {
	switch {
	case e.o.ReadOnly || inst.ReadOnly() || !fault.Is(err, fault.Corruption):
		return err
	case inst.Mends():
		return fault.Wrap(fault.Unavailable, "A damaged file of the shard is set right.", err)
	}
	if e.contents.note(name) {
		e.log.Error("what a shard had cannot be read", zap.String("store", name), zap.Error(err))
	}
	r, _, _ := strings.Cut(strings.TrimPrefix(name, shardsDir+"/"), "/")
	return fault.Wrap(fault.Unavailable, "The shard "+r+" cannot be read. "+fault.Reason(err), errors.Join(ErrLost, err))
}

// FindLost looks which small stores have lost what they held. Others say so when they are opened.
func (e *Engine) FindLost(ctx context.Context) error {
	stores, err := e.dirs.Stores(shardsDir, OrphanedDir)
	if err != nil {
		return instance.DiskError("list shards", err)
	}
	stores = slices.DeleteFunc(stores, func(s paths.Store) bool { return !s.Small })
	if len(stores) == 0 {
		return nil
	}
	var suspects []string
	err = e.withSmall(func(db *pebble.DB) error {
		for i := range stores {
			if there, err := small.Has(db, stores[i].UUID); !there || err != nil {
				suspects = append(suspects, stores[i].Name)
			}
		}
		return ctx.Err()
	})
	if fault.Is(err, fault.NoCopy) || fault.Is(err, fault.Corruption) {
		suspects, err = namesOf(stores), nil
	}
	for _, name := range suspects {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s, err := e.Acquire(name); err == nil {
			e.Release(s)
		}
	}
	return err
}

// tendSmall has damage of the small stores looked after that is known, also when none of them is written to.
func (e *Engine) tendSmall() {
	e.mu.Lock()
	en := e.mu.entries[SmallDir]
	damaged := en != nil && en.busy == nil && (en.store.base().inst.Unreadable() || e.small.damage.Met())
	e.mu.Unlock()
	if !damaged || !e.mendDamaged() {
		return
	}
	if s, err := e.acquireSmall(false); err == nil {
		e.release(&s.handle)
	}
}

// mendDamaged has the instance of the small stores be opened anew when that mends what is damaged, and reports whether
// it is.
func (e *Engine) mendDamaged() bool {
	s, err := e.acquireSmall(false)
	if err != nil {
		return false
	}
	defer e.release(&s.handle)
	e.noteDamage(s)
	return e.small.damage.Met() && !s.inst.ReadOnly() && errors.Is(e.admitSmall(s), errSmallEnds)
}
