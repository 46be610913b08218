package designdocs

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"divan/cluster"
	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// load reads the design documents of a database from a majority of the copies of each range, or
// from those that there are. before is the set that was loaded last, which stands for a range none
// of whose copies can be reached: no client could have written to it either.
func (c *Cache) load(ctx context.Context, tail, name string, before *set) (*set, error) {
	db, err := c.o.DB(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("design documents of %s: %w", name, err)
	}
	if db.Instance() != tail {
		return nil, errOther(name)
	}
	asked := db.Asking()
	ctx, cancel := asked.Deadline(ctx)
	defer cancel()
	ranges := db.Ranges()
	parts := make([][]*Document, len(ranges))
	err = fanout.Each(len(ranges), func(i int) error {
		l := &loading{cache: c, db: db, before: before, copies: ranges[i]}
		var err error
		parts[i], err = l.read(ctx)
		if err != nil && !fault.Is(err, fault.NoCopy) && before != nil && len(before.ranges) == len(ranges) {
			parts[i], err = before.ranges[i], nil
		}
		return err
	})
	if err != nil {
		return nil, asked.Explain(ctx, err)
	}
	return newSet(parts), nil
}

// loading is the reading of one range. As a decider it counts the copies that have
// answered.
type loading struct {
	cache  *Cache
	db     *cluster.DB
	before *set
	copies []ring.Replica

	answers [][]shard.Doc
	err     error
}

// read returns the design documents in the range.
func (l *loading) read(ctx context.Context) ([]*Document, error) {
	l.answers, l.err = l.answers[:0], nil
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := l.db.Asking()
	r := fanout.HedgedRequest[ring.Replica, []shard.Doc]{
		Database: asked, Copies: l.copies, Decider: l, Call: listCopy,
		Latency: asked.Reads(), Patience: asked.Reads().Patience(fanout.ReadPatience),
	}
	if err := r.Run(ctx, l.need()); err != nil {
		l.err = quorum.Telling(l.err, err)
	}
	if len(l.answers) == 0 {
		if l.err == nil {
			l.err = fanout.NoCopy()
		}
		return nil, l.err
	}
	return l.merge(ctx)
}

func (l *loading) need() int { return fanout.Majority(l.copies) }

// Request implements fanout.Decider.
func (l *loading) Request(_ int, t ring.Replica) (ring.Replica, bool) { return t, true }

// Take implements fanout.Decider.
func (l *loading) Take(a fanout.Answer[[]shard.Doc], _ int) quorum.Step {
	if a.Err != nil {
		l.err = quorum.Telling(l.err, a.Err)
		return quorum.Another
	}
	l.answers = append(l.answers, a.Got)
	if len(l.answers) >= l.need() {
		return quorum.Enough
	}
	return quorum.Wait
}

// listCopy reads the design documents of one copy.
func listCopy(ctx context.Context, rep replica.Copy, t ring.Replica) ([]shard.Doc, error) {
	rows, err := replica.AllDocs.On(ctx, rep, shard.DocsRequest{
		Copy: t.Name, Lo: doc.DesignPrefix, Hi: "_design0", HasHi: true, HiExclusive: true, IncludeDocs: true,
	})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []shard.Doc
	var b shard.RowBatch
	for more := true; more; {
		if more, err = rows.Next(&b); err != nil {
			return nil, err
		}
		for i := range b.Rows {
			out = append(out, cloned(b.Rows[i].Doc))
		}
	}
	return out, nil
}

// cloned returns a document that shares nothing with the batch it came in.
func cloned(d *shard.Doc) shard.Doc {
	out := shard.Doc{
		ID: strings.Clone(d.ID), Rev: doc.Rev{Pos: d.Rev.Pos, ID: strings.Clone(d.Rev.ID)},
		Body: bytes.Clone(d.Body), Atts: slices.Clone(d.Atts),
	}
	for i := range out.Atts {
		a := &out.Atts[i]
		a.Name, a.ContentType = strings.Clone(a.Name), strings.Clone(a.ContentType)
	}
	return out
}

// merge makes documents of the answers. One that not all copies show in the same
// revision is read as any document is.
func (l *loading) merge(ctx context.Context) ([]*Document, error) {
	seen := map[string]int{} // how many copies show the revision of the first that has the document
	first := map[string]*shard.Doc{}
	for _, answer := range l.answers {
		for i := range answer {
			d := &answer[i]
			switch known := first[d.ID]; {
			case known == nil:
				first[d.ID], seen[d.ID] = d, 1
			case known.Rev == d.Rev:
				seen[d.ID]++
			}
		}
	}
	var out []*Document
	for id, d := range first {
		if seen[id] < len(l.answers) {
			var err error
			switch d, err = l.db.Open(ctx, cluster.OpenOptions{ID: id}); {
			case fault.Is(err, fault.NotFound):
				continue
			case err != nil:
				return nil, fmt.Errorf("read %s: %w", id, err)
			}
		}
		known := l.before.same(d)
		if known == nil {
			known = newDocument(l.cache.o.Scripts, l.db.Instance(), d)
		}
		out = append(out, known)
	}
	return out, nil
}
