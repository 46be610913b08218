package repair

import (
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
