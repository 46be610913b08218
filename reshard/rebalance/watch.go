package rebalance

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/reshard"
	"divan/reshard/job"
	"divan/shard/ring"
	"divan/storage/fault"
)

// watch is the leader's record of the nodes it watches.
type watch struct {
	away    map[string]time.Time // members that do not answer, since when
	here    map[string]time.Time // those that do
	refused map[string]time.Time // when it was last found that they may not be taken out
	sized   time.Time            // when sizes are looked at again
}

const (
	// joinedAfter is how long a new node is there before copies are moved to it by themselves.
	joinedAfter = 10 * time.Second
	// refusedEvery is how often it is looked whether a node that may not be taken out may be now.
	refusedEvery = time.Minute
	// sizedEvery is how often the leader looks for shards that are too large.
	sizedEvery = time.Minute
	// narrowest is how much of the ring a shard has at least that is split by itself: documents of
	// one partition, or one very large document, stay together however often that is done.
	narrowest = 1 << 32 / 64
)

// watch begins what the configuration wants to begin by itself.
func (r *Rebalancer) watch(ctx context.Context, w *watch) error {
	conf := r.o.Config.Load()
	w.see(r.o.Group.Nodes(), r.o.Alive, time.Now())
	if after := conf.Cluster.ReplaceAfter; after > 0 {
		if err := r.takeOutLost(ctx, w, after); err != nil {
			return err
		}
	}
	if conf.Cluster.AutoRebalance {
		if err := r.fillNew(ctx, w); err != nil {
			return err
		}
	}
	if above := conf.Reshard.SplitAbove; above > 0 && !time.Now().Before(w.sized) {
		w.sized = time.Now().Add(sizedEvery)
		return r.splitLarge(ctx, above)
	}
	return nil
}

// see notes who answers.
func (w *watch) see(members []meta.Node, alive func(string) bool, now time.Time) {
	away, here := map[string]time.Time{}, map[string]time.Time{}
	for _, n := range members {
		was, is := w.away, away
		if alive(n.Name) {
			was, is = w.here, here
		}
		since, known := was[n.Name]
		if !known {
			since = now
		}
		is[n.Name] = since
	}
	w.away, w.here = away, here
	if w.refused == nil {
		w.refused = map[string]time.Time{}
	}
}

// takeOutLost takes the member out of the cluster that has not answered for so long, and has its copies made anew
// on others.
func (r *Rebalancer) takeOutLost(ctx context.Context, w *watch, after time.Duration) error {
	now := time.Now()
	for name, since := range w.away {
		if now.Sub(since) < after || now.Sub(w.refused[name]) < refusedEvery {
			continue
		}
		err := r.mayTakeOut(ctx, w, name)
		if err == nil {
			err = r.o.Group.RemoveNode(ctx, name)
		}
		if err != nil {
			w.refused[name] = now
			if ctx.Err() == nil {
				r.o.Logger.Warn("a node that is lost is not replaced", zap.String("node", name), zap.Error(err))
			}
			return nil
		}
		r.o.Logger.Warn("a node was taken out of the cluster: it has not answered for longer than [cluster] replace_after", zap.String("node", name))
		if _, err := r.Start(ctx, true, name+" is lost."); err != nil && !errors.Is(err, ErrRunning) {
			return err
		}
	}
	return nil
}

// mayTakeOut returns why a member stays that is away. It stays when others are away too, which may be the fault of
// this node's network; when an earlier one has copies still, or a rebalance is stopped; when something would be given
// up; and when its copies have no other place.
func (r *Rebalancer) mayTakeOut(ctx context.Context, w *watch, node string) error {
	if len(w.away) > 1 {
		return fault.Newf(fault.Conflict, "%d nodes are away.", len(w.away))
	}
	if s := r.load(); s.Record != nil && s.State == Stopped {
		return fault.New(fault.Conflict, "The rebalance is stopped.")
	}
	members := r.o.Group.Nodes()
	for db := range r.o.Map.Databases().All() {
		if !ring.NodeDispensable(db.Shards, node) {
			return fault.Newf(fault.Conflict, "It has the only full copy of a range of database %q, or one that others are still filled from.", db.Name)
		}
		for _, s := range db.Shards {
			for _, c := range s.Copies {
				if !slices.ContainsFunc(members, func(n meta.Node) bool { return n.Name == c.Node }) {
					return fault.Newf(fault.Conflict, "Copies of %s, which is no member any more, are not made anew yet.", c.Node)
				}
			}
		}
	}
	p, err := r.plan(ctx, scope{leavingOnly: true, without: node}, r.o.Table.Jobs())
	if err != nil {
		return err
	}
	for _, l := range p.Left {
		if l.Node == node {
			return fault.Newf(fault.Conflict, "A copy of %s of database %q would stay lost: %s.", l.Range, l.DB.Name, l.Why)
		}
	}
	return nil
}

// fillNew begins a rebalance when a node is there that was not when the last one ended.
func (r *Rebalancer) fillNew(ctx context.Context, w *watch) error {
	s := r.load()
	if s.Record != nil && (s.State == Running || s.State == Stopped) || s.Record == nil && s.version != 0 {
		return nil
	}
	for _, name := range r.takers() {
		if s.Record != nil && slices.Contains(s.Members, name) {
			continue
		}
		since, here := w.here[name]
		if !here || time.Since(since) < joinedAfter {
			continue
		}
		_, err := r.Start(ctx, false, name+" has joined.")
		return err
	}
	return nil
}

// splitLarge has shards split of which a copy is larger than so many bytes.
func (r *Rebalancer) splitLarge(ctx context.Context, above int64) error {
	known, _ := r.sizes.collect(ctx, r.o.Group.Nodes())
	busy, full := map[[16]byte][]ring.Range{}, map[string]bool{}
	for _, j := range r.o.Table.Jobs() {
		if j.State != job.Completed { // what has failed would fail again
			busy[j.DatabaseID] = append(busy[j.DatabaseID], j.Range)
		}
	}
	for db := range r.o.Map.Databases().All() {
		if db.Marked() { // something is under way; in a minute it may not be
			continue
		}
		for i := range db.Shards {
			s := &db.Shards[i]
			if s.End-s.Begin < narrowest || slices.ContainsFunc(busy[db.ID], s.Overlaps) || known.largest(db, s) <= above {
				continue
			}
			for _, c := range s.Copies {
				if full[c.Node] {
					continue
				}
				of, err := reshard.SplitOf(db, s.Range, c)
				if err == nil {
					_, err = r.o.Table.Create(ctx, of)
				}
				full[c.Node] = errors.Is(err, reshard.ErrMaxJobs)
				if fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
					return err
				}
			}
		}
	}
	return ctx.Err()
}

// largest returns the bytes of the largest copy of a shard.
func (s sizes) largest(db *meta.Database, shard *ring.Shard) (most int64) {
	for _, c := range shard.Copies {
		most = max(most, s[copyKey{db.ID, c.ID}])
	}
	return most
}
