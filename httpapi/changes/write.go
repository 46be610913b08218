package changes

import (
	"context"
	"errors"
	"strconv"
	"time"

	"divan/cluster"
	"divan/cluster/docformat"
	"divan/httpapi/core"
	"divan/shard/query"
	"divan/storage/doc"
	"divan/storage/fault"
)

// changesWriter writes one feed.
type changesWriter struct {
	c      *core.Call
	ctx    context.Context // ends with the request; of a feed that waits also when the server stops
	p      *changesParams
	feed   *cluster.Feed
	out    *core.Stream
	fields *query.Fields // nil for all
	once   bool          // the server stops: answer what there is and do not wait
	events bool          // the feed of database events: see db_updates.go
	rows   int
	sent   time.Time // when the last byte went out
	fresh  time.Time // when the last row was there, or the feed began
	// looked is, for a feed that looks documents up instead of scanning, the
	// number of changes when it began: what it has not shown counts as pending.
	looked *uint64
}

// run writes the feed from its first byte to its end.
func (w *changesWriter) run(longest time.Duration) error {
	if w.p.feed == feedNormal || w.p.feed == feedLongpoll {
		w.out.Buf = append(w.out.Buf, "{\"results\":[\n"...)
	}
	if longest > 0 && w.p.feed.waits() {
		var cancel context.CancelFunc
		w.ctx, cancel = context.WithTimeout(w.ctx, longest)
		defer cancel()
	}
	w.sent, w.fresh = time.Now(), time.Now()
	for {
		before := w.rows
		if err := w.drain(); err != nil {
			return err
		}
		if w.rows > before {
			w.fresh = time.Now()
		}
		if w.finished() {
			return w.end()
		}
		more, err := w.wait()
		if err != nil {
			return err
		}
		if !more {
			return w.end()
		}
	}
}

// finished reports whether the feed ends although the client would wait.
func (w *changesWriter) finished() bool {
	switch {
	case w.feed.Err() != nil: // drain took it for the end
		return true
	case w.p.feed == feedNormal, w.p.query.Descending, w.once, w.full(), w.removed():
		return true
	}
	return w.p.feed == feedLongpoll && w.rows > 0
}

// removed reports whether this node was taken out of its cluster: a feed that
// was open then would wait for changes that never reach this node.
func (w *changesWriter) removed() bool { return w.c.API.Deps.Meta.Removed() }

// full reports whether there are as many rows as were asked for.
func (w *changesWriter) full() bool {
	limit := w.p.query.Limit
	if limit == 0 && !w.events {
		limit = 1 // api.md section 20, row 15
	}
	return limit >= 0 && w.rows >= limit
}

// drain writes the rows there are.
func (w *changesWriter) drain() error {
	if w.p.feed.waits() && w.p.query.Filter.Kind != 0 {
		// Nothing may pass the filter for a long time: let the client see the
		// beginning of the answer.
		if err := w.flush(); err != nil {
			return err
		}
	}
	write := w.row
	if w.events {
		write = w.event
	}
	for (!w.events || !w.full()) && w.feed.Next() {
		if err := write(); err != nil {
			return err
		}
	}
	if w.out.Err() != nil {
		return w.out.Err()
	}
	if err := w.feed.Err(); err != nil && !w.over(err) {
		return err
	}
	return nil
}

// over reports whether err only says that the feed ends: the time is up, the server stops,
// or the database is gone. A client that went away is no such end: no client is left to
// tell. Nor is a copy whose time is up: the feed has failed with that error.
func (w *changesWriter) over(err error) bool {
	switch {
	case errors.Is(context.Cause(w.ctx), core.ErrFeedsEnd):
		return true
	case w.feed.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return w.p.feed.waits()
	}
	return w.p.feed.waits() && (fault.Is(err, fault.NotFound) || fault.Is(err, fault.Closed))
}

