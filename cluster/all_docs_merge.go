package cluster

import (
	"context"
	"math"

	"divan/cluster/quorum"
	"divan/shard"
)

// AllDocs lists documents by id: a range in the order of the raw bytes of the
// ids, merged from one copy per range of the ring, or the documents of
// DocsQuery.Keys. Total counts the namespace (or the partition), Offset the
// documents before the first row, skipped ones included; both are -1 for local
// documents, and Offset with keys. UpdateSeq is empty with keys.
//
// The rows of one shard are of one moment; those of different shards may be of
// slightly different ones. A listing of a deleted database fails.
func (d *DB) AllDocs(ctx context.Context, q DocsQuery) (*DocRows, error) {
	if q.Partition != "" {
		if err := d.partitioned(q.Partition); err != nil {
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
	m, err := d.openMerge(picked, q.Descending, rangeOpener(ctx, q, len(picked)))
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
func (d *DB) listKeys(ctx context.Context, q DocsQuery) (*DocRows, error) {
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
	infos, err := d.infos(ctx, picked)
	if err != nil {
		return nil, err
	}
	rows.Total = 0
	for _, in := range infos {
		rows.Total += int64(in.Live)
	}
	return rows, nil
}

// holding returns one live copy per range, or that of a partition only.
func (d *DB) holding(partition string) ([]target, error) {
	picked, err := d.covered()
	if err != nil || partition == "" {
		return picked, err
	}
	begin := d.owner(partitionStart(partition)).Begin
	for i := range picked {
		if picked[i].Contains(begin) {
			return picked[i : i+1], nil
		}
	}
	return nil, errNoCopy()
}

// describe fills in what a listing tells besides its rows.
func (d *DB) describe(ctx context.Context, rows *DocRows, m *merged, q DocsQuery, picked []target) error {
	var live, before int64
	for _, p := range m.parts {
		live += int64(p.head.Total)
		before += int64(p.head.Before)
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
		info, err := d.Info(ctx)
		if err != nil {
			return err
		}
		rows.UpdateSeq = info.UpdateSeq
		return nil
	}
	marks := make([]mark, len(m.parts))
	for i, p := range m.parts {
		marks[i] = mark{begin: picked[i].Begin, end: picked[i].End, copy: prefixOf(p.head.UUID), seq: p.head.Seq}
	}
	rows.UpdateSeq = Seq{marks: marks}.String()
	return nil
}

// sizeOf counts the live documents in a space, and those before it in
// ascending order.
func (d *DB) sizeOf(ctx context.Context, picked []target, space interval) (size, before int64, err error) {
	count := func(id string) int64 {
		var n int64
		for _, t := range picked {
			if err != nil {
				return 0
			}
			var head docsHead
			if head, err = d.headOf(ctx, t, id); err == nil {
				n += int64(head.Before)
			}
		}
		return n
	}
	before = count(space.lo)
	size = count(space.hi) - before
	return max(size, 0), before, d.explain(err)
}

// headOf opens a listing that begins at id only for what it tells about it.
func (d *DB) headOf(ctx context.Context, t target, id string) (docsHead, error) {
	rep := d.c.replica(t.node)
	if rep == nil {
		return docsHead{}, errNodeDown(t.node)
	}
	head, stream, err := rep.AllDocs(ctx, shard.DocsRequest{Copy: t.name, Lo: id, Limit: 1})
	if err != nil {
		return docsHead{}, err
	}
	stream.Close()
	return head, nil
}

// merged is the rows of several copies in one order.
type merged struct {
	db    *DB
	parts []*docPart
	order *quorum.Merge
	last  int // the part whose row was handed out last; -1: none
}

// docPart is the rows of one copy.
type docPart struct {
	head   docsHead
	stream docStream
	ahead  ahead[shard.RowBatch]
	rows   []shard.Row // of the current batch
	at     int
}

// opener opens the listing of one copy.
type opener func(rep replica, name string) (docsHead, docStream, error)

// rangeOpener opens what a query selects of a copy.
func rangeOpener(ctx context.Context, q DocsQuery, n int) opener {
	ids := spaceOf(&q).within(&q)
	req := shard.DocsRequest{
		Lo: ids.lo, Hi: ids.hi, HasHi: ids.bounded, HiExclusive: true, Desc: q.Descending,
		IncludeDocs: q.IncludeDocs, Conflicts: q.Conflicts, Limit: rowsHint(q.Skip, q.Limit, n),
	}
	return func(rep replica, name string) (docsHead, docStream, error) {
		mine := req
		mine.Copy = name
		return rep.AllDocs(ctx, mine)
	}
}

// openMerge opens a listing on every chosen copy.
func (d *DB) openMerge(picked []target, desc bool, open opener) (*merged, error) {
	m := &merged{db: d, parts: make([]*docPart, len(picked)), order: quorum.NewMerge(len(picked), desc), last: -1}
	err := d.onEach(picked, func(i int) error {
		rep := d.c.replica(picked[i].node)
		if rep == nil {
			return errNodeDown(picked[i].node)
		}
		head, stream, err := open(rep, picked[i].name)
		if err != nil {
			return err
		}
		m.parts[i] = &docPart{head: head, stream: stream, ahead: ahead[shard.RowBatch]{read: stream.Next}}
		return nil
	})
	if err != nil {
		m.close()
		return nil, d.explain(err)
	}
	return m, nil
}

// onEach calls f for every one of the chosen copies, at once unless all are on
// this node, where opening is a matter of microseconds.
func (d *DB) onEach(picked []target, f func(i int) error) error {
	if !d.local(picked) {
		return each(len(picked), f)
	}
	for i := range picked {
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}

// rowsHint says how many rows of one of n shards a listing will most likely
// need: hashes spread ids evenly, so its share and a margin of two standard
// deviations. 0 means that there is no limit.
func rowsHint(skip, limit, n int) int {
	if limit < 0 {
		return 0
	}
	all := max(skip, 0) + limit
	share := float64(all) / float64(n)
	return max(1, min(all, int(share+2*math.Sqrt(share))+2))
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
		b, err := p.ahead.next()
		if err != nil {
			return m.db.explain(err)
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
			p.ahead.close()
			p.stream.Close()
		}
	}
}
