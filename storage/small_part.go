package storage

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"divan/storage/fault"
	"divan/storage/identity"
	"divan/storage/records"
	"divan/storage/small"
)

// smallPart is the content of a store among the small ones. Reads are safe for concurrent use; only
// the store's opening, and holders of Store.opening, change it.
type smallPart struct {
	h        *handle // of the store
	host     *smallHost
	uuid     [16]byte
	view     atomic.Pointer[small.View] // what the store is read from; nil: from its instance
	maybe    atomic.Bool                // the name of the marker says that it is small
	rewrites atomic.Uint64              // of the small ones that had begun when it was read, or have all of it; a rewrite sets it as well
}

// read reads what the store has among the small ones, nil when it has no batch there. What is damaged
// and can be mended is, first.
func (p *smallPart) read() (v *small.View, err error) {
	v, err = p.readOnce()
	if fault.Is(err, fault.Corruption) && p.host.mendDamaged() {
		v, err = p.readOnce()
	}
	if fault.Is(err, fault.Corruption) && p.host.ends() { // nothing is lost before that
		err = errSmallEnds
	}
	if errors.Is(err, syscall.EIO) {
		p.host.noteUnread()
	}
	return v, err
}

func (p *smallPart) readOnce() (v *small.View, err error) {
	empty, err := p.h.env.emptyDB()
	if err != nil {
		return nil, err
	}
	there := false
	err = p.host.with(func(db *pebble.DB) error {
		v, there, err = small.Read(db, empty, p.uuid)
		return err
	})
	if fault.Is(err, fault.NoCopy) || err == nil && !there {
		err = errMissingSmall()
	}
	return v, err
}

// takesBatches reports whether batches of the store go among the small ones, as far as is known
// without Store.opening.
func (p *smallPart) takesBatches() bool {
	return p.maybe.Load() && (!p.h.inst.Opened() || p.view.Load() != nil)
}

// hold has the store be read from a view, and stay open by its weight.
func (p *smallPart) hold(v *small.View) {
	was := p.view.Swap(v)
	if w := v.Weight(); was == nil || w != was.Weight() {
		p.h.cache.countOpen(p.h, w)
	}
}

// bring brings what the store has among the small ones into its own instance, which is being
// opened, durably, and returns the reader to use. v is the view that an attached store is read from;
// a store that is being opened reads it from the small ones. A crash before the end is followed
// by another call.
func (p *smallPart) bring(db *pebble.DB, v *small.View, attached bool) (pebble.Reader, error) {
	if batch, _, err := records.Counters(db); err != nil || batch > 0 || !p.maybe.Load() {
		return db, err // it is there
	}
	if !attached {
		var err error
		if v, err = p.read(); err != nil {
			return nil, err
		}
	}
	switch {
	case v == nil:
		return db, nil
	case p.h.inst.ReadOnly():
		p.view.Store(v)
		return v, nil
	}
	b := db.NewBatch()
	if err := v.AddTo(b); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return db, errors.Join(b.Commit(pebble.Sync), b.Close(), p.h.Err())
}

// leave ends that a store is among the small ones: all that it has is in its own instance, and the
// name of its marker says so from now on. written: it has a batch, so that what it has is found in
// its own instance when it is opened again. Where the disk refuses that, it is done when the store
// is opened again.
func (p *smallPart) leave(written bool) {
	p.view.Store(nil)
	var err error
	if written {
		err = p.host.remove(p.uuid)
	}
	if err == nil {
		err = identity.LeaveSmall(p.h.env.o.FS, p.h.inst.Dir, p.h.name)
	}
	if err == nil {
		p.maybe.Store(false)
		if !written {
			err = p.host.remove(p.uuid)
		}
	}
	if err != nil {
		p.h.log.Warn("a shard with files of its own is among the small ones still", zap.Error(err))
	}
}

// newBatch begins one. With reserve it takes the space that is kept on the disk.
func (p *smallPart) newBatch(reserve bool) (*smallBatch, error) {
	acquire := p.host.reserve
	if !reserve {
		acquire = func() (*smallStores, error) { return p.host.writable(false) }
	}
	shared, err := acquire()
	if fault.Is(err, fault.NoCopy) {
		err = errMissingSmall()
	}
	if err != nil {
		return nil, err
	}
	return &smallBatch{shared: shared}, nil
}

// apply adds a batch with that number to what the store has among the small ones, and returns
// what is on its way to the disk. The caller holds Store.opening.
func (p *smallPart) apply(b *pebble.Batch, to *smallBatch, number uint64) (way *pebble.Batch, err error) {
	empty, err := p.h.env.emptyDB()
	if err != nil {
		return nil, err
	}
	way = to.shared.inst.DB().NewBatch()
	base := p.view.Load()
	if to.whole != nil {
		base = to.base
		err = small.Join(way, p.uuid, to.was, to.whole)
	}
	v, e := base.With(empty, b, number)
	if err = errors.Join(err, e); err == nil {
		err = small.Put(way, p.uuid, number, b)
	}
	if err == nil {
		err = to.shared.inst.DB().ApplyNoSyncWait(way, pebble.Sync)
	}
	if err = errors.Join(err, to.shared.Err()); err != nil {
		return nil, fmt.Errorf("apply batch: %w", err)
	}
	p.hold(v)
	return way, nil
}
