package rebalance

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/reshard"
	"divan/shard/ring"
	"divan/storage/fault"
)

// watch is what the leader has seen of nodes.
type watch struct {
	away    map[string]time.Time // members that do not answer, since when
	here    map[string]time.Time // those that do
	refused map[string]time.Time // why they are not taken out was logged then
	sized   time.Time            // when sizes are looked at again
}

const (
	// joinedAfter is how long a new node is there before copies are moved to it by themselves.
	joinedAfter = 10 * time.Second
	// refusedEvery is how often it is logged that a node is not taken out.
	refusedEvery = time.Minute
	// sizedEvery is how often the leader looks for shards that are too large.
	sizedEvery = time.Minute
)

// watch begins what the configuration wants to begin by itself.
func (r *Rebalancer) watch(ctx context.Context, w *watch) error {
	conf := r.o.Config.Load()
	w.see(r.o.Map.Nodes(), r.o.Alive, time.Now())
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

// takeOutLost takes a member out of the cluster that has not answered for so long, and has its copies made anew
// on others. It stays when something would be given up, and when no majority would be left.
func (r *Rebalancer) takeOutLost(ctx context.Context, w *watch, after time.Duration) error {
	now := time.Now()
	for _, name := range sortedKeys(w.away) {
		if now.Sub(w.away[name]) < after {
			continue
		}
		err := r.dispensable(name)
		if err == nil {
			err = r.o.Map.RemoveNode(ctx, name)
		}
		if err != nil {
			if now.Sub(w.refused[name]) >= refusedEvery {
				w.refused[name] = now
				r.o.Logger.Warn("a node that is lost is not replaced", zap.String("node", name), zap.Error(err))
			}
			continue
		}
		r.o.Logger.Warn("a node was taken out of the cluster: it has not answered for longer than [cluster] replace_after", zap.String("node", name))
		if _, err := r.Start(ctx, true, name+" is lost."); err != nil && !fault.Is(err, fault.Conflict) {
			return err
		}
		return nil // one at a time: what it had has to be safe again first
	}
	return nil
}

func (r *Rebalancer) dispensable(node string) error {
	for db := range r.o.Map.Databases().All() {
		if !ring.NodeDispensable(db.Shards, node) {
			return fault.Newf(fault.Conflict, "It has the only full copy of a range of database %q, or one that others are still filled from.", db.Name)
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
	known, _ := r.collect(ctx, r.o.Map.Nodes())
	busy := busyRanges(inTheWay(r.o.Table.Jobs(), 0)) // what has failed would fail again
	for db := range r.o.Map.Databases().All() {
		if len(db.Shards) >= ring.MaxQ/2 {
			continue
		}
		for i := range db.Shards {
			s := &db.Shards[i]
			if !settled(db.Shards, s) || slices.ContainsFunc(busy[db.ID], s.Overlaps) || known.largest(db, s) <= above {
				continue
			}
			for _, c := range s.Copies {
				of, err := reshard.SplitOf(db, s.Range, c)
				if err == nil {
					_, err = r.o.Table.Create(ctx, of)
				}
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

func sortedKeys(m map[string]time.Time) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
