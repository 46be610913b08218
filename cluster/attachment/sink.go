package attachment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/fault"
)

// copySink takes the content of an upload to one copy. On another node it does so
// on a goroutine of its own, so that copies are written at the same time, and
// one that is busy for longer than fanout.StallLimit is given up: its node gets the
// attachment from another copy later.
type copySink struct {
	shard.AttachmentSink
	ctx  context.Context // ends a call that is under way
	stop context.CancelFunc

	jobs chan []byte // blocks to write; nil: Close. nil channel: on this node
	done chan error  // one answer for each job
	held []byte      // the block that a sink which was given up may still read
}

// errStalled is why a sink is given up.
var errStalled = fault.Newf(fault.Timeout, "A copy did not take a block of an attachment within %s.", fanout.StallLimit)

// openSink opens a sink on one copy.
func (u *upload) openSink(ctx context.Context, rep replica.Copy, t ring.Replica) (*copySink, error) {
	own, stop := context.WithCancel(ctx)
	var s shard.AttachmentSink
	var err error
	if t.Node == u.Database.Node() {
		s, err = replica.PutAttachment.On(own, rep, replica.PutAttachmentRequest{Copy: t.Name, ID: u.ID, Key: u.att.Key})
	} else {
		stall := time.AfterFunc(fanout.StallLimit, stop)
		s, err = replica.PutAttachment.On(own, rep, replica.PutAttachmentRequest{Copy: t.Name, ID: u.ID, Key: u.att.Key})
		if !stall.Stop() && err != nil { // it has ended the context
			err = errStalled
		}
	}
	if err != nil {
		stop()
		return nil, err
	}
	out := &copySink{AttachmentSink: s, ctx: own, stop: stop}
	if t.Node == u.Database.Node() {
		return out, nil
	}
	out.jobs, out.done = make(chan []byte, 1), make(chan error, 1)
	if !u.Database.Spawn(out.work) {
		s.Abort()
		stop()
		return nil, fanout.Closed()
	}
	return out, nil
}

// work does what jobs ask for until the channel is closed or the context ends.
func (s *copySink) work() {
	closed := false
	for b := range s.jobs {
		var err error
		switch {
		case s.ctx.Err() != nil:
			err = s.ctx.Err()
		case b == nil:
			err = s.Close()
			closed = err == nil
		default:
			_, err = s.Write(b)
		}
		s.done <- err
	}
	if !closed {
		s.Abort()
	}
	s.stop()
}

// start begins to write a block, with nil to close. On this node it is done
// when start returns.
func (s *copySink) start(b []byte) error {
	if s.jobs != nil {
		s.jobs <- b // there is space: the job before has been waited for
		return nil
	}
	if b == nil {
		return s.Close()
	}
	_, err := s.Write(b)
	return err
}

// finish waits for the block that start began to write, until over.
func (s *copySink) finish(over <-chan time.Time) error {
	if s.jobs == nil {
		return nil
	}
	select {
	case err := <-s.done:
		return err
	default:
	}
	select {
	case err := <-s.done:
		return err
	case <-over:
		return errStalled
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// end lets go of a sink; what it holds is dropped unless it was closed.
func (s *copySink) end() {
	s.stop()
	if s.jobs != nil {
		close(s.jobs)
		return
	}
	s.Abort()
}

// open opens a sink on every copy of the range that can be reached, on all
// of them at once. A copy that cannot is left out: an edit that names the
// content is refused there, and counts as not stored.
func (u *upload) open(ctx context.Context) error {
	copies := u.Copies
	sinks, errs := make([]*copySink, len(copies)), make([]error, len(copies))
	_ = fanout.Each(len(copies), func(i int) error { // errors are looked at below
		rep := u.Database.Replica(copies[i])
		if rep.Away() {
			errs[i] = fanout.NodeDown(copies[i].Node)
			return nil
		}
		sinks[i], errs[i] = u.openSink(ctx, rep, copies[i])
		return nil
	})
	var failure error
	for i := range sinks {
		if sinks[i] != nil {
			u.sinks = append(u.sinks, sinks[i])
		} else {
			failure = quorum.Telling(failure, errs[i])
		}
	}
	if len(u.sinks) == 0 {
		return u.Database.Explain(ctx, failure)
	}
	return nil
}

// write gives a block to all sinks and gives up those that fail; the error is
// that of the last one to fail.
func (u *upload) write(b []byte) error { return u.each(b) }

// close makes the content durable.
func (u *upload) close() error {
	err := u.each(nil)
	if err == nil {
		u.abort() // lets go of them: what is closed stays
	}
	return err
}

func (u *upload) each(b []byte) error {
	errs := make([]error, len(u.sinks))
	// Those of other nodes begin first, and work while this one's disk does.
	for i, s := range u.sinks {
		if s.jobs != nil {
			errs[i] = s.start(b)
		}
	}
	for i, s := range u.sinks {
		if s.jobs == nil {
			errs[i] = s.start(b)
		}
	}
	var over <-chan time.Time
	if slices.ContainsFunc(u.sinks, func(s *copySink) bool { return s.jobs != nil }) {
		timer := time.NewTimer(fanout.StallLimit)
		defer timer.Stop()
		over = timer.C
	}
	expired := make(chan time.Time) // for all that are waited for after the time is over
	close(expired)
	var failure error
	var left []*copySink
	for i, s := range u.sinks {
		if errs[i] == nil {
			errs[i] = s.finish(over)
		}
		if errors.Is(errs[i], errStalled) {
			over = expired
		}
		if errs[i] == nil {
			left = append(left, s)
			continue
		}
		failure = fmt.Errorf("store attachment: %w", errs[i])
		s.held = b
		u.failed = append(u.failed, s)
		s.end()
	}
	u.sinks = left
	if len(left) > 0 {
		return nil
	}
	return failure
}

// held reports whether a sink that was given up may still read a block.
func (u *upload) held(b []byte) bool {
	return slices.ContainsFunc(u.failed, func(s *copySink) bool { return s.jobs != nil && len(s.held) > 0 && &s.held[0] == &b[0] })
}

// abort drops what the sinks hold, unless it was closed.
func (u *upload) abort() {
	for _, s := range u.sinks {
		s.end()
	}
	u.sinks = nil
}
