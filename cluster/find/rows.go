package find

import (
	"context"
	"slices"
	"strings"
	"time"

	"divan/cluster"
	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/shard/find"
	"divan/shard/query/plan"
	"divan/shard/view"
	"divan/storage/doc"
)

// Rows is an answer, in order:
//
//	for rows.Next() { use(rows.Doc()) }
//	err := rows.Err()
//	rows.Close()
//
// It belongs to one goroutine. What it tells besides the rows is right behind the
// last one.
type Rows struct {
	ctx       context.Context // of the request
	db        *cluster.DB
	find      *plan.Find
	plan      *plan.Plan
	of        *view.Definition // that of the index; nil: all documents
	started   time.Time
	threshold int64 // see plan.ScanWarning

	parts  []*part
	order  *quorum.Merge[place]
	best   int        // the part whose row was handed out last; -1: none
	quorum *rereading // nil: copies have matched
	text   *textRows  // nil: the index is none of full text

	skip  int
	left  int // rows that may still be handed out
	row   row
	given int64
	sort  []byte // of the last row that was given out
	id    []byte
	err   error
}

// row is a document with its place.
type row struct {
	place
	doc []byte
}

// Stats are figures about an answer (api.md section 14.1).
type Stats struct {
	Keys, Docs, QuorumDocs uint64 // examined
	Results                int64
	Time                   time.Duration
	// What the client is warned of: no index serves the query, another one than the
	// client has named does, and much was read for few results.
	Unindexed, Ignored, Wasteful bool
}

// Next moves to the next document. It returns false at the end and after an error.
func (r *Rows) Next() bool {
	if r.left == 0 || r.err != nil {
		return false
	}
	for {
		var ok bool
		switch {
		case r.text != nil:
			ok, r.err = r.text.next(&r.row)
		case r.quorum != nil:
			ok, r.err = r.quorum.next(&r.row)
		default:
			ok, r.err = r.merged(&r.row)
		}
		if r.err != nil {
			r.err = r.db.Asking().Explain(r.ctx, r.err)
		}
		if !ok || r.err != nil {
			r.left = 0
			return false
		}
		if r.skip > 0 {
			r.skip--
			continue
		}
		r.left--
		r.given++
		r.sort, r.id = append(r.sort[:0], r.row.sort...), append(r.id[:0], r.row.id...)
		return true
	}
}

// merged moves to the next row of all parts.
func (r *Rows) merged(to *row) (bool, error) {
	if r.order == nil {
		if err := r.begin(); err != nil {
			return false, err
		}
	}
	if r.best >= 0 {
		r.parts[r.best].at++
		if err := r.stand(r.best); err != nil {
			return false, err
		}
	}
	best, ok := r.order.Best()
	if !ok {
		return false, nil
	}
	r.best = best
	found := r.parts[best].row()
	*to = row{place{found.Sort, found.ID}, found.Doc}
	return true, nil
}

// begin moves all parts to their first rows: side by side those that have none in
// their first batch.
func (r *Rows) begin() error {
	r.order, r.best = quorum.NewMerge(len(r.parts), order(r.plan.Desc)), -1
	var rest []*part
	for _, p := range r.parts {
		more, err := p.turn()
		if err != nil {
			return err
		}
		if more && p.row() == nil {
			rest = append(rest, p)
		}
	}
	if err := fanout.Each(len(rest), func(i int) error { return rest[i].fill() }); err != nil {
		return err
	}
	for i := range r.parts {
		r.set(i)
	}
	return nil
}

// stand moves a part to a row if it has none, and tells the merge.
func (r *Rows) stand(i int) error {
	if err := r.parts[i].fill(); err != nil {
		return err
	}
	r.set(i)
	return nil
}

func (r *Rows) set(i int) {
	if found := r.parts[i].row(); found != nil {
		r.order.Set(i, place{found.Sort, found.ID})
	} else {
		r.order.End(i)
	}
}

// Doc returns what is wanted of the current document, as JSON. It is valid until the
// next call of Next.
func (r *Rows) Doc() []byte { return r.row.doc }

// Err returns what ended the rows early, nil when there was nothing.
func (r *Rows) Err() error { return r.err }

// Count reads all there is and returns the number of matches: for a query with Count.
func (r *Rows) Count() (int64, error) {
	if r.text != nil {
		n, err := r.text.count()
		r.given = n
		return n, r.db.Asking().Explain(r.ctx, err)
	}
	err := fanout.Each(len(r.parts), func(i int) error { return r.parts[i].drain() })
	for _, p := range r.parts {
		r.given += int64(p.looks.Matches)
	}
	return r.given, r.db.Asking().Explain(r.ctx, err)
}

// Bookmark returns the place behind the last row, as JSON.
func (r *Rows) Bookmark() []byte {
	if r.given == 0 {
		return r.find.SentBookmark()
	}
	return doc.AppendString(nil, r.plan.Bookmark(r.sort, string(r.id)).String())
}

// Empty reports that the query is one that CouchDB does not run, and whose answer has
// no bookmark and no figures.
func (r *Rows) Empty() bool { return r.plan.Empty }

// unread returns how many rows were read and not taken.
func (r *Rows) unread() (n uint64) {
	if r.order == nil {
		return 0
	}
	for i, p := range r.parts {
		n += uint64(len(p.rows) - p.at)
		if i == r.best && p.row() != nil {
			n--
		}
	}
	return n
}

// Stats returns what the answer took. Of the rows that all parts have read ahead one
// counts, so that the figures do not depend on how many parts there are: CouchDB stops
// at the first row that is too many.
func (r *Rows) Stats() Stats {
	var looks find.Figures
	for _, p := range r.parts {
		looks.Add(p.looks)
	}
	if n := r.unread(); n > 1 {
		looks.Keys -= n - 1
		looks.Docs -= min(n-1, looks.Docs)
	}
	out := Stats{Keys: looks.Keys, Docs: looks.Docs, Results: r.given, Time: time.Since(r.started), Unindexed: r.plan.Index.AllDocs(), Ignored: r.plan.Ignored}
	if r.text != nil {
		out.Keys, out.Docs = r.text.examined, r.text.examined
	}
	if r.quorum != nil {
		out.QuorumDocs = r.quorum.examined
	}
	out.Wasteful = r.scanWarning(&out) != ""
	return out
}

// Warning returns what the client is told about the way it was answered, lines one
// below the other; empty: nothing.
func (r *Rows) Warning() string {
	lines := r.plan.Warnings
	s := r.Stats()
	if more := r.scanWarning(&s); more != "" {
		lines = append(slices.Clip(lines), more)
	}
	return strings.Join(lines, "\n")
}

// scanWarning tells that much was read for few results; empty: it was not.
func (r *Rows) scanWarning(s *Stats) string {
	return plan.ScanWarning(int64(max(s.Docs, s.QuorumDocs)), s.Results, r.threshold)
}

// Close ends the reading and waits for its goroutines. It must be called.
func (r *Rows) Close() {
	for _, p := range r.parts {
		if p != nil {
			p.Close()
		}
	}
	if r.quorum != nil {
		r.quorum.window.Close()
	}
	if r.text != nil {
		r.text.close()
	}
}
