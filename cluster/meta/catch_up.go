package meta

import (
	"context"
	"errors"

	"divan/storage/fault"
)

// Reader is how far this node has followed the group, and how it makes sure that it has
// applied what was acknowledged.
type Reader struct {
	group  *Group
	fsm    *stateMachine
	stores *nodeStores
	calls  chan catchUp // of CatchUp
}

// Applied returns the number of the last command that this node has applied.
func (r *Reader) Applied() uint64 { return r.fsm.load().index }

// WaitApplied returns when this node has applied the command at an index. The error is
// that of ctx.
func (r *Reader) WaitApplied(ctx context.Context, index uint64) error {
	return r.fsm.waitApplied(ctx, r.stores.log(), index, 0)
}

// catchUp is one call that waits for this node to catch up.
type catchUp struct {
	answer chan error // has space for one
}

// CatchUp returns once this node has applied every change that was acknowledged, by any node,
// before the call. A caller that is about to answer that something does not exist calls it first
// and looks again. Calls that wait at the same time share one question to the leader.
//
// Without a majority the error is fault.Unavailable: at once when it is known
// that no majority is alive, else after the time that an election takes.
func (r *Reader) CatchUp(ctx context.Context) error {
	if r.group.quorumLost() {
		return errUnavailable(nil)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// In a group of one no other node can have led since.
	if servers, err := members(r.group.raft.Load()); err != nil || (len(servers) == 1 && r.group.term.Load() != 0) {
		return err
	}
	c := catchUp{answer: make(chan error, 1)}
	select {
	case r.calls <- c:
	case <-r.group.done:
		return errStopping()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-c.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serve answers CatchUp's callers until ctx ends.
func (r *Reader) serve(ctx context.Context) {
	for {
		select {
		case first := <-r.calls:
			batch := r.waitingToo([]catchUp{first})
			err := r.catchUpOnce(ctx)
			if err != nil { // who came meanwhile would wait as long, for the same
				batch = r.waitingToo(batch)
			}
			for _, c := range batch {
				c.answer <- err
			}
		case <-ctx.Done():
			return
		}
	}
}

// waitingToo adds the calls that wait now.
func (r *Reader) waitingToo(batch []catchUp) []catchUp {
	for {
		select {
		case c := <-r.calls:
			batch = append(batch, c)
		default:
			return batch
		}
	}
}

// catchUpOnce learns which command was the last one acknowledged and applies
// up to it.
func (r *Reader) catchUpOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	var index, term uint64
	err := r.group.retry(ctx, func() (err error) {
		index, term, err = r.readIndex(ctx)
		if err != nil && (fault.Is(err, fault.Unavailable) || fault.Is(err, fault.NodeDown)) {
			err = errors.Join(errNotProposed, err) // a question may be repeated
		}
		return err
	})
	if err == nil {
		err = r.fsm.waitApplied(ctx, r.stores.log(), index, term)
	}
	if ctx.Err() != nil {
		return errUnavailable(err)
	}
	return err
}
