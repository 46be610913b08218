package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/shard/ring"
	"divan/storage/fault"
)

const (
	// dropGrace is how long a copy that no database names is kept after it was
	// first noticed, as long as the node can make sure all the time that its map
	// is not behind: a wrong one must not cost data. Then it is removed if its
	// database was seen to be deleted, and set aside if not. A copy whose database
	// is deleted while the node looks is removed at once.
	dropGrace = time.Hour
	// sweepEvery is how often the disk is compared with the map.
	sweepEvery = 10 * time.Minute
)

// Run keeps the copies on this node in line with the map until ctx ends: it
// makes those that are missing and removes those that no database names, and
// writes down what happens to databases. It
// waits for the metadata to be ready first.
func (c *Coordinator) Run(ctx context.Context) error {
	if err := c.meta.WaitReady(ctx); err != nil {
		return ended(ctx, err)
	}
	sub, _ := c.meta.Subscribe()
	defer sub.Close()
	defer c.eventWriter().Start(ctx)()
	var joining sync.WaitGroup
	joining.Go(func() { c.keepJoining(ctx) })
	defer joining.Wait()
	k := &reconciler{c: c}
	for {
		if err := k.sweep(ctx); err != nil && ctx.Err() == nil {
			c.log.Error("copies on disk not compared with the map", zap.Error(err))
		}
		err := k.follow(ctx, sub)
		lagged := errors.Is(err, meta.ErrLagged) || errors.Is(err, context.DeadlineExceeded)
		if ctx.Err() != nil || !lagged {
			return ended(ctx, err)
		}
	}
}

// ended turns the end of the node into no error.
func ended(ctx context.Context, err error) error {
	over := ctx.Err() != nil || fault.Is(err, fault.Closed)
	if over {
		return nil
	}
	return fmt.Errorf("follow the metadata: %w", err)
}

// reconciler is the state of one Run.
type reconciler struct {
	c       *Coordinator
	orphans map[string]time.Time // copies without a database, and when they were noticed
	failed  bool                 // some copies could not be made; a sweep tries again
	tried   time.Time            // when the last sweep began
	upto    uint64               // the copies of the commands up to this one were made
	noted   time.Time            // when it was last written down which copies were made
}

// makeAgain is how long after a sweep there is another one when some copies could not be
// made, or directories not be set aside.
const makeAgain = 5 * time.Second

// noteEvery is how often it is written down at most which copies were made: that costs
// two syncs.
const noteEvery = time.Second

// follow does what events ask for until it is time for the next sweep.
func (k *reconciler) follow(ctx context.Context, sub *meta.Subscription) error {
	ctx, cancel := context.WithTimeout(ctx, sweepEvery)
	defer cancel()
	for {
		events, err := k.next(ctx, sub)
		if err != nil {
			return err
		}
		for _, e := range events {
			k.c.events.Tell(e)
			switch e.Kind {
			case meta.Created:
				if !k.c.handles.made(e.New) {
					k.make(ctx, e.New)
				}
			case meta.Deleted:
				k.c.handles.forget(e.Old.Name)
				for _, name := range e.Old.CopiesOn(k.c.node) {
					k.c.keeper.drop(ctx, name)
					k.c.lost.Forget(name)
				}
			case meta.Changed: // perhaps this node has taken the place of another
				if e.Old.Generation != e.New.Generation || !slices.Equal(e.Old.CopiesOn(k.c.node), e.New.CopiesOn(k.c.node)) {
					if k.c.lost.IdentifyCopies(ctx, k.c.meta, k.c.node, e.New.CopiesOn(k.c.node)) {
						k.failed = true
					}
					k.removeGone(ctx, e)
					k.make(ctx, e.New)
				}
			}
		}
		if len(events) > 0 {
			k.upto = events[len(events)-1].Index
		}
	}
}

// removeGone removes the directories of copies of this node that were not full and that the map
// has no more: they have left, or were given up. Those of a node that is no member stay.
func (k *reconciler) removeGone(ctx context.Context, e meta.Event) {
	for _, s := range e.Old.Shards {
		one, here := s.CopyOn(k.c.node)
		if !here || one.State == ring.StateFull {
			continue
		}
		name := e.Old.CopyName(s.Range)
		if _, _, here := k.c.meta.CopyIn(name, k.c.node); here {
			continue
		}
		if _, member := k.c.meta.Node(k.c.node); !member {
			return
		}
		if id, err := k.c.held.Shards.Copies.ID(name); err != nil || id != one.ID {
			continue
		}
		k.c.log.Info("remove copy that has gone from the map", zap.String("copy", name), zap.Stringer("was", one.State))
		if err := k.c.held.Shards.Copies.Drop(ctx, name); err != nil && !fault.Is(err, fault.NoCopy) {
			k.c.log.Warn("copy that has gone from the map stays for now", zap.String("copy", name), zap.Error(err))
		}
	}
}

