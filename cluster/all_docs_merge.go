package cluster

import (
	"context"

	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/cluster/sequence"
	"divan/shard"
	"divan/shard/ring"
)

// listings lists documents by id.
type listings struct {
	*replicaSet
	totals *totals
	locals *localDocs
}

// AllDocs lists documents by id: a range in the order of the raw bytes of the
// ids, merged from one copy per range of the ring, or the documents of
// DocsQuery.Keys. Total counts the namespace (or the partition), Offset the
// documents before the first row, skipped ones included; both are -1 for local
// documents, and Offset with keys. UpdateSeq is empty with keys.
//
// The rows of one shard are of one moment; those of different shards may be of
// slightly different ones. A listing of a deleted database fails.
func (d *listings) AllDocs(ctx context.Context, q DocsQuery) (*DocRows, error) {
	if q.Partition != "" {
		if err := d.checkPartition(q.Partition); err != nil {
			return nil, err
		}
	}
	if q.HasKeys {
		return d.listKeys(ctx, q)
	}
	if q.Namespace == LocalDocs {
		return d.listLocal(ctx, q)
	}
	picked, err := d.holding(q.Partition)
	if err != nil {
		return nil, err
	}
	m, err := d.openMerge(ctx, picked, q.Descending, rangeOpener(q, len(picked)))
	if err != nil {
		return nil, err
	}
	rows := &DocRows{source: m, skip: max(q.Skip, 0), left: q.Limit}
	if err := d.describe(ctx, rows, m, q, picked); err != nil {
		m.close()
		return nil, err
	}
	return rows, nil
}

// listKeys is AllDocs with keys.
func (d *listings) listKeys(ctx context.Context, q DocsQuery) (*DocRows, error) {
	rows := &DocRows{Total: -1, Offset: -1, left: NoLimit, source: newKeyed(ctx, d, q)}
	if q.Namespace == LocalDocs {
		return rows, nil
	}
	picked, err := d.holding(q.Partition)
	if err != nil {
		return nil, err
	}
	if space := spaceOf(&q); space.bounded {
		total, _, err := d.sizeOf(ctx, picked, space)
		rows.Total = total
		return rows, err
	}
	infos, err := d.totals.infos(ctx, picked)
	if err != nil {
		return nil, err
	}
	rows.Total = 0
	for _, in := range infos {
		rows.Total += int64(in.Live)
	}
	return rows, nil
}

// describe fills in what a listing tells besides its rows.
func (d *listings) describe(ctx context.Context, rows *DocRows, m *merged, q DocsQuery, picked []ring.Replica) error {
	var live, before int64
	for _, p := range m.parts {
		live += int64(p.Head.Total)
		before += int64(p.Head.Before)
	}
	rows.Total = live
	if space := spaceOf(&q); space.bounded {
		total, ahead, err := d.sizeOf(ctx, picked, space)
		if err != nil {
			return err
		}
		rows.Total = total
		if q.Descending {
			ahead = live - ahead - total
		}
		before = max(before-ahead, 0)
	}
	rows.Offset = min(before+int64(rows.skip), rows.Total)
	if !q.UpdateSeq {
		return nil
	}
	if q.Partition != "" {
		info, err := d.totals.Info(ctx)
		if err != nil {
			return err
		}
		rows.UpdateSeq = info.UpdateSeq
		return nil
	}
	marks := make([]sequence.Mark, len(m.parts))
	for i, p := range m.parts {
		marks[i] = sequence.Mark{Begin: picked[i].Begin, End: picked[i].End, Copy: sequence.PrefixOf(p.Head.UUID), Seq: p.Head.Seq}
	}
	rows.UpdateSeq = sequence.Of(marks).String()
	return nil
}

