package repair

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/shard"
	"divan/shard/ring"
)

const (
	// joinEvery is how often this node looks what its joining copies lack. More often, the map
	// would change faster than coordinators hear of it.
	joinEvery = time.Second
	// askEvery is how often the other nodes are asked again to push to one.
	askEvery = 5 * time.Second
)

// joins is the copies of this node that are being filled. It is not kept on the disk:
// after a restart the others are asked anew, and tell again that they have pushed.
//
// LOCKS: mu guards the map and what is in it.
type joins struct {
	node      string // this one
	meta      Map
	local     *shard.Local
	index     func(ctx context.Context, db, copyName string) error // Options.Index
	messenger *messenger
	work      *sync.WaitGroup // of the Repair
	log       *zap.Logger

	mu     sync.Mutex
	byCopy map[joiner]*joining
}

// joiner is a copy that joins, or leaves. The ids of copies of different databases may be the same.
type joiner struct {
	name string
	id   uint64
}

// joining is the state of one joiner.
type joining struct {
	// ids of the full copies that have brought it all they had, with the generation of the map that
	// their nodes knew; if it leaves: of those to which it has
	filled map[uint64]uint64
	asked  map[pushRequest]asked
	index  indexing
	tried  time.Time // when its indexes were begun
}

// asked says when a push was asked for, and which generation of the map was known then.
type asked struct {
	at         time.Time
	generation uint64
}

// ask adds a push to asks, unless it was asked for a moment ago and the same copies are full still.
func (j *joining) ask(p pushRequest, db *meta.Database, now time.Time, asks map[pushRequest]struct{}) {
	if last := j.asked[p]; last.generation != db.FullGeneration || now.Sub(last.at) >= askEvery {
		j.asked[p] = asked{now, db.FullGeneration}
		asks[p] = struct{}{}
	}
}

// indexing is how far the indexes of a copy are that is filled.
type indexing uint8

const (
	unindexed indexing = iota
	underWay
	indexed
)

