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
	return w.out.Flush()
}

// heartbeat sends a heartbeat.
func (w *changesWriter) heartbeat() error {
	w.out.Buf = append(w.out.Buf, w.p.feed.heartbeat()...)
	return w.flush()
}

// beat sends a heartbeat when one is due. The feed calls it while a filter
// lets nothing through (a client must not take that for a dead connection).
// An error of the connection stays in out and ends the feed at the next row.
func (w *changesWriter) beat() {
	if w.out != nil && time.Since(w.sent) >= w.p.heartbeat {
		_ = w.heartbeat()
	}
}
