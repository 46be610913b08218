package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"divan/replicator/endpoint"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/memory"
	"divan/storage/pause"
)

// maxURL is how long a request's address gets, in bytes.
const maxURL = 7000

// feed is the changes of the database. It goes on where it was when the
// connection breaks.
type feed struct {
	client *client
	q      endpoint.ChangesQuery
	last   endpoint.Seq
	end    endpoint.Seq // last_seq of the answer that is open: it may stand before the changes
	revs   []doc.Rev    // space for revisions of further rows

	answer *answer // nil: not open
	list   list
	cancel context.CancelFunc // ends the answer
	unbind func() bool        // cancel is bound to the context of a call

	broken  int  // times in a row that it broke without a row
	idle    int  // times in a row that it ended without a row
	ended   bool // there is no more
	getOnly bool // the server takes no POST of _changes
}

// Changes implements endpoint.Source.
func (d *Database) Changes(ctx context.Context, q endpoint.ChangesQuery) (endpoint.Feed, error) {
	f := &feed{client: d.client, q: q, last: q.Since}
	err := f.open(ctx)
	f.release()
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Last implements endpoint.Feed.
func (f *feed) Last() endpoint.Seq { return f.last }

// Close implements endpoint.Feed.
func (f *feed) Close() {
	f.ended = true
	f.shut()
}

// shut ends the answer that is open.
func (f *feed) shut() {
	if f.answer == nil {
		return
	}
	f.cancel()
	_ = f.answer.Body.Close() // nothing more is wanted of it
	f.list.close()
	f.answer, f.list, f.end = nil, list{}, ""
}

// bind makes the end of ctx the end of the answer, until release.
func (f *feed) bind(ctx context.Context) {
	if f.unbind == nil && f.answer != nil && ctx.Done() != nil {
		f.unbind = context.AfterFunc(ctx, f.cancel)
	}
}

func (f *feed) release() {
	if f.unbind != nil {
		f.unbind()
		f.unbind = nil
	}
}

// open asks for the changes behind the last that was seen.
func (f *feed) open(ctx context.Context) error {
	f.release()
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	a, err := f.ask(life)
	if !stop() {
		err = errors.Join(ctx.Err(), err)
	}
	if err == nil && a.status != http.StatusOK {
		err = f.refused(a)
		a = nil
	}
	if err != nil {
		cancel()
		if a != nil {
			_ = a.Body.Close() // the context has ended
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	f.answer, f.cancel = a, cancel
	f.list = list{stream: f.client.stream(life, a.Body, maxRow), member: "results", other: f.member}
	f.bind(ctx)
	return nil
}

// refused is the error of an answer that is no feed.
func (f *feed) refused(a *answer) error {
	if f.q.Filter.Function != "" && a.status == http.StatusNotFound {
		return f.client.refusal(a) // it may be the filter that is missing
	}
	switch a.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return f.client.unopened(a)
	}
	return f.client.refusal(a)
}

// ask sends the request.
func (f *feed) ask(ctx context.Context) (*answer, error) {
	q := &request{method: http.MethodGet, path: "_changes", query: f.query(), feed: true}
	body := f.body()
	if body == nil || f.getOnly {
		if body != nil {
			q.query += "&doc_ids=" + url.QueryEscape(string(doc.Lookup(body, "doc_ids")))
		}
		return f.client.do(ctx, q)
	}
	post := *q
	post.method, post.body = http.MethodPost, body
	a, err := f.client.do(ctx, &post)
	if err != nil || a.status != http.StatusMethodNotAllowed && a.status != http.StatusNotImplemented || f.q.Filter.Selector != nil {
		return a, err
	}
	if err := a.Body.Close(); err != nil {
		return nil, fault.Wrap(fault.Unavailable, "changes of "+f.client.url, err)
	}
	f.getOnly = true
	return f.ask(ctx)
}

// body returns the body of the request; nil for none.
func (f *feed) body() []byte {
	switch {
	case f.q.Filter.HasIDs:
		text := append([]byte(nil), `{"doc_ids":[`...)
		for i, id := range f.q.Filter.DocIDs {
			if i > 0 {
				text = append(text, ',')
			}
			text = doc.AppendString(text, id)
		}
		return append(text, "]}"...)
	case f.q.Filter.Selector != nil:
		text := append([]byte(nil), `{"selector":`...)
		return append(append(text, f.q.Filter.Selector...), '}')
	}
	return nil
}

// query is the query string of the request.
func (f *feed) query() string {
	var b strings.Builder
	b.WriteString("feed=normal")
	if f.q.Continuous {
		b.Reset()
		b.WriteString("feed=continuous")
	}
	style := "all_docs"
	if f.q.WinnerOnly {
		style = "main_only"
	}
	b.WriteString("&style=" + style)
	b.WriteString("&since=" + sinceParam(f.last))
	b.WriteString("&heartbeat=" + strconv.FormatInt(f.client.heartbeat(f.q.Heartbeat).Milliseconds(), 10))
	// A feed that waits has to name the place of each change: there may be no
	// further one for long.
	if f.q.Batch > 1 && !f.q.Continuous {
		b.WriteString("&seq_interval=" + strconv.Itoa(f.q.Batch))
	}
	switch {
	case f.q.Filter.HasIDs:
		b.WriteString("&filter=_doc_ids")
	case f.q.Filter.Selector != nil:
		b.WriteString("&filter=_selector")
	case f.q.Filter.Function != "":
		b.WriteString("&filter=" + url.QueryEscape(f.q.Filter.Function))
		for _, p := range f.q.Filter.Query {
			switch p[0] {
			case "feed", "style", "since", "heartbeat", "seq_interval", "filter": // ours: some servers take the last one
			default:
				b.WriteString("&" + url.QueryEscape(p[0]) + "=" + url.QueryEscape(p[1]))
			}
		}
	}
	return b.String()
}

// member reads what stands beside the changes.
func (f *feed) member(name string, value []byte) error {
	switch name {
	case "last_seq":
		seq, valid := seqOf(value)
		if !valid {
			return fault.Newf(fault.Unavailable, "the feed ended with an odd last_seq: %.200s", value)
		}
		f.end = seq
	case "error":
		return fault.Newf(fault.Unavailable, "the feed ended with %.200s", value)
	}
	return nil
}

// The size of one change at most, and of those that Next returns together, in
// bytes: ids are as long as the server likes.
const (
	maxRow  = 1 << 20
	maxRows = 1 << 20
)

// errNothingYet says that a continuous feed has nothing for now.
var errNothingYet = errors.New("nothing yet")

// Next implements endpoint.Feed.
func (f *feed) Next(ctx context.Context, rows []endpoint.Change) (int, error) {
	f.bind(ctx)
	defer f.release()
	n := 0
	for size := 0; n < len(rows) && size < maxRows; {
		if f.ended {
			break
		}
		if f.answer == nil {
			if n > 0 {
				break
			}
			if err := f.reopen(ctx); err != nil {
				return 0, err
			}
		}
		took, err := f.row(&rows[n], n == 0)
		switch {
		case err == nil && took:
			size += rows[n].Size()
			n++
			f.broken, f.idle = 0, 0
		case err == nil:
		case errors.Is(err, errNothingYet):
			return n, nil
		case ctx.Err() != nil:
			f.shut()
			return n, ctx.Err()
		default:
			if err := f.stopped(err); err != nil {
				return n, err
			}
		}
	}
	if n == 0 && len(rows) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// stopped decides what the end of the answer means: nil, and the feed is
// opened again or has ended.
func (f *feed) stopped(err error) error {
	if errors.Is(err, io.EOF) && f.end != "" { // an answer that breaks off may have left out changes before it
		f.last = f.end
	}
	f.shut()
	switch {
	case errors.Is(err, io.EOF) && !f.q.Continuous:
		f.ended = true
		return nil
	case errors.Is(err, io.EOF):
		f.idle++
		return nil
	case errors.Is(err, errLong): // it would be so again
		return unread("the changes of "+f.client.url, err)
	case errors.Is(err, memory.ErrFull), errors.Is(err, memory.ErrNever):
		return err
	}
	if f.broken++; f.broken > f.client.options.Retries {
		return unread("the changes of "+f.client.url, err)
	}
	return nil
}

// idleMost is the longest pause before a feed is opened again that the server
// ends by itself without a change.
const idleMost = 5 * time.Second

// reopen opens the feed after it has broken, or after the server has ended it.
func (f *feed) reopen(ctx context.Context) error {
	wait := time.Duration(0)
	switch {
	case f.broken > 0:
		wait = min(retryFirst<<min(f.broken-1, 20), retryMost)
	case f.idle > 0:
		wait = min(retryFirst<<min(f.idle-1, 20), idleMost)
	}
	if err := pause.For(ctx, wait); err != nil {
		return err
	}
	return f.open(ctx)
}

// row reads one row; took is false for one that is no change. wait tells
// whether a continuous feed waits for it.
func (f *feed) row(c *endpoint.Change, wait bool) (took bool, err error) {
	var text []byte
	if f.q.Continuous {
		text, err = f.line(wait)
	} else {
		text, err = f.list.next()
	}
	if err != nil {
		return false, err
	}
	r, ok := parseRow(text)
	if ok && r.id == nil && r.lastSeq != nil {
		return false, f.member("last_seq", r.lastSeq)
	}
	if ok && r.err != nil && r.id == nil {
		return false, f.member("error", r.err)
	}
	if cap(f.revs)-len(f.revs) < 1 {
		f.revs = make([]doc.Rev, 0, revsSpace)
	}
	if ok {
		f.revs, ok = r.change(c, f.revs)
	}
	if !ok {
		return false, errRow(text)
	}
	if c.Seq != "" {
		f.last, f.end = c.Seq, "" // what is told last counts
	}
	return true, nil
}

// revsSpace is for how many revisions space is made at once.
const revsSpace = 128

// line reads the next object of a continuous feed.
func (f *feed) line(wait bool) ([]byte, error) {
	s := f.list.stream
	for {
		if c, ok := s.ready(); ok {
			if c != '{' {
				return nil, errGarbage(c, '{')
			}
			if text, ok := s.whole(); ok {
				return text, nil
			}
		}
		if !wait {
			return nil, errNothingYet
		}
		if err := s.fill(); err != nil {
			if _, begun := s.ready(); begun {
				err = short(err)
			}
			return nil, err
		}
		if _, ok := s.ready(); !ok {
			s.rest() // a sign of life only
		}
	}
}
