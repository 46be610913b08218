package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"divan/cluster/fanout"
	"divan/cluster/lost"
	"divan/cluster/meta"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/fault"
)

// copyKeeper makes the copies of this node and removes them, as the map of their database
// says.
type copyKeeper struct {
	node    string
	meta    *meta.Meta
	local   ownCopies
	shards  *shard.Local
	lost    *lost.Register
	missing *lost.Missing
	log     *zap.Logger
}

// ensure makes the copies of a database that this node is to hold and does not
// have. All of them at once, since making one is waiting for the disk.
func (k *copyKeeper) ensure(ctx context.Context, m *meta.Database) error {
	var own []ring.Replica // those that the map places on this node
	for _, s := range m.Shards {
		if one, here := s.CopyOn(k.node); here {
			own = append(own, ring.Replica{Range: s.Range, Copy: one, Name: m.CopyName(s.Range), Generation: m.Generation})
		}
	}
	return fanout.Each(len(own), func(i int) error {
		err := k.make(ctx, own[i], m)
		if err != nil && !fault.Is(err, fault.Exists) {
			return fmt.Errorf("make the copies of %s: %w", m.Name, err)
		}
		return nil
	})
}

// newFor is how long after its creation a database counts as new: a copy that this node
// makes later, because it was away or cut off, joins and is filled from the others, which may
// have been written to. It is the clock of the node that created the database. Where
// clocks differ by more, a copy is filled for nothing, or answers before repair has brought
// what it lacks, as one does of a node that was away: no acknowledged edit depends on it.
const newFor = time.Minute

// make makes a copy of this node, empty, if it is new. One that is not there and is not new
// was lost: it has to join, or stays lost when no other copy is full.
func (k *copyKeeper) make(ctx context.Context, t ring.Replica, m *meta.Database) error {
	switch {
	case k.lost.Dropped(t.Name):
		return errDropped()
	case k.local.Has(t.Name):
		id, err := k.shards.Copies.ID(t.Name)
		switch {
		case err != nil && !fault.Is(err, fault.NoCopy):
			return fmt.Errorf("make %s: %w", t.Name, err)
		case err == nil && id != t.ID:
			return fault.Newf(fault.Busy, "The directory of copy %d is still in the place of copy %d.", id, t.ID) // a request reads it
		case err == nil:
			return nil
		}
	}
	joining := t.State == ring.StateJoining
	switch {
	case t.State == ring.StateLeaving:
		return nil // what it alone had is gone; repair takes it out of the map
	case t.State == ring.StateCopying, joining && ring.CommandOf(t.ID) > k.meta.MadeCopies(), !joining && k.isNew(t, m):
		err := k.local.Create(ctx, t, m.Partitioned)
		if err == nil && joining {
			k.log.Warn("copy is empty, it is filled from the others", zap.String("copy", t.Name))
		}
		return err
	case joining || ring.FullBeside(m.Shards, t.Range, t.Copy):
		k.missing.Note(t.Name, t.ID)
		return nil // the other ranges can be used
	default:
		if err := k.lost.Miss(t.Name); err != nil { // nothing else may tell any more that it was here
			return err
		}
		k.lost.Note(t.Name)
		return nil
	}
}

// isNew reports whether a full copy of this node that is not there was never made.
func (k *copyKeeper) isNew(t ring.Replica, m *meta.Database) bool {
	made := ring.CommandOf(t.ID)
	switch {
	case k.lost.Has(t.Name) || made <= k.meta.MadeCopies():
		return false
	case !ring.FullBeside(m.Shards, t.Range, t.Copy): // there is nothing to be filled from
		return true
	default:
		return made == m.Born && time.Since(time.Unix(m.Created, 0)) < newFor
	}
}

// ensureStill is ensure for a database that may have been deleted, or is
// meanwhile: what is made for it then goes again.
func (k *copyKeeper) ensureStill(ctx context.Context, m *meta.Database) error {
	if k.gone(m) {
		return errDropped()
	}
	if err := k.ensure(ctx, m); err != nil {
		return err
	}
	own := m.CopiesOn(k.node)
	if !k.gone(m) && !slices.ContainsFunc(own, k.lost.Dropped) {
		return nil
	}
	for _, name := range own {
		k.drop(ctx, name)
	}
	return errDropped()
}

// gone reports whether a database that this node has known is there no more;
// another one may have its name.
func (k *copyKeeper) gone(m *meta.Database) bool {
	return isGone(k.meta, m)
}

// unwritten reports whether no client can have written to a database that has its copies on this
// node only, nor can before another one of them is made.
func (k *copyKeeper) unwritten(m *meta.Database) bool {
	names, err := k.local.Names()
	if err != nil {
		return false
	}
	own, made := m.CopiesOn(k.node), 0
	for _, name := range own {
		if slices.Contains(names, name) {
			made++
		}
	}
	return made == 0 || (made < len(own) && len(k.meta.Nodes()) == 1)
}

// drop removes a copy from this node's disk. One that cannot be removed now is
// removed by the next reconciliation.
func (k *copyKeeper) drop(ctx context.Context, name string) {
	_, err := replica.Drop.On(ctx, replica.Copy{At: k.local}, name)
	if err != nil && !fault.Is(err, fault.NoCopy) {
		k.log.Warn("copy of a deleted database stays for now", zap.String("copy", name), zap.Error(err))
	}
}
