package search

import (
	"context"
	"strings"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard/ring"
	"divan/shard/search"
)

type batch = replica.SearchHits

// position is where another copy goes on: behind a hit, if one was taken.
type position struct {
	after *search.Position
	taken int
}

// part is the hits of one range of the ring.
type part struct {
	fanout.FailoverStream[position, head, batch]
	req  search.Request
	held *held
	rows []search.Hit // of the current batch
	last position
}

// Position implements fanout.RowKind.
func (p *part) Position() (position, bool) { return p.last, true }

// Open implements fanout.RowKind.
func (p *part) Open(ctx context.Context, rep replica.Copy, t ring.Replica, from position) (fanout.Opened[head, batch], error) {
	req := p.req
	req.Copy = t.Name
	if from.after != nil { // the rest was told already
		req.After, req.Limit, req.Counts, req.Ranges = from.after, req.Limit-from.taken, nil, nil
	}
	rows, err := replica.Search.On(ctx, rep, req)
	if err != nil {
		return fanout.Opened[head, batch]{}, err
	}
	if from.after == nil {
		err = wellFormed(&req, &rows.Head.Answer)
	}
	size, whole := replica.SizeOfSearch(&rows)
	if err == nil {
		if err = p.held.add(size); err != nil {
			err = quorum.Final(err) // it is this node's memory, whichever copy answers
		}
	}
	if err != nil {
		rows.Close()
	}
	return fanout.Opened[head, batch]{Head: head{rows.Head, whole}, Stream: rows.Stream}, err
}

// Moved implements fanout.RowKind.
func (p *part) Moved(head) error { return nil }

// hit returns the next hit; nil at the end.
func (p *part) hit() (*search.Hit, error) {
	for len(p.rows) == 0 {
		b, err := p.Next()
		if err != nil || b == nil {
			return nil, err
		}
		p.rows = b.Hits
		for i := range p.rows {
			if err := sameParts(&p.req, p.rows[i].Order); err != nil {
				return nil, err
			}
		}
	}
	return &p.rows[0], nil
}

// take takes the hit that hit returned, of size bytes. It is the caller's.
func (p *part) take() (h search.Hit, size int, err error) {
	h = p.rows[0]
	size = h.Size()
	if !p.Head.counted {
		if err := p.held.add(size); err != nil {
			return h, size, err
		}
	}
	h.ID = strings.Clone(h.ID)
	p.rows = p.rows[1:]
	p.last = position{&search.Position{Order: h.Order, ID: h.ID}, p.last.taken + 1}
	return h, size, nil
}
