package index

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"divan/shard/fairqueue"
	"divan/storage"
	"divan/storage/fault"
)

// follower brings one index up to date with its copy.
type follower struct {
	m         *Manager
	copyName  string
	spec      Spec
	kind      Kind
	sequences bool // Map needs Doc.Seq
	log       *zap.Logger

	users  int       // guarded by followers.mu
	unused time.Time // since when users is 0; guarded by followers.mu
	gone   bool      // the copy was dropped; guarded by followers.mu
	queued bool      // waits for the background; guarded by background.mu

	mu struct {
		sync.Mutex
		of      uint64 // the opening of the store that pos is of; the store itself would stay in memory
		pos     Position
		running *update // nil: none
		waiting int     // calls that wait for an update

		compacting     bool
		stopCompacting context.CancelFunc // while compacting
		compacted      chan struct{}      // of that compaction: closed when it has let go of the index

		hurry chan struct{} // a caller began to wait

		failure *failure // of the document at which the index stays; nil: none
	}
	progress progress

	// The rest belongs to the update that runs.
	unflushed int    // documents applied since the last flush
	held      bool   // the purge log of the copy waits for the index,
	heldSeq   uint64 // which has this of it
}

// progress is how far an update is.
type progress struct {
	started, updated atomic.Int64 // unix milliseconds
	done, total      atomic.Uint64
	left             atomic.Uint64 // documents that are left out
}

// update is one run over everything that was new when it began.
type update struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // set before ended is closed
}

// open pins the stores.
func (f *follower) open() (*Use, error) {
	e := f.m.o.Engine
	s, err := e.Acquire(f.copyName)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", f.copyName, err)
	}
	x, err := e.Indexes().Acquire(s, f.spec.String())
	if err != nil {
		e.Release(s)
		return nil, fmt.Errorf("open index of %s: %w", f.copyName, err)
	}
	return &Use{f: f, store: s, Index: x}, nil
}

// wait returns when the index covers a position.
func (f *follower) wait(ctx context.Context, x *storage.Index, want Position) error {
	for {
		covered, err := f.covers(x, want)
		if err != nil || covered {
			return err
		}
		if err := f.refused(ctx); err != nil {
			return err
		}
		u, err := f.join(ctx)
		if err != nil {
			return err
		}
		select {
		case <-u.ended:
		case <-ctx.Done():
			err = ctx.Err()
		}
		f.mu.Lock()
		f.mu.waiting--
		f.mu.Unlock()
		if err == nil && !errors.Is(u.err, context.Canceled) { // one that was cancelled was for an index that has gone since
			err = u.err
		}
		if err != nil || x.Err() != nil { // of the index itself: it was set aside
			return err
		}
	}
}

// covers reports whether the index, as opened by x, covers a position.
func (f *follower) covers(x *storage.Index, want Position) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.of == x.Opening() {
		return f.mu.pos.covers(want), nil
	}
	snap, err := x.Snapshot()
	if err != nil {
		return false, err
	}
	defer snap.Close()
	pos, err := ReadPosition(snap)
	return pos.covers(want), indexed(err)
}

// join returns the update that runs, or starts one, as one more who waits.
func (f *follower) join(ctx context.Context) (*update, error) {
	f.m.followers.mu.Lock()
	defer f.m.followers.mu.Unlock()
	if f.m.followers.mu.closed {
		return nil, errClosed()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.waiting++
	if f.mu.running == nil {
		f.startLocked(ctx)
	} else {
		select {
		case f.mu.hurry <- struct{}{}:
		default:
		}
	}
	return f.mu.running, nil
}

// startLocked starts an update; followers.mu and mu are held.
func (f *follower) startLocked(ctx context.Context) {
	// An update serves all who wait; it counts as that of the first one's account.
	who := fairqueue.Caller{Account: fairqueue.CallerOf(ctx).Account, Background: func() bool { return !f.waited() }, Patient: true}
	ctx, cancel := context.WithCancel(fairqueue.With(context.WithoutCancel(ctx), who))
	u := &update{cancel: cancel, ended: make(chan struct{})}
	f.mu.running = u
	f.users++
	f.m.followers.work.Go(func() {
		defer cancel()
		u.err = f.failed(ctx, f.run(ctx))
		f.mu.Lock()
		f.mu.running = nil
		f.mu.Unlock()
		close(u.ended)
		f.m.followers.leave(f)
	})
}

// updateAlone updates for the background, unless an update runs already.
func (f *follower) updateAlone(ctx context.Context) {
	if f.refused(ctx) != nil {
		return
	}
	f.m.followers.mu.Lock()
	f.mu.Lock()
	if f.mu.running == nil && !f.m.followers.mu.closed {
		f.startLocked(ctx)
	}
	u := f.mu.running
	f.mu.Unlock()
	f.m.followers.mu.Unlock()
	if u == nil {
		return
	}
	select {
	case <-u.ended:
	case <-ctx.Done():
		u.cancel()
		<-u.ended
	}
	var logged *DocumentError
	if u.err != nil && !errors.Is(u.err, context.Canceled) && !fault.Is(u.err, fault.Closed) && !fault.Is(u.err, fault.NoCopy) &&
		!fault.Is(u.err, fault.InsufficientStorage) && !errors.As(u.err, &logged) {
		f.log.Warn("updating an index in the background failed", zap.Error(u.err))
	}
}

// cancelWork stops the update and the compaction that run, and returns what is
// closed when they have let go of the index.
func (f *follower) cancelWork() (ended []<-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.compacting {
		f.mu.stopCompacting()
		ended = append(ended, f.mu.compacted)
	}
	if f.mu.running != nil {
		f.mu.running.cancel()
		ended = append(ended, f.mu.running.ended)
	}
	return ended
}

// waited reports whether a caller waits for the update.
func (f *follower) waited() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.waiting > 0
}

