package cluster

import (
	"context"

	"divan/cluster/quorum"
	"divan/storage/fault"
)

// ask puts a question to one copy of a stretch that any of them can answer: to
// that of this node if it has one, else in the order of the map, and to the
// next one when a copy gives no usable answer or is slow. The error is
// explained.
func ask[T any](ctx context.Context, d *DB, s *stretch, question func(context.Context, replica, string) (T, error)) (T, error) {
	copies := s.near
	if copies[0].node == d.c.node {
		got, err := question(ctx, d.c.local, copies[0].name)
		if err == nil || len(copies) == 1 || quorum.Usable(err) {
			return got, d.explain(ctx, err)
		}
		copies = copies[1:]
	}
	return askOf(ctx, d, copies, func(ctx context.Context, rep replica, t target) (T, error) {
		return question(ctx, rep, t.name)
	})
}

// askOf is ask for given copies, and with the copy that is asked.
func askOf[T any](ctx context.Context, d *DB, copies []target, question func(context.Context, replica, target) (T, error)) (T, error) {
	r := race[T]{db: d, copies: copies, ask: question, limit: d.c.requestTimeout(), patience: d.c.reads.patience(readPatience)}
	w, err := r.run(ctx)
	if w.stop != nil {
		w.stop()
	}
	return w.got, d.explain(ctx, err)
}

// askSome is ask for what a copy may not have although another one has it:
// fault.NotFound counts only when r copies say so, or all that answer; r below
// 1 means the majority. What was acknowledged by the majority is found, and a
// copy that has not dropped yet what the others have dropped is no oracle.
func askSome[T any](ctx context.Context, d *DB, s *stretch, r int, question func(context.Context, replica, target) (T, error)) (T, error) {
	if r < 1 {
		r = quorum.Majority(len(s.copies))
	}
	absent := 0
	asking := race[T]{
		db: d, copies: s.near, ask: question, limit: d.c.requestTimeout(), patience: d.c.reads.patience(readPatience),
		goOn: func(err error) bool {
			if !isNotFound(err) {
				return false
			}
			absent++
			return absent < r
		},
	}
	w, err := asking.run(ctx)
	if w.stop != nil {
		w.stop()
	}
	return w.got, d.explain(ctx, err)
}

func isNotFound(err error) bool { return fault.Is(err, fault.NotFound) }

// group is the items of a request that belong to one stretch.
type group struct {
	stretch *stretch
	items   []int // their places in the request, ascending
}

// group sorts n items by the stretch their ids belong to; the groups are in
// ring order.
func (d *DB) group(n int, id func(i int) string) []group {
	if len(d.stretches) == 1 {
		items := make([]int, n)
		for i := range items {
			items[i] = i
		}
		return []group{{stretch: &d.stretches[0], items: items}}
	}
	owners := make([]int32, n)
	counts := make([]int, len(d.stretches))
	for i := range n {
		o := d.ownerIndex(id(i))
		owners[i] = int32(o)
		counts[o]++
	}
	room := make([]int, n)
	byOwner := make([]group, len(d.stretches))
	for o, count := range counts {
		byOwner[o] = group{stretch: &d.stretches[o], items: room[:0:count]}
		room = room[count:]
	}
	for i, o := range owners {
		byOwner[o].items = append(byOwner[o].items, i)
	}
	groups := byOwner[:0]
	for _, g := range byOwner {
		if len(g.items) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}