// row writes the current row.
func (w *changesWriter) row() error {
	out, row := w.out, w.feed.Row()
	numbered := w.rows%w.p.seqInterval == 0 // the first, then every n-th
	w.rows++
	switch w.p.feed {
	case feedEventSource:
		out.Buf = append(out.Buf, "data: "...)
	case feedNormal, feedLongpoll:
		if w.rows > 1 {
			out.Buf = append(out.Buf, ",\r\n"...)
		}
	case feedContinuous: // the rows end with lines
	}
	out.Buf = append(out.Buf, `{"seq":`...)
	out.Buf = w.appendSeq(out.Buf, numbered)
	out.Buf = appendChange(out.Buf, row)
	if w.p.query.IncludeDocs {
		if err := w.doc(row); err != nil {
			return err
		}
	}
	out.Buf = append(out.Buf, '}')
	switch w.p.feed {
	case feedContinuous:
		out.Buf = append(out.Buf, "\r\n"...)
	case feedEventSource:
		if numbered {
			out.Buf = w.appendSeq(append(out.Buf, "\nid: "...), true)
		}
		out.Buf = append(out.Buf, "\n\n"...)
	case feedNormal, feedLongpoll: // a comma comes with the next row
	}
	if len(out.Buf) >= core.StreamBuffer {
		w.sent = time.Now()
		return out.Spill()
	}
	return nil
}

// appendSeq appends the sequence of the current row as a JSON string, null
// for a row that has none because of seq_interval.
func (w *changesWriter) appendSeq(dst []byte, numbered bool) []byte {
	if !numbered {
		return append(dst, "null"...)
	}
	return append(w.feed.AppendSeq(append(dst, '"')), '"')
}

// appendChange appends a row from behind its sequence up to its document,
// without the closing brace.
func appendChange(dst []byte, row *cluster.ChangeRow) []byte {
	dst = append(dst, `,"id":`...)
	dst = doc.AppendString(dst, row.ID)
	dst = append(dst, `,"changes":[`...)
	for i, rev := range row.Leaves {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"rev":`...)
		dst = rev.AppendJSON(dst)
		dst = append(dst, '}')
	}
	dst = append(dst, ']')
	if row.Deleted {
		dst = append(dst, `,"deleted":true`...)
	}
	return dst
}

// doc appends the document of a row: all of it, or the fields that were
// selected. A document that was purged meanwhile is null.
func (w *changesWriter) doc(row *cluster.ChangeRow) error {
	out := w.out
	out.Buf = append(out.Buf, `,"doc":`...)
	switch {
	case row.Doc == nil:
		out.Buf = append(out.Buf, "null"...)
		return nil
	case w.fields == nil:
		return out.WriteDoc(w.ctx, row.Doc, w.p.style)
	}
	text := docformat.Style{EncodingInfo: w.p.style.EncodingInfo}.Append(nil, row.Doc)
	out.Buf = w.fields.Append(out.Buf, text)
	return nil
}

// pending is the number of changes that come after the last row.
func (w *changesWriter) pending() uint64 {
	if w.looked != nil {
		return *w.looked - min(uint64(w.rows), *w.looked)
	}
	return w.feed.Pending()
}

// end writes what comes after the last row.
func (w *changesWriter) end() error {
	if w.p.feed == feedEventSource {
		return w.out.Close()
	}
	buf := w.out.Buf
	if w.p.feed == feedContinuous {
		buf = append(buf, '{')
	} else {
		buf = append(buf, "\n],\n"...)
	}
	buf = append(buf, `"last_seq":`...)
	buf = doc.AppendString(buf, w.feed.LastSeq())
	if !w.events {
		buf = append(buf, `,"pending":`...)
		buf = strconv.AppendUint(buf, w.pending(), 10)
	}
	buf = append(buf, '}')
	if w.p.feed == feedContinuous && !w.events {
		buf = append(buf, '\r')
	}
	w.out.Buf = append(buf, '\n')
	return w.out.Close()
}