// next returns the next events. It returns none when it was time to note what was made.
func (k *reconciler) next(ctx context.Context, sub *meta.Subscription) ([]meta.Event, error) {
	if k.failed {
		soon, cancel := context.WithDeadline(ctx, k.tried.Add(makeAgain))
		defer cancel()
		return sub.Next(soon)
	}
	if k.upto <= k.c.meta.MadeCopies() {
		return sub.Next(ctx)
	}
	soon, cancel := context.WithDeadline(ctx, k.noted.Add(noteEvery))
	defer cancel()
	events, err := sub.Next(soon)
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return events, err
	}
	k.note(ctx)
	return nil, nil
}

// note writes down which copies were made.
func (k *reconciler) note(ctx context.Context) {
	if k.failed || ctx.Err() != nil {
		return
	}
	k.noted = time.Now()
	if err := k.c.meta.CopiesMade(k.upto); err != nil {
		k.c.log.Warn("not written down which copies were made", zap.Error(err))
	}
}

// sweep compares the disk with the map.
func (k *reconciler) sweep(ctx context.Context) error {
	applied := k.c.meta.Applied()
	k.failed, k.tried = false, time.Now()
	stays, err := k.c.lost.Identify(ctx, k.c.meta, k.c.node)
	if err != nil {
		return err
	}
	k.failed = stays
	names, err := k.c.local.Names()
	if err != nil {
		return err
	}
	if err := k.c.held.Shards.Copies.FindLost(ctx); err != nil {
		return err
	}
	plan := meta.Reconcile(k.c.meta.Databases(), k.c.node, names)
	here := wanted(names, k.c.held.Shards.Copies.ContentsLost())
	plan.Create = meta.Reconcile(k.c.meta.Databases(), k.c.node, here).Create
	k.c.lost.Listed(wanted(here, plan.Drop), plan.Create)
	for _, name := range plan.Create {
		if db, _, ok := k.c.meta.CopyIn(name, k.c.node); ok {
			k.make(ctx, db)
		}
	}
	k.upto = max(k.upto, applied)
	k.note(ctx)
	k.orphans = k.clear(ctx, names, len(plan.Drop))
	return ctx.Err()
}

// wanted returns the copies on disk without those that no database names, or that have lost what they
// held. Both lists are sorted.
func wanted(names, orphans []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, orphan := slices.BinarySearch(orphans, name)
		return orphan
	})
}

// clear removes, or sets aside, those of the copies that were on disk a moment ago which no
// database has named for long enough, and returns the others that none names,
// with the time from which on that is known. suspects is how many seem to be
// such.
//
// A copy may be there before this node hears of its database: requests have
// copies made here, and a node that cannot reach the leader, or that has crashed,
// does not know the newest databases, although documents are written to their
// copies. So nothing is believed that the leader does not confirm; the names
// were listed before it is asked, because what it confirms holds for the copies
// that were there by then. Without its word the time begins anew.
func (k *reconciler) clear(ctx context.Context, names []string, suspects int) map[string]time.Time {
	if suspects == 0 {
		return nil
	}
	if err := k.c.meta.CatchUp(ctx); err != nil {
		k.c.log.Warn("copies that seem to belong to no database stay: the map may be behind", zap.Int("copies", suspects), zap.Error(err))
		return nil
	}
	now := time.Now()
	still := make(map[string]time.Time)
	for _, name := range meta.Reconcile(k.c.meta.Databases(), k.c.node, names).Drop {
		since, known := k.orphans[name]
		switch {
		case !known:
			k.c.log.Warn("copy belongs to no database", zap.String("copy", name), zap.Duration("stays for", dropGrace),
				zap.Bool("database was deleted", k.c.meta.IsDeleted(name)))
			still[name] = now
		case now.Sub(since) < dropGrace:
			still[name] = since
		case k.c.meta.IsDeleted(name):
			k.c.log.Info("remove copy of a deleted database", zap.String("copy", name))
			k.c.keeper.drop(ctx, name)
		default:
			k.c.lost.Orphan(ctx, name)
		}
	}
	return still
}

// make makes the copies of a database that this node lacks.
func (k *reconciler) make(ctx context.Context, db *meta.Database) {
	d := newDB(k.c, db) // what is under way may be for a map without the newest copies
	err := k.c.handles.turn(d, func() error { return k.c.keeper.ensureStill(ctx, db) })
	if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.NoCopy) && ctx.Err() == nil { // else it was deleted
		k.failed = true
		k.c.log.Error("copies not made", zap.String("db", db.Name), zap.Error(err))
	}
}
