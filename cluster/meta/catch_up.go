package meta

import (
	"context"
	"errors"

	"divan/storage/fault"
)

// catchUp is one call that waits for this node to catch up.
type catchUp struct {
	answer chan error // has room for one
}

// CatchUp returns once this node has applied every change that was
// acknowledged, by any node, before the call. Whoever is about to answer that
// something does not exist calls it first and looks again. Calls that wait at
// the same time share one question to the leader.
//
// Without a majority the error is fault.Unavailable: at once when it is known
// that no majority is alive, else after the time that an election takes.
func (m *Meta) CatchUp(ctx context.Context) error {
	r := m.raft.Load()
	if r == nil || m.quorumLost() {
		return errUnavailable(nil)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// In a group of one there is nobody else who could have led since.
	if servers, err := members(r); err != nil || (len(servers) == 1 && m.term.Load() != 0) {
		return err
	}
	c := catchUp{answer: make(chan error, 1)}
	select {
	case m.catchUps <- c:
	case <-m.done:
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

// serveCatchUps answers CatchUp's callers until ctx ends.
func (m *Meta) serveCatchUps(ctx context.Context) {
	for {
		select {
		case first := <-m.catchUps:
			batch := m.waitingToo([]catchUp{first})
			err := m.catchUpOnce(ctx)
			if err != nil { // who came meanwhile would wait as long, for the same
				batch = m.waitingToo(batch)
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
func (m *Meta) waitingToo(batch []catchUp) []catchUp {
	for {
		select {
		case c := <-m.catchUps:
			batch = append(batch, c)
		default:
			return batch
		}
	}
}

// catchUpOnce learns which command was the last one acknowledged and applies
// up to it.
func (m *Meta) catchUpOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	var index, term uint64
	err := m.retry(ctx, func() (err error) {
		index, term, err = m.readIndex(ctx)
		if err != nil && (fault.Is(err, fault.Unavailable) || fault.Is(err, fault.NodeDown)) {
			err = errors.Join(errNotProposed, err) // a question may be repeated
		}
		return err
	})
	if err == nil {
		err = m.fsm.waitApplied(ctx, m.logStore(), index, term)
	}
	if ctx.Err() != nil {
		return errUnavailable(err)
	}
	return err
}
