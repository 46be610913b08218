package repair

import (
	"context"
	"time"
)

// maxHints bounds the hints for other nodes that wait to be sent. One that is
// lost costs time: the holders push after their delay anyway.
const maxHints = 10_000

// Updated is told that a copy of this node has changed (shard.Options.OnUpdate).
// It does not block.
func (r *Repair) Updated(name string) {
	if r.layout.peers == nil && !r.layout.meta.Databases().AnyChanging() {
		return
	}
	r.mu.Lock()
	news := r.mu.schedule.update(name, time.Now())
	r.mu.Unlock()
	if news {
		r.rouse()
	}
}

// missing is a copy by its name and node that misses something; without a node: all
// copies of its range.
type missing struct{ copy, node string }

// Missed is told that the copy of that name on a node misses something that
// another copy of the range has. A node that holds one pushes at once, also
// when that is not this one. It does not block.
func (r *Repair) Missed(name, node string) {
	m := missing{name, node}
	if r.request(m, (*schedule).hint) {
		return
	}
	r.mu.Lock()
	if len(r.mu.tell) < maxHints {
		r.mu.tell[m] = struct{}{}
	}
	r.mu.Unlock()
	r.rouse()
}

// Sync starts a round of pushes between all copies of the ranges of the named
// copies, on this node and on the others that hold one, and does not wait for
// them. A node that cannot be reached does its round when it is back.
func (r *Repair) Sync(ctx context.Context, copies []string) error {
	all := make(map[missing]struct{}, len(copies))
	for _, name := range copies {
		m := missing{copy: name}
		all[m] = struct{}{}
		r.request(m, (*schedule).sync)
	}
	r.passOn(ctx, opSync, all)
	return ctx.Err()
}

// request asks for pushes from copies of this node to one that misses something. It reports
// false when this node holds no copy to push from.
func (r *Repair) request(m missing, want func(s *schedule, p pair, now time.Time)) bool {
	pairs := r.layout.pairsTo(m.copy, m.node)
	now := time.Now()
	r.mu.Lock()
	for _, p := range pairs {
		want(r.mu.schedule, p, now)
	}
	r.mu.Unlock()
	r.rouse()
	return len(pairs) > 0
}

// passOn has the other nodes that hold a copy to push from do what is asked for.
func (r *Repair) passOn(ctx context.Context, op string, all map[missing]struct{}) {
	byNode := make(map[string][][2]string)
	for m := range all {
		for _, node := range r.layout.holders(m.copy, m.node) {
			if node != r.layout.node {
				byNode[node] = append(byNode[node], [2]string{m.copy, m.node})
			}
		}
	}
	r.messenger.send(ctx, op, byNode)
}
