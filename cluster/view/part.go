package view

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"divan/cluster/fanout"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/ring"
	shardview "divan/shard/view"
)

// place is where a row is among the rows of one range of the ring.
type place struct {
	keys int32 // index of the key range it belongs to
	sort []byte
	id   string
}

// order compares places as rows come in that direction.
func order(desc bool) func(a, b *place) int {
	return func(a, b *place) int {
		if a.keys != b.keys { // key ranges come in the order of the query
			return int(a.keys - b.keys)
		}
		c := bytes.Compare(a.sort, b.sort)
		if c == 0 {
			c = strings.Compare(a.id, b.id)
		}
		if desc {
			return -c
		}
		return c
	}
}

// position is where another copy goes on.
type position struct {
	place
	begun bool // a row has been given out; place is the last one's
	same  int  // rows of that place that were given out: a document may emit a key several times
}

// part is the rows of one range of the ring.
type part struct {
	fanout.FailoverStream[position, shardview.Head, shardview.Batch]
	req   shardview.Request
	order func(a, b *place) int

	rows   []shardview.Row // of the current batch
	at     int
	last   position // of the batches before
	base   int32    // the key range that is the first one for the copy that is read
	over   int      // rows of the place last that are passed over, because they were given out; reduced: all up to it
	offset uint64   // rows before the first one

	linked map[int]*shard.Doc // documents that values name, by the row's index in rows
	looked int                // rows for which they have been read
}

// Position implements fanout.RowKind.
func (p *part) Position() (position, bool) { return p.last, true }

// Open implements fanout.RowKind.
func (p *part) Open(ctx context.Context, rep replica.Copy, t ring.Replica, from position) (fanout.Opened[shardview.Head, shardview.Batch], error) {
	req := p.req
	req.Copy = t.Name
	if from.begun {
		req.Ranges, req.Limit = p.rest(from), 0
	}
	rows, err := replica.ViewQuery.On(ctx, rep, req)
	return fanout.Opened[shardview.Head, shardview.Batch]{Head: rows.Head, Stream: rows.Stream}, err
}

// rest returns the key ranges that are left at a position: those behind, and of the
// current one the part that begins with the last row. A group is not left half
// way: its range is read again.
func (p *part) rest(from position) []shardview.KeyRange {
	if len(p.req.Ranges) == 0 {
		return p.cut(shardview.KeyRange{}, from, nil)
	}
	return p.cut(p.req.Ranges[from.keys], from, p.req.Ranges[from.keys+1:])
}

func (p *part) cut(first shardview.KeyRange, from position, behind []shardview.KeyRange) []shardview.KeyRange {
	if !p.req.Reduce {
		at := shardview.Bound{Key: from.sort, ID: from.id, HasID: true}
		if p.req.Desc {
			first.Hi = at
		} else {
			first.Lo = at
		}
	}
	return append([]shardview.KeyRange{first}, behind...)
}

// Moved implements fanout.RowKind.
func (p *part) Moved(shardview.Head) error {
	p.base, p.over = p.last.keys, p.last.same
	return nil
}

// begin reads the first rows, and with them which row the offset is that of: rows
// of keys begin with the first key that has any.
func (p *part) begin() error {
	p.offset = p.Head.Offset
	if err := p.turn(); err != nil || len(p.req.Ranges) < 2 {
		return err
	}
	first := len(p.req.Ranges) - 1
	if len(p.rows) > 0 {
		first = int(p.rows[0].Range)
	}
	if first == 0 {
		return nil
	}
	req := p.req
	req.Copy, req.Ranges, req.Limit, req.Update = p.Copies[0].Name, req.Ranges[first:first+1], 1, shardview.UpdateNever
	rep := p.Database.Replica(p.Copies[0])
	if rep.Away() { // the rows go on from another copy; the offset is only a figure
		return nil
	}
	rows, err := replica.ViewQuery.On(p.Ctx, rep, req)
	if err == nil {
		rows.Close()
		p.offset = rows.Head.Offset
	}
	return p.Ctx.Err()
}

// row returns the current row; nil at the end.
func (p *part) row() *shardview.Row {
	if p.at < len(p.rows) {
		return &p.rows[p.at]
	}
	return nil
}

// place returns where the current row is.
func (p *part) place() place {
	r := &p.rows[p.at]
	return place{keys: r.Range, sort: r.Sort, id: r.ID}
}

// advance moves to the next row.
func (p *part) advance() error {
	if p.at++; p.at < len(p.rows) {
		return nil
	}
	return p.turn()
}

// turn moves to the next batch that has rows.
func (p *part) turn() error {
	p.note()
	p.rows, p.at = nil, 0
	p.linked, p.looked = nil, 0
	for {
		b, err := p.Next()
		if err != nil || b == nil {
			return err
		}
		for i := range b.Rows {
			b.Rows[i].Range += p.base
		}
		if p.rows = p.fresh(b.Rows); len(p.rows) > 0 {
			return nil
		}
	}
}

// note keeps where the batch ends that has been used.
func (p *part) note() {
	n := len(p.rows)
	if n == 0 {
		return
	}
	same := func(r *shardview.Row, at *place) bool {
		return r.Range == at.keys && r.ID == at.id && bytes.Equal(r.Sort, at.sort)
	}
	end := &p.rows[n-1]
	was := p.last
	p.last = position{place: place{end.Range, slices.Clone(end.Sort), strings.Clone(end.ID)}, begun: true}
	for i := n - 1; i >= 0 && same(&p.rows[i], &p.last.place); i-- {
		p.last.same++
	}
	if p.last.same == n && was.begun && same(end, &was.place) {
		p.last.same += was.same
	}
}

// fresh leaves out the rows that another copy has given out.
func (p *part) fresh(rows []shardview.Row) []shardview.Row {
	for p.over > 0 && len(rows) > 0 {
		r := &rows[0]
		switch c := p.order(&place{r.Range, r.Sort, r.ID}, &p.last.place); {
		case c > 0:
			p.over = 0
		case c == 0 && !p.req.Reduce:
			p.over--
			rows = rows[1:]
		default:
			rows = rows[1:]
		}
	}
	return rows
}
