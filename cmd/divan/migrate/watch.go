package migrate

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"divan/cmd/divan/httpclient"
	"divan/replicator/endpoint"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// selectedSource is a source that passes on the changes of some documents only,
// and tells the meter how far the feed is.
type selectedSource struct {
	endpoint.Source
	keep  func(id string) bool
	meter *meter
}

// Changes opens a feed.
func (s *selectedSource) Changes(ctx context.Context, q endpoint.ChangesQuery) (endpoint.Feed, error) {
	feed, err := s.Source.Changes(ctx, q)
	if err != nil {
		return nil, err
	}
	out := &selectedFeed{Feed: feed, source: s}
	if !q.Filter.HasIDs { // all documents, of which some may be done
		if left, err := s.Pending(ctx, q.Since); err == nil && left >= 0 {
			out.done = max(0, s.meter.total-left)
		}
	}
	s.meter.begin(out.done)
	return out, nil
}

// selectedFeed is a feed of such a source.
type selectedFeed struct {
	endpoint.Feed
	source *selectedSource
	done   int64
}

// Next fills rows with changes that are kept.
func (f *selectedFeed) Next(ctx context.Context, rows []endpoint.Change) (int, error) {
	for {
		n, err := f.Feed.Next(ctx, rows)
		f.done += int64(n)
		kept := 0
		for i := range rows[:n] {
			if f.source.keep(rows[i].ID) {
				rows[kept] = rows[i]
				kept++
			}
		}
		f.source.meter.told(f.done, kept)
		if kept > 0 || err != nil || n == 0 {
			return kept, err
		}
	}
}

// maxRefusals is how many refused revisions of a database are remembered.
const maxRefusals = 10_000

// refusals are the revisions that the target did not take. What it takes later
// is none any more.
type refusals struct {
	mu    sync.Mutex
	byDoc map[revision]error
	more  int // beyond maxRefusals
}

type revision struct {
	id  string
	rev string
}

// count is how many there are.
func (r *refusals) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byDoc) + r.more
}

func (r *refusals) add(id string, rev doc.Rev, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := revision{id, rev.String()}
	if _, known := r.byDoc[key]; !known && len(r.byDoc) >= maxRefusals {
		r.more++
		return
	}
	if r.byDoc == nil {
		r.byDoc = make(map[revision]error)
	}
	r.byDoc[key] = err
}

// taken forgets the refusal of a document that was taken after all.
func (r *refusals) taken(d *endpoint.Doc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.byDoc) > 0 {
		delete(r.byDoc, revision{d.ID, d.Path.Rev().String()})
	}
}

// watchedTarget is a target that counts what it takes and remembers what it
// refuses.
type watchedTarget struct {
	endpoint.Target
	meter    *meter
	refusals *refusals
}

// Missing tells which revisions the target does not have.
func (t *watchedTarget) Missing(ctx context.Context, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	missing, err := t.Target.Missing(ctx, ids)
	if err == nil {
		t.meter.lacks(len(ids), missing)
	}
	return missing, err
}

// Write stores revisions.
func (t *watchedTarget) Write(ctx context.Context, docs []*endpoint.Doc) ([]endpoint.Refused, error) {
	refused, err := t.Target.Write(ctx, docs)
	if err != nil {
		if len(docs) == 1 && refusing(err) {
			t.refusals.add(docs[0].ID, docs[0].Path.Rev(), err)
			t.meter.settled(docs[0].ID)
		}
		return refused, err
	}
	left := make(map[revision]bool, len(refused))
	for _, r := range refused {
		t.refusals.add(r.ID, r.Rev, r.Err)
		t.meter.settled(r.ID)
		left[revision{r.ID, r.Rev.String()}] = true
	}
	for _, d := range docs {
		if len(left) == 0 || !left[revision{d.ID, d.Path.Rev().String()}] {
			t.took(d)
		}
	}
	return refused, nil
}

// WriteWith stores a revision with large attachments, whose bytes count as they
// go by.
func (t *watchedTarget) WriteWith(ctx context.Context, d *endpoint.Doc, contents endpoint.Contents) error {
	passing := &meteredContents{Contents: contents, meter: t.meter}
	err := t.Target.WriteWith(ctx, d, passing)
	t.meter.bytes.Add(-passing.bytes.Load()) // took counts them, and what was not taken does not count
	if err != nil {
		if refusing(err) {
			t.refusals.add(d.ID, d.Path.Rev(), err)
			t.meter.settled(d.ID)
		}
		return err
	}
	t.took(d)
	return nil
}

// meteredContents are attachments whose bytes count as they are read.
type meteredContents struct {
	endpoint.Contents
	meter *meter
	bytes atomic.Int64
}

// Next opens the next attachment.
func (c *meteredContents) Next(ctx context.Context) (io.ReadCloser, error) {
	r, err := c.Contents.Next(ctx)
	if err != nil {
		return nil, err
	}
	return &meteredReader{r, c}, nil
}

type meteredReader struct {
	io.ReadCloser
	contents *meteredContents
}

// Read implements io.Reader.
func (r *meteredReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.contents.bytes.Add(int64(n))
	r.contents.meter.bytes.Add(int64(n))
	return n, err
}

// took counts a document with its attachments.
func (t *watchedTarget) took(d *endpoint.Doc) {
	t.refusals.taken(d)
	size := int64(len(d.Body))
	for i := range d.Atts {
		if !d.Atts[i].Stub {
			size += d.Atts[i].Length
		}
	}
	t.meter.wrote(size)
	t.meter.settled(d.ID)
}

// refusing reports whether an error is about the document, so that no other
// attempt would help.
func refusing(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && !endpoint.Retryable(err) && f.Kind != fault.Internal
}

// reason returns the text of an error for a person: one line.
func reason(err error) string {
	text := err.Error()
	var r *httpclient.Refusal
	var f *fault.Error
	if errors.As(err, &r) && r.Reason != "" {
		text = r.Reason
	} else if errors.As(err, &f) && f.Reason != "" {
		text = f.Error() // with its cause, but without what led to it
	}
	return strings.Join(strings.Fields(text), " ")
}
