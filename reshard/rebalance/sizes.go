package rebalance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"divan/cluster/meta"
	"divan/shard/ring"
	"divan/storage/fault"
)

// Service is the name under which nodes ask each other for sizes.
const Service = "copy_sizes"

// A page of an answer ends with the database with which it has so many databases, or copies.
const (
	pageDatabases = 500
	pageCopies    = 5000
)

// pageTimeout is how long a node may take for a page.
const pageTimeout = 10 * time.Second

// pageRequest asks a node for the sizes of its copies of the databases behind one, in the order
// of their names.
type pageRequest struct {
	After string `json:"after"`
}

// page is the answer.
type page struct {
	Sizes []size `json:"sizes"`
	Last  string `json:"last"` // database up to which it goes; empty: these were all
}

// size is that of a copy.
type size struct {
	DB    [16]byte `json:"db"`
	Copy  uint64   `json:"copy"`
	Bytes int64    `json:"bytes"`
}

// copyKey names a copy; ids of copies of different databases may be the same.
type copyKey struct {
	db [16]byte
	id uint64
}

// sizes are the bytes of copies.
type sizes map[copyKey]int64

// sizer finds out how large copies are, on this node and on others.
type sizer struct {
	node  string // this one
	dbs   Map
	bytes func(copyName string) (int64, error)                                            // Options.Bytes
	ask   func(ctx context.Context, node, service string, request []byte) ([]byte, error) // Options.Ask
	alive func(node string) bool
}

// answer tells another node the sizes of copies of this one: the service "copy_sizes".
func (s *sizer) answer(request []byte) ([]byte, error) {
	var q pageRequest
	if err := json.Unmarshal(request, &q); err != nil {
		return nil, fault.Wrap(fault.BadRequest, "malformed request for sizes", err)
	}
	return json.Marshal(s.ownPage(&q))
}

// ownPage reads what this node has. A copy that is not there has no size.
func (s *sizer) ownPage(q *pageRequest) *page {
	out := &page{Sizes: []size{}}
	dbs := s.dbs.Databases()
	at := dbs.Index(q.After)
	n := 0
	for db := range dbs.Slice(at, dbs.Len()) {
		if db.Name == q.After {
			continue
		}
		if n++; n > pageDatabases || len(out.Sizes) > pageCopies {
			return out
		}
		for i := range db.Shards {
			c, here := db.Shards[i].CopyOn(s.node)
			if !here {
				continue
			}
			if bytes, err := s.bytes(db.CopyName(db.Shards[i].Range)); err == nil {
				out.Sizes = append(out.Sizes, size{db.ID, c.ID, bytes})
			}
		}
		out.Last = db.Name
	}
	out.Last = ""
	return out
}

// collect asks all members for the sizes of their copies, and returns those that did not answer, sorted: of
// them nothing is known.
func (s *sizer) collect(ctx context.Context, nodes []meta.Node) (sizes, []string) {
	all, away := sizes{}, []string(nil)
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, n := range nodes {
		asking.Go(func() {
			err := s.sizesOf(ctx, n.Name, func(p *page) {
				mu.Lock()
				defer mu.Unlock()
				for _, one := range p.Sizes {
					all[copyKey{one.DB, one.Copy}] = one.Bytes
				}
			})
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				away = append(away, n.Name)
			}
		})
	}
	asking.Wait()
	slices.Sort(away)
	return all, away
}

// sizesOf hands f the sizes of a node, page by page.
func (s *sizer) sizesOf(ctx context.Context, node string, f func(*page)) error {
	for q := (&pageRequest{}); ; {
		p, err := s.askPage(ctx, node, q)
		if err != nil {
			return fmt.Errorf("sizes of copies on %s: %w", node, err)
		}
		f(p)
		if p.Last <= q.After {
			return nil
		}
		q.After = p.Last
	}
}

func (s *sizer) askPage(ctx context.Context, node string, q *pageRequest) (*page, error) {
	switch {
	case node == s.node:
		return s.ownPage(q), ctx.Err()
	case !s.alive(node):
		return nil, fault.Newf(fault.NodeDown, "Node %s cannot be reached.", node)
	}
	request, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	answer, err := s.ask(ctx, node, Service, request)
	if err != nil {
		return nil, err
	}
	p := &page{}
	return p, json.Unmarshal(answer, p)
}

// leastBytes is the least number of bytes that a copy counts for, so that empty ones are spread
// over the nodes too.
const leastBytes = 16 << 10

// of returns the bytes of a copy: what is known of it, or else of another one of its shard.
func (s sizes) of(db *meta.Database, shard *ring.Shard, c ring.Copy) int64 {
	if n, known := s[copyKey{db.ID, c.ID}]; known && c.State == ring.StateFull {
		return max(n, leastBytes)
	}
	most := int64(leastBytes)
	for _, o := range shard.Copies {
		most = max(most, s[copyKey{db.ID, o.ID}])
	}
	return most
}
