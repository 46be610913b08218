package repair

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/shard/ring"
)

const (
	// joinEvery is how often this node looks what its joining copies lack.
	joinEvery = time.Second
	// askEvery is how often the other nodes are asked again to push to one.
	askEvery = 5 * time.Second
)

// joins is the copies of this node that are being filled. It is not kept on the disk:
// after a restart the others are asked anew, and tell again that they have pushed.
//
// LOCKS: mu guards the map and what is in it.
type joins struct {
	mu     sync.Mutex
	byCopy map[joiner]*joining
}

// joiner is a copy that joins. The ids of copies of different databases may be the same.
type joiner struct {
	name string
	id   uint64
}

// joining is what is known about one of them.
type joining struct {
	filled map[uint64]struct{}  // ids of the full copies that have brought it all they had
	asked  map[string]time.Time // nodes that were asked to push, and when
}

// keepJoining asks for pushes to the joining copies of this node, and proposes that they
// be full when enough have come to their end, until ctx ends.
func (r *Repair) keepJoining(ctx context.Context) {
	t := time.NewTicker(joinEvery)
	defer t.Stop()
	for {
		if err := r.look(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("copies that were filled are not full yet", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// look asks for the pushes that are missing, proposes what is filled, and forgets what
// does not join any more.
func (r *Repair) look(ctx context.Context) error {
	seen := make(map[joiner]struct{})
	var full []meta.CopyChange
	asks := make(map[pair]struct{})
	for db := range r.o.Meta.Databases().Joining() {
		for i := range db.Shards {
			s := &db.Shards[i]
			one, here := s.CopyOn(r.o.Node)
			if !here || one.State != ring.StateJoining {
				continue
			}
			name := db.CopyName(s.Range)
			if !r.o.Local.Has(name) {
				continue // not made yet
			}
			seen[joiner{name, one.ID}] = struct{}{}
			if filled := r.lacks(joiner{name, one.ID}, s.Full(), asks); filled != nil {
				full = append(full, meta.CopyChange{
					Name: db.Name, ID: db.ID, Change: ring.Change{Copy: one.ID, To: ring.StateFull, Filled: filled},
				})
			}
		}
	}
	r.joins.mu.Lock()
	for one := range r.joins.byCopy {
		if _, still := seen[one]; !still {
			delete(r.joins.byCopy, one)
		}
	}
	r.joins.mu.Unlock()
	if len(asks) > 0 {
		r.work.Go(func() { r.askFull(ctx, asks) })
	}
	if len(full) == 0 {
		return nil
	}
	return r.o.Meta.ChangeCopies(ctx, full)
}

// lacks adds to asks which nodes are to push to a joining copy now, or returns the full
// copies that have filled it when they are enough.
func (r *Repair) lacks(one joiner, full []ring.Copy, asks map[pair]struct{}) (filled []uint64) {
	now := time.Now()
	r.joins.mu.Lock()
	defer r.joins.mu.Unlock()
	j := r.joins.of(one)
	for _, f := range full {
		if _, done := j.filled[f.ID]; done {
			filled = append(filled, f.ID)
		}
	}
	if len(filled) > len(full)/2 {
		return filled
	}
	for _, f := range full {
		if _, done := j.filled[f.ID]; !done && now.Sub(j.asked[f.Node]) >= askEvery {
			j.asked[f.Node] = now
			asks[pair{one.name, f.Node}] = struct{}{}
		}
	}
	return nil
}

// of returns what is known about a copy.
func (j *joins) of(one joiner) *joining {
	known := j.byCopy[one]
	if known == nil {
		known = &joining{filled: make(map[uint64]struct{}), asked: make(map[string]time.Time)}
		j.byCopy[one] = known
	}
	return known
}

// askFull asks other nodes to push to joining copies of this one; asks names these, and
// the nodes to ask. One that cannot be asked now is asked again.
func (r *Repair) askFull(ctx context.Context, asks map[pair]struct{}) {
	byNode := make(map[string][][2]string)
	for p := range asks {
		byNode[p.node] = append(byNode[p.node], [2]string{p.copy, r.o.Node})
	}
	r.send(ctx, opMissed, byNode) // one that keeps failing waits out its pauses
}

// filledBy notes that another copy has brought a joining copy of this node all that it
// had. A copy that does not join any more is passed over.
func (r *Repair) filledBy(m *message) {
	_, one, ok := r.o.Meta.CopyIn(m.Copy, r.o.Node)
	if !ok || one.ID != m.Target || one.State != ring.StateJoining {
		return
	}
	r.joins.mu.Lock()
	r.joins.of(joiner{m.Copy, one.ID}).filled[m.Source] = struct{}{}
	r.joins.mu.Unlock()
}
