package cluster

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/shard/ring"
)

// A full copy of this node whose files are gone, while another copy of its range is full,
// joins: the node proposes so, the map gives it a new id, the node makes it empty, and
// repair fills it (repair/joining.go). Until the map says so, nothing answers under the old
// id.

// joinPause is the time until a proposal that failed is made again, and for which others
// are gathered before one is made.
const joinPause = time.Second

// keepJoining proposes that missing copies join, until ctx ends.
func (c *Coordinator) keepJoining(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.held.Shards.Copies.LossNews():
			c.missLost(ctx)
			continue
		case <-c.missing.Wake():
		}
		all := c.missing.Take()
		if err := c.join(ctx, all); err != nil && ctx.Err() == nil {
			c.log.Warn("copies that are gone cannot join yet", zap.Int("copies", len(all)), zap.Error(err))
			for name, id := range all {
				c.missing.Note(name, id)
			}
		}
		pause, cancel := context.WithTimeout(ctx, joinPause)
		<-pause.Done()
		cancel()
	}
}

// missLost has copies of this node that have lost what they held join, or be lost.
func (c *Coordinator) missLost(ctx context.Context) {
	for _, name := range c.held.Shards.Copies.ContentsLost() {
		db, _, ok := c.meta.CopyIn(name, c.node)
		if !ok {
			continue
		}
		d := newDB(c, db)
		if err := c.handles.turn(d, func() error { return c.keeper.ensureStill(ctx, db) }); err != nil && ctx.Err() == nil {
			c.log.Warn("a copy that has lost what it held is not missed yet", zap.String("copy", name), zap.Error(err)) // a sweep does that
		}
	}
}

// join proposes that copies join that have those ids still.
func (c *Coordinator) join(ctx context.Context, all map[string]uint64) error {
	var changes []meta.CopyChange
	for _, name := range slices.Sorted(maps.Keys(all)) {
		db, one, ok := c.meta.CopyIn(name, c.node)
		if !ok || one.ID != all[name] {
			continue
		}
		c.log.Warn("copy is missing, it joins", zap.String("copy", name))
		changes = append(changes, meta.CopyChange{Name: db.Name, ID: db.ID, Change: ring.Change{Copy: one.ID, To: ring.StateJoining}})
	}
	slices.SortStableFunc(changes, func(a, b meta.CopyChange) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) })
	return c.meta.ChangeCopies(ctx, changes)
}

// JoiningCopies returns the copies of this node, by name, that are being filled from others.
func (c *Coordinator) JoiningCopies() []string {
	var out []string
	for db := range c.meta.Databases().Changing() {
		for _, s := range db.Shards {
			if one, here := s.CopyOn(c.node); here && one.State == ring.StateJoining {
				out = append(out, db.CopyName(s.Range))
			}
		}
	}
	return out
}
