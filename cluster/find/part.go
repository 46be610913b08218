package find

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"divan/cluster/fanout"
	"divan/cluster/replica"
	"divan/shard/find"
	"divan/shard/ring"
)

type head = replica.FindHead

// part is the rows of one range of the ring.
type part struct {
	fanout.FailoverStream[*find.Position, head, find.Batch]
	req   find.Request
	rows  []find.Row // of the current batch
	at    int
	given int            // rows of the batches before
	last  *find.Position // where the batches before end; nil: the reading has not begun
	next  *find.Position // where the current one ends
	looks find.Figures   // of all batches
}

// place is where a row is in the answer.
type place struct {
	sort []byte
	id   string
}

// order compares places in the direction of the answer.
func order(desc bool) func(a, b *place) int {
	return func(a, b *place) int {
		if desc {
			a, b = b, a
		}
		if c := bytes.Compare(a.sort, b.sort); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	}
}

// Position implements fanout.RowKind.
func (p *part) Position() (*find.Position, bool) { return p.last, true }

// Open implements fanout.RowKind.
func (p *part) Open(ctx context.Context, rep replica.Copy, t ring.Replica, from *find.Position) (fanout.Opened[head, find.Batch], error) {
	req := p.req
	req.Copy = t.Name
	if from != nil {
		req.After, req.Hint = from, 0
		if req.Limit > 0 {
			req.Limit -= p.given
		}
	}
	rows, err := replica.Find.On(ctx, rep, req)
	return fanout.Opened[head, find.Batch]{Head: rows.Head, Stream: rows.Stream}, err
}

// Moved implements fanout.RowKind.
func (p *part) Moved(head) error { return nil }

// turn moves to the next batch and reports whether there is one. It may be empty.
func (p *part) turn() (bool, error) {
	p.given += len(p.rows)
	if p.next != nil {
		p.last = p.next
	}
	p.rows, p.at, p.next = nil, 0, nil
	if p.req.Limit > 0 && p.given >= p.req.Limit {
		return false, nil
	}
	b, err := p.Next()
	if err != nil || b == nil {
		return false, err
	}
	p.rows = b.Rows
	p.looks.Add(b.Figures)
	if b.Moved {
		p.next = &find.Position{Sort: slices.Clone(b.Last.Sort), ID: strings.Clone(b.Last.ID)}
	}
	return true, nil
}

// fill moves on until there is a row, or the end.
func (p *part) fill() error {
	for p.at >= len(p.rows) {
		if more, err := p.turn(); err != nil || !more {
			return err
		}
	}
	return nil
}

// row returns the current row, nil at the end.
func (p *part) row() *find.Row {
	if p.at < len(p.rows) {
		return &p.rows[p.at]
	}
	return nil
}

// drain reads to the end, for its figures.
func (p *part) drain() error {
	for {
		if more, err := p.turn(); err != nil || !more {
			return err
		}
	}
}