// sizeOf counts the live documents in a space, and those before it in
// ascending order.
func (d *listings) sizeOf(ctx context.Context, picked []ring.Replica, space interval) (size, before int64, err error) {
	los, his := make([]int64, len(picked)), make([]int64, len(picked))
	err = d.onEach(picked, func(i int) error {
		var err error
		if los[i], err = d.before(ctx, picked[i], space.lo); err == nil {
			his[i], err = d.before(ctx, picked[i], space.hi)
		}
		return err
	})
	for i := range picked {
		before += los[i]
		size += his[i] - los[i]
	}
	return max(size, 0), before, d.explain(ctx, err)
}

// before counts the live documents of a range whose ids are below id.
func (d *listings) before(ctx context.Context, of ring.Replica, id string) (int64, error) {
	return ask(ctx, d.replicaSet, d.routing.SameRange(of), func(ctx context.Context, rep replica.Copy, t ring.Replica) (int64, error) {
		docs, err := replica.AllDocs.On(ctx, rep, shard.DocsRequest{Copy: t.Name, Lo: id, Limit: 1})
		if err != nil {
			return 0, err
		}
		docs.Close()
		return int64(docs.Head.Before), nil
	})
}

// merged is the rows of several copies in one order.
type merged struct {
	db    *replicaSet
	parts []*docPart
	order *quorum.Merge[string]
	last  int // the part whose row was handed out last; -1: none
}

// rangeOpener opens what a query selects of a copy.
func rangeOpener(q DocsQuery, n int) opener {
	ids := spaceOf(&q).within(&q)
	req := shard.DocsRequest{
		Lo: ids.lo, Hi: ids.hi, HasHi: ids.bounded, HiExclusive: true, Desc: q.Descending,
		IncludeDocs: q.IncludeDocs, Conflicts: q.Conflicts, Limit: quorum.Share(q.Skip, q.Limit, n),
	}
	return func(ctx context.Context, rep replica.Copy, t ring.Replica, behind string) (replica.Docs, error) {
		mine := req
		mine.Copy = t.Name
		switch {
		case behind == "":
		case mine.Desc:
			mine.Hi, mine.HasHi, mine.HiExclusive = behind, true, true
		default:
			mine.Lo, mine.LoExclusive = behind, true
		}
		return replica.AllDocs.On(ctx, rep, mine)
	}
}

// openMerge opens a listing on every chosen copy.
func (d *listings) openMerge(ctx context.Context, picked []ring.Replica, desc bool, open opener) (*merged, error) {
	m := &merged{db: d.replicaSet, parts: make([]*docPart, len(picked)), order: quorum.NewMerge(len(picked), quorum.ByID(desc)), last: -1}
	err := d.onEach(picked, func(i int) error {
		p := d.newDocPart(ctx, d.routing.SameRange(picked[i]), open)
		if err := p.Start(); err != nil {
			return err
		}
		m.parts[i] = p
		return nil
	})
	if err != nil {
		m.close()
		return nil, d.explain(ctx, err)
	}
	return m, nil
}

func (m *merged) next() (*shard.Row, error) {
	if m.last < 0 {
		for i := range m.parts {
			if err := m.turn(i); err != nil {
				return nil, err
			}
		}
	} else if err := m.advance(m.last); err != nil {
		return nil, err
	}
	i, ok := m.order.Best()
	if !ok {
		return nil, nil
	}
	m.last = i
	p := m.parts[i]
	return &p.rows[p.at], nil
}

// advance moves a part to its next row.
func (m *merged) advance(i int) error {
	p := m.parts[i]
	if p.at++; p.at < len(p.rows) {
		m.order.Set(i, p.rows[p.at].ID)
		return nil
	}
	return m.turn(i)
}

// turn moves a part to its next batch.
func (m *merged) turn(i int) error {
	p := m.parts[i]
	p.at = 0
	for {
		b, err := p.batch()
		if err != nil {
			return m.db.explain(p.Ctx, err)
		}
		if b == nil {
			p.rows = nil
			m.order.End(i)
			return nil
		}
		if p.rows = b.Rows; len(p.rows) > 0 {
			m.order.Set(i, p.rows[0].ID)
			return nil
		}
	}
}

func (m *merged) close() {
	for _, p := range m.parts {
		if p != nil {
			p.Close()
		}
	}
}
