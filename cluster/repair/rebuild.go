package repair

import (
	"context"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// rebuildEvery is how often this node looks whether copies of its own are
	// incomplete, and whether they are whole again.
	rebuildEvery = time.Second
	// askEvery is how often the other nodes are asked again to push to one.
	askEvery = 5 * time.Second
)

// rebuilds is the copies of this node that are incomplete. mu guards both maps.
type rebuilds struct {
	mu     sync.Mutex
	byCopy map[string]*rebuilding
	asking map[string]struct{} // nodes with a question under way
}

// rebuilding is what is known about one of them. It is not kept on the disk:
// after a restart the others are asked anew, and tell again what they have
// pushed.
type rebuilding struct {
	uuid   [16]byte
	others map[string]standing
	first  time.Time // when the first push was over
}

// keepRebuilding asks for pushes to incomplete copies until ctx ends, and
// declares them whole.
func (r *Repair) keepRebuilding(ctx context.Context) {
	t := time.NewTicker(rebuildEvery)
	defer t.Stop()
	for {
		if names := r.o.Local.AllRebuilding(); len(names) > 0 {
			r.rebuildAll(ctx, names)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// rebuildAll asks for the pushes that are missing, decides what is whole, and
// forgets copies that are gone. It does not wait for answers: a node that hangs
// keeps only those copies waiting that it holds one of.
func (r *Repair) rebuildAll(ctx context.Context, names []string) {
	r.rebuilds.mu.Lock()
	for name := range r.rebuilds.byCopy {
		if _, found := slices.BinarySearch(names, name); !found {
			delete(r.rebuilds.byCopy, name)
		}
	}
	r.rebuilds.mu.Unlock()
	asks := make(map[string][]string) // copies by node
	for _, name := range names {
		r.rebuildOne(ctx, name, asks)
	}
	for node, copies := range asks {
		r.rebuilds.mu.Lock()
		r.rebuilds.asking[node] = struct{}{}
		r.rebuilds.mu.Unlock()
		r.work.Go(func() { r.askPushes(ctx, node, copies) })
	}
	for _, name := range names {
		r.settle(name)
	}
}

// rebuildOne adds to asks the nodes that are to be asked about a copy now.
func (r *Repair) rebuildOne(ctx context.Context, name string, asks map[string][]string) {
	others := r.others(name)
	if others == nil {
		return // no database, or not one that this node knows yet
	}
	uuid, _, err := r.o.Local.Position(ctx, name)
	if err != nil {
		return // not made yet
	}
	now := time.Now()
	r.rebuilds.mu.Lock()
	defer r.rebuilds.mu.Unlock()
	b := r.rebuilds.byCopy[name]
	if b == nil || b.uuid != uuid {
		b = &rebuilding{uuid: uuid, others: make(map[string]standing)}
		r.rebuilds.byCopy[name] = b
		r.log.Info("copy is incomplete, it is filled from the others", zap.String("copy", name))
	}
	for _, node := range others {
		o := b.others[node]
		_, member := r.o.Meta.Node(node)
		_, busy := r.rebuilds.asking[node]
		switch {
		case !member:
			o.state, o.heard = stateGone, true
		case !o.pushed && !busy && now.Sub(o.asked) >= askEvery:
			o.asked = now
			asks[node] = append(asks[node], name)
		}
		b.others[node] = o
	}
}

// askPushes asks a node to push to copies of this one, notes what its own are,
// and decides what is whole. An answer that comes after the node has pushed all that
// it had is older than that, and tells nothing: the node is not asked again.
func (r *Repair) askPushes(ctx context.Context, node string, copies []string) {
	for part := range slices.Chunk(copies, maxNames) {
		a, _ := r.ask(ctx, node, message{Op: opRebuild, Copies: part}) // a node that cannot be asked now is asked again
		r.rebuilds.mu.Lock()
		for _, name := range part {
			b := r.rebuilds.byCopy[name]
			if b == nil {
				continue
			}
			o := b.others[node]
			o.heard = true
			if !o.pushed {
				o.state = a.States[name] // unknown after an error
			}
			b.others[node] = o
		}
		r.rebuilds.mu.Unlock()
		for _, name := range part {
			r.settle(name)
		}
	}
	r.rebuilds.mu.Lock()
	delete(r.rebuilds.asking, node)
	r.rebuilds.mu.Unlock()
}

// settle decides whether a copy is whole and, if so, takes its mark off. Every
// other node has to have been asked at least once.
func (r *Repair) settle(name string) {
	_, nodes, ok := r.place(name)
	if !ok {
		return
	}
	r.rebuilds.mu.Lock()
	b := r.rebuilds.byCopy[name]
	done := false
	if b != nil && !slices.ContainsFunc(nodes, func(node string) bool { return node != r.o.Node && !b.others[node].heard }) {
		waited := time.Duration(0)
		if !b.first.IsZero() {
			waited = time.Since(b.first)
		}
		done = whole(r.o.Node, nodes, b.others, waited)
	}
	if done {
		delete(r.rebuilds.byCopy, name)
	}
	r.rebuilds.mu.Unlock()
	if !done {
		return
	}
	if err := r.o.Local.Rebuilt(name); err != nil {
		r.log.Error("copy is whole again, but that cannot be noted", zap.String("copy", name), zap.Error(err))
		return
	}
	r.log.Info("copy is whole again", zap.String("copy", name))
}

// pushedBy notes that another node has pushed everything to an incomplete copy
// of this node. A message about a copy that has been replaced since counts for
// nothing.
func (r *Repair) pushedBy(ctx context.Context, node string, m *message) error {
	if !r.o.Local.Rebuilding(m.Copy) {
		return nil
	}
	uuid, _, err := r.o.Local.Position(ctx, m.Copy)
	if err != nil {
		return err
	}
	if hex.EncodeToString(uuid[:]) != m.UUID {
		return nil
	}
	r.rebuilds.mu.Lock()
	b := r.rebuilds.byCopy[m.Copy]
	if b != nil && b.uuid == uuid {
		o := b.others[node]
		if m.Part {
			o.pushedPart = true
		} else {
			o.pushed, o.state = true, stateComplete // also when it has only just become so
		}
		b.others[node] = o
		if b.first.IsZero() {
			b.first = time.Now()
		}
	}
	r.rebuilds.mu.Unlock()
	r.settle(m.Copy)
	return nil
}
