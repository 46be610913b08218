package repair

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// maxHints bounds the hints for other nodes that wait to be sent. One that is
// lost costs time: the holders push after their delay anyway.
const maxHints = 10_000

// Updated is told that a copy of this node has changed (shard.Options.OnUpdate).
// It does not block.
func (r *Repair) Updated(name string) {
	r.mu.Lock()
	news := r.mu.schedule.update(name, time.Now())
	r.mu.Unlock()
	if news {
		r.rouse()
	}
}

// Missed is told that the copy of that name on a node lacks something that
// another copy of the range has. A node that holds one pushes at once, also
// when that is not this one. It does not block.
func (r *Repair) Missed(name, node string) {
	p := pair{name, node}
	if node != r.o.Node && r.hint(p) {
		return
	}
	r.mu.Lock()
	if len(r.mu.tell) < maxHints {
		r.mu.tell[p] = struct{}{}
	}
	r.mu.Unlock()
	r.rouse()
}

// hint starts a push of a copy of this node; false when this node holds none
// to push from.
func (r *Repair) hint(p pair) bool {
	if !slices.Contains(r.others(p.copy), p.node) {
		return false
	}
	r.mu.Lock()
	r.mu.schedule.want(p, time.Now())
	r.mu.Unlock()
	r.rouse()
	return true
}

func (r *Repair) wantRebuild(p pair) {
	if !slices.Contains(r.others(p.copy), p.node) {
		return
	}
	r.mu.Lock()
	r.mu.schedule.wantRebuild(p, time.Now())
	r.mu.Unlock()
	r.rouse()
}

// passOn gives hints to the nodes that hold a copy to push from.
func (r *Repair) passOn(ctx context.Context, hints map[pair]struct{}) {
	byNode := make(map[string][][2]string)
	for p := range hints {
		_, nodes, _ := r.place(p.copy)
		for _, node := range nodes {
			if node != p.node && node != r.o.Node {
				byNode[node] = append(byNode[node], [2]string{p.copy, p.node})
			}
		}
	}
	for node, pairs := range byNode {
		for part := range slices.Chunk(pairs, maxNames) {
			if _, err := r.ask(ctx, node, message{Op: opMissed, Pairs: part}); err != nil {
				r.log.Debug("hint not passed on", zap.String("node", node), zap.Error(err))
				break
			}
		}
	}
}

// Sync starts a round of pushes between all copies of the ranges of the named
// copies, on this node and on the others that hold one, and does not wait for
// them. A node that cannot be reached does its round when it is back.
func (r *Repair) Sync(ctx context.Context, copies []string) error {
	r.syncOwn(copies)
	byNode := make(map[string][]string)
	for _, name := range copies {
		_, nodes, _ := r.place(name)
		for _, node := range nodes {
			if node != r.o.Node && !slices.Contains(byNode[node], name) {
				byNode[node] = append(byNode[node], name)
			}
		}
	}
	var wg sync.WaitGroup
	for node, names := range byNode {
		wg.Go(func() {
			for part := range slices.Chunk(names, maxNames) {
				if _, err := r.ask(ctx, node, message{Op: opSync, Copies: part}); err != nil {
					r.log.Info("round of synchronisation not started", zap.String("node", node), zap.Error(err))
					return
				}
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// syncOwn starts the pushes from copies of this node, also those that wait
// after a failure.
func (r *Repair) syncOwn(copies []string) {
	now := time.Now()
	for _, name := range copies {
		others := r.others(name)
		r.mu.Lock()
		for _, node := range others {
			if it := r.mu.schedule.want(pair{name, node}, now); it != nil {
				r.mu.schedule.hurry(it, now)
			}
		}
		r.mu.Unlock()
	}
	r.rouse()
}

// Task describes a push that runs, for _active_tasks.
type Task struct {
	Copy, Node           string // from the copy of this node to that of the other
	StartedMS, UpdatedMS int64  // unix time, milliseconds
	From, At, To         uint64 // sequences of this node's copy: where it began, is, will end
	Docs, Bytes          uint64 // revisions and bytes of large attachments pushed so far
}

// Tasks returns the pushes that run and have something to do, ordered by copy
// and node.
func (r *Repair) Tasks() []Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Task
	for _, it := range r.mu.schedule.items {
		p := it.progress
		if it.index >= 0 || p.to.Load() == 0 || p.at.Load() == p.to.Load() {
			continue
		}
		out = append(out, Task{
			Copy: it.copy, Node: it.node, StartedMS: it.begun.UnixMilli(), UpdatedMS: p.updated.Load(),
			From: p.from.Load(), At: p.at.Load(), To: p.to.Load(), Docs: p.docs.Load(), Bytes: p.bytes.Load(),
		})
	}
	slices.SortFunc(out, func(a, b Task) int { return cmp.Or(cmp.Compare(a.Copy, b.Copy), cmp.Compare(a.Node, b.Node)) })
	return out
}

// Jobs returns how many pushes run or wait: the internal_replication_jobs of
// _system.
func (r *Repair) Jobs() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.mu.schedule.items)
}

// Lag is how far another copy is behind one of this node.
type Lag struct {
	Copy, Node string
	Behind     uint64 // sequences of this node's copy since the last checkpoint

	away   bool
	synced uint64
}

// maxLags bounds the pairs whose lag is worked out at a time.
const maxLags = 1000

// Lag returns how far other copies are known to be behind those of this node,
// ordered, and the sum: of running pushes as they are, of waiting ones as of
// the last look, of those to a node that is away as of now. At most a thousand
// pairs are listed.
func (r *Repair) Lag(ctx context.Context) (total uint64, pairs []Lag) {
	r.mu.Lock()
	for _, it := range r.mu.schedule.items {
		if len(pairs) == maxLags {
			break
		}
		behind := it.behind
		if it.index < 0 {
			behind = it.progress.to.Load() - min(it.progress.at.Load(), it.progress.to.Load())
		}
		pairs = append(pairs, Lag{Copy: it.copy, Node: it.node, Behind: behind, away: it.away, synced: r.mu.synced[it.pair]})
	}
	r.mu.Unlock()
	for i := range pairs {
		if l := &pairs[i]; l.away {
			if _, seq, err := r.o.Local.Position(ctx, l.Copy); err == nil {
				l.Behind = seq - min(l.synced, seq)
			}
		}
		total += pairs[i].Behind
	}
	pairs = slices.DeleteFunc(pairs, func(l Lag) bool { return l.Behind == 0 })
	slices.SortFunc(pairs, func(a, b Lag) int { return cmp.Or(cmp.Compare(a.Copy, b.Copy), cmp.Compare(a.Node, b.Node)) })
	return total, pairs
}