// damage is an error that says that the content of the index is damaged.
type damage struct{ err error }

func (d *damage) Error() string { return d.err.Error() }
func (d *damage) Unwrap() error { return d.err }

// indexed marks what reading or writing the index returned.
func indexed(err error) error {
	if fault.Is(err, fault.Corruption) {
		return &damage{err}
	}
	return err
}

// errOutdated says that the purge log does not reach back to where the index is.
func errOutdated() error {
	return &damage{fault.New(fault.Corruption, "The index is older than the purge log.")}
}

// run updates the index once. One that is damaged is set aside and built anew,
// once.
func (f *follower) run(ctx context.Context) error {
	now := time.Now().UnixMilli()
	f.progress.started.Store(now)
	f.progress.updated.Store(now)
	f.progress.done.Store(0)
	f.progress.total.Store(0)
	for retried := false; ; retried = true {
		u, err := f.open()
		if err != nil {
			return err
		}
		err = f.contained(func() error { return f.runOn(ctx, u) })()
		var d *damage
		broken := errors.As(err, &d)
		if broken {
			u.Discard(err)
		} else if ctx.Err() == nil {
			if settling := u.Index.Settle(); err == nil {
				err = settling
			}
		}
		f.m.o.Engine.Indexes().Release(u.Index)
		f.m.o.Engine.Release(u.store)
		if !broken || retried {
			return err
		}
	}
}

// contained makes an error of a panic: a document that a kind of index cannot
// bear must not end the process.
func (f *follower) contained(do func() error) func() error {
	return func() (err error) {
		defer func() {
			if r := recover(); r != nil {
				f.log.Error("updating an index panicked", zap.Any("panic", r), zap.Stack("stack"))
				err = fault.New(fault.Internal, "updating an index panicked")
			}
		}()
		return do()
	}
}

// runOn updates an open index.
func (f *follower) runOn(ctx context.Context, u *Use) error {
	snap, err := u.Index.Snapshot()
	if err != nil {
		return err
	}
	pos, err := ReadPosition(snap)
	snap.Close()
	if err != nil {
		return indexed(err)
	}
	if c := u.store.Counters(); pos != (Position{}) && pos.PurgeSeq < c.PurgeTrimmed {
		return errOutdated()
	}
	info, err := f.m.o.Shards.Info(ctx, f.copyName)
	if err != nil {
		return fmt.Errorf("update index: %w", err)
	}
	left, err := readLeftCount(u.Index)
	if err != nil {
		return indexed(err)
	}
	f.progress.left.Store(left)
	up := &updater{f: f, x: u.Index, pos: pos, account: f.m.budget.open(), doubtful: f.failing()}
	up.left.count = left
	defer up.account.close()
	defer f.kind.Rest()
	defer up.close()
	if err := up.follow(ctx, info); err != nil {
		return err
	}
	if err := indexed(f.kind.End(ctx, u.Index)); err != nil {
		return err
	}
	return up.end(ctx)
}

func (f *follower) setPosition(x *storage.Index, pos Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.of, f.mu.pos = x.Opening(), pos
}

// task describes the update that runs.
func (f *follower) task() (Task, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, w := &f.progress, f.mu.failure
	t := Task{
		Name: f.spec.Name, Copy: f.copyName, Design: f.spec.Design, Label: f.spec.Label,
		StartedMS: p.started.Load(), UpdatedMS: p.updated.Load(), Done: p.done.Load(), Total: p.total.Load(), LeftOut: p.left.Load(),
	}
	if w != nil {
		t.Document, t.Error, t.RetryMS = w.cause.ID, fault.Reason(w.err), w.next.UnixMilli()
	}
	return t, w != nil || f.mu.running != nil && p.total.Load() > 0
}