// run asks for pushes to the joining copies of this node, and proposes that they
// be full when enough have come to their end, until ctx ends.
func (j *joins) run(ctx context.Context) {
	t := time.NewTicker(joinEvery)
	defer t.Stop()
	for {
		if err := j.look(ctx); err != nil && ctx.Err() == nil {
			j.log.Warn("copies that were filled are not full yet", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// look asks for the pushes that are missing, proposes what is filled, gives up what can never be
// full, and forgets what does not join any more.
func (j *joins) look(ctx context.Context) error {
	seen := make(map[joiner]struct{})
	var plain []meta.CopyChange
	var together [][]meta.CopyChange
	asks := make(map[pushRequest]struct{})
	for db := range j.meta.Databases().Changing() {
		filled := make(map[uint64][]uint64)
		for i := range db.Shards {
			s := &db.Shards[i]
			one, here := s.CopyOn(j.node)
			name := db.CopyName(s.Range)
			there := here && j.local.Copies.Has(name)
			switch {
			case here && one.State == ring.StateJoining && ring.Superfluous(db.Shards, s.Range, j.node):
				plain = append(plain, changesOf(db, ring.Change{Copy: one.ID, To: ring.StateGone})...)
			case here && one.State == ring.StateJoining && there: // else it is not made yet
				seen[joiner{name, one.ID}] = struct{}{}
				if by := j.lacks(joiner{name, one.ID}, db, s, asks); by != nil && j.indexed(ctx, joiner{name, one.ID}, db, s) {
					filled[one.ID] = by
				}
			case here && one.State == ring.StateLeaving:
				seen[joiner{name, one.ID}] = struct{}{}
				if !there || j.left(joiner{name, one.ID}, db, s, asks) {
					together = append(together, changesOf(db, ring.Left(s, j.node, !there)...))
				}
			case here && one.State == ring.StateFull:
				if ch, ok := ring.Moved(db.Shards, s, j.node); ok {
					together = append(together, changesOf(db, ch))
				}
			}
		}
		for _, group := range become(db, j.node, filled) {
			if len(group) == 1 {
				plain = append(plain, changesOf(db, group...)...)
			} else {
				together = append(together, changesOf(db, group...))
			}
		}
	}
	j.mu.Lock()
	for one := range j.byCopy {
		if _, still := seen[one]; !still {
			delete(j.byCopy, one)
		}
	}
	j.mu.Unlock()
	if len(asks) > 0 {
		j.work.Go(func() { j.askFull(ctx, asks) })
	}
	for _, changes := range append(together, plain) {
		if len(changes) == 0 {
			continue
		}
		if err := j.meta.ChangeCopies(ctx, changes); err != nil {
			return err
		}
		for i := range changes {
			j.log.Info("copy has changed its state", zap.String("db", changes[i].Name), zap.Uint64("copy", changes[i].Copy), zap.Stringer("to", changes[i].To))
		}
	}
	return nil
}

func changesOf(db *meta.Database, changes ...ring.Change) []meta.CopyChange {
	out := make([]meta.CopyChange, len(changes))
	for i, ch := range changes {
		out[i] = meta.CopyChange{Name: db.Name, ID: db.ID, Change: ch}
	}
	return out
}

// become returns the changes by which copies of a node that were filled become full, those that
// must be made together in one. Full copies of the node whose documents they hold leave by
// the same: a node has one full copy of each point.
func become(db *meta.Database, node string, filled map[uint64][]uint64) [][]ring.Change {
	type own struct {
		ring.Range
		ring.Copy
	}
	var come, full []own
	for _, s := range db.Shards {
		switch c, here := s.CopyOn(node); {
		case here && c.State == ring.StateJoining:
			come = append(come, own{s.Range, c})
		case here && c.State == ring.StateFull:
			full = append(full, own{s.Range, c})
		}
	}
	var out [][]ring.Change
	for len(come) > 0 {
		group, leave := []own{come[0]}, []own(nil)
		come = come[1:]
		take := func(from, to *[]own, of ring.Range) {
			*from = slices.DeleteFunc(*from, func(o own) bool {
				if o.Overlaps(of) {
					*to = append(*to, o)
				}
				return o.Overlaps(of)
			})
		}
		for i, j := 0, 0; i < len(group) || j < len(leave); {
			if i < len(group) {
				take(&full, &leave, group[i].Range)
				i++
			} else {
				take(&come, &group, leave[j].Range)
				j++
			}
		}
		var changes []ring.Change
		for _, o := range group {
			if by, ok := filled[o.ID]; ok {
				changes = append(changes, ring.Change{Copy: o.ID, To: ring.StateFull, Filled: by})
			}
		}
		if len(changes) < len(group) {
			continue
		}
		for _, o := range leave {
			for _, c := range group {
				if o.Overlaps(c.Range) && !slices.Contains(filled[c.ID], o.ID) {
					changes = nil // its local documents are not there yet
				}
			}
			changes = append(changes, ring.Change{Copy: o.ID, To: ring.StateLeaving})
		}
		if _, ok := ring.Apply(db.Shards, changes, &ring.NewCopies{}); ok {
			out = append(out, changes)
		}
	}
	return out
}

// indexed reports whether a copy that is filled may be full as far as its indexes go. Where others leave
// for it, they are built first: until then those have them. Where a copy was lost, nothing waits for them.
func (j *joins) indexed(ctx context.Context, one joiner, db *meta.Database, s *ring.Shard) bool {
	here, _ := s.CopyOn(j.node)
	old, moved := s.CopyOn(here.Instead)
	leaves := moved && old.State.Used() || slices.ContainsFunc(fullOver(db, s.Range), func(f fullCopy) bool { return f.Node == j.node })
	if j.index == nil || !leaves {
		return true
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	state := j.of(one)
	if state.index == unindexed && time.Since(state.tried) >= askEvery {
		state.index, state.tried = underWay, time.Now()
		j.work.Go(func() {
			err := j.index(ctx, db.Name, one.name)
			j.mu.Lock()
			defer j.mu.Unlock()
			if state.index = indexed; err != nil {
				state.index = unindexed
				if ctx.Err() == nil {
					j.log.Warn("the indexes of a copy are not built yet", zap.String("copy", one.name), zap.Error(err))
				}
			}
		})
	}
	return state.index == indexed
}

// pushRequest is a push that a node is to be asked for: to the copy of that name on that node.
type pushRequest struct{ by, name, node string }

// lacks adds to asks which nodes are to push to a joining copy now, or returns the full
// copies that have filled it when they are enough.
func (j *joins) lacks(one joiner, db *meta.Database, s *ring.Shard, asks map[pushRequest]struct{}) (filled []uint64) {
	joins, _ := s.CopyOn(j.node)
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	state := j.of(one)
	full := fullOver(db, s.Range)
	for _, f := range full {
		if state.has(f.ID, db) {
			filled = append(filled, f.ID)
		}
	}
	enough := ring.Filled(db.Shards, s.Range, filled)
	wanting := false // by a copy in whose place it comes
	for _, f := range full {
		instead := f.Node == j.node || f.Node == joins.Instead && f.name == one.name
		wanting = wanting || instead && !state.has(f.ID, db)
	}
	if enough && !wanting {
		return filled
	}
	for _, f := range full {
		if !state.has(f.ID, db) {
			state.ask(pushRequest{f.Node, one.name, j.node}, db, now, asks)
		}
	}
	return nil
}

// left reports whether a copy that leaves has handed all that it has over to the copy that came instead
// of it, or else to a full copy of each point of its range; otherwise it adds its own pushes to asks.
func (j *joins) left(one joiner, db *meta.Database, s *ring.Shard, asks map[pushRequest]struct{}) bool {
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	state := j.of(one)
	heir, moved := s.Heir(j.node)
	if ring.Everywhere(db.Shards, s.Range, func(copies []ring.Copy) bool {
		return slices.ContainsFunc(copies, func(c ring.Copy) bool {
			return c.State == ring.StateFull && state.has(c.ID, db) && (!moved || c.ID == heir.ID)
		})
	}) {
		return true
	}
	for _, f := range fullOver(db, s.Range) {
		if !state.has(f.ID, db) {
			state.ask(pushRequest{j.node, f.name, f.Node}, db, now, asks)
		}
	}
	return false
}

// fullCopy is a full copy with its name.
type fullCopy struct {
	name string
	ring.Copy
}

// fullOver returns the full copies that hold documents of a range.
func fullOver(db *meta.Database, rng ring.Range) []fullCopy {
	var out []fullCopy
	for _, s := range db.Shards {
		if !s.Overlaps(rng) {
			continue
		}
		for _, c := range s.Full() {
			out = append(out, fullCopy{db.CopyName(s.Range), c})
		}
	}
	return out
}

// handedOver notes that a copy that leaves has pushed all that it has to a full one.
func (j *joins) handedOver(one joiner, o role) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.of(one).filled[o.target] = o.known
}

// has reports whether that is done with a full copy, and its node knew then which copies are full
// now (ring.Change).
func (j *joining) has(id uint64, db *meta.Database) bool {
	known, done := j.filled[id]
	return done && known >= db.FullGeneration
}

// of returns what is known about a copy.
func (j *joins) of(one joiner) *joining {
	known := j.byCopy[one]
	if known == nil {
		known = &joining{filled: make(map[uint64]uint64), asked: make(map[pushRequest]asked)}
		j.byCopy[one] = known
	}
	return known
}

// askFull asks nodes for pushes. One that cannot be asked now is asked again. No pause after
// failures is waited out: most were because the copy was not made yet.
func (j *joins) askFull(ctx context.Context, asks map[pushRequest]struct{}) {
	byNode := make(map[string][][2]string)
	for a := range asks {
		byNode[a.by] = append(byNode[a.by], [2]string{a.name, a.node})
	}
	j.messenger.send(ctx, opSync, byNode)
}

// filledBy notes that another copy has brought a joining copy of this node all that it
// had. A copy that does not join any more is passed over.
func (j *joins) filledBy(m *message) {
	db, one, ok := j.meta.CopyIn(m.Copy, j.node)
	if !ok || one.ID != m.Target || one.State != ring.StateJoining {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	state := j.of(joiner{m.Copy, one.ID})
	state.filled[m.Source] = m.Known
	if m.Known < db.FullGeneration { // its node learns of the newer map in a moment: it is asked at the next look
		for p := range state.asked {
			if by, ok := db.Copy(m.Copy, p.by); ok && by.ID == m.Source {
				delete(state.asked, p)
			}
		}
	}
}
