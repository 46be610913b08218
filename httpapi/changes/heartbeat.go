package changes

import (
	"context"
	"errors"
	"time"
)

// wait sends what there is and blocks until there may be more, with a
// heartbeat now and then. It returns false when the feed is over.
func (w *changesWriter) wait() (more bool, err error) {
	if err := w.flush(); err != nil {
		return false, err
	}
	for {
		// What moves without passing the filter does not count.
		due := w.fresh.Add(w.p.timeout)
		if w.p.heartbeat > 0 {
			due = w.sent.Add(w.p.heartbeat)
		}
		ctx, cancel := context.WithDeadline(w.ctx, due)
		err := w.feed.Wait(ctx)
		cancel()
		switch {
		case err == nil:
			return true, nil
		case w.p.heartbeat > 0 && w.ctx.Err() == nil && w.feed.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			if err := w.heartbeat(); err != nil || w.removed() {
				return false, err
			}
		case w.over(err):
			return false, nil
		default:
			return false, err
		}
	}
}

// flush sends what there is. The first time that is at least a line end, so
// that the client sees the headers.
func (w *changesWriter) flush() error {
	if len(w.out.Buf) == 0 {
		if w.c.Response.Started() {
			return w.out.Err()
		}
		w.out.Buf = append(w.out.Buf, '\n')
	}
	w.sent = time.Now()
	if !w.p.feed.waits() {
		return w.out.Begin() // one that is kept to its end sends nothing before
	}
	return w.out.Flush()
}

// heartbeat sends a heartbeat.
func (w *changesWriter) heartbeat() error {
	w.out.Buf = append(w.out.Buf, w.p.feed.heartbeat()...)
	return w.flush()
}

// beat sends a heartbeat when one is due, and returns the time until the next one. The feed
// calls it while it waits for its filter (a client must not take that for a dead connection).
// An error of the connection stays in out and ends the feed at the next row.
func (w *changesWriter) beat() time.Duration {
	pause := w.p.pause()
	if w.out == nil {
		return pause
	}
	if left := pause - time.Since(w.sent); left > 0 {
		return left
	}
	_ = w.heartbeat()
	return pause
}

// usualPause is how long a normal feed says nothing while its filter lets nothing through,
// as in CouchDB.
const usualPause = 5 * time.Second

// pause is the longest time without a byte while a filter is waited for. A feed that sends no
// heartbeats otherwise sends one as often as it would end, as in CouchDB.
func (p *changesParams) pause() time.Duration {
	switch {
	case p.heartbeat > 0 && p.feed.waits():
		return p.heartbeat
	case p.heartbeat > 0:
		return min(p.heartbeat, usualPause)
	case p.feed.waits():
		return max(p.timeout, usualPause)
	}
	return usualPause
}
