package replica

import (
	"context"
	"io"

	"divan/cluster/wire"
	"divan/shard"
)

// WatchRequest asks to be woken.
type WatchRequest struct {
	Copy string
	// C has space for one. It gets a value whenever the durable sequence of the copy
	// has moved, when the copy is dropped, and when its node stops being reachable:
	// a watch does not come back by itself.
	C chan struct{}
}

// Watch tells when a copy moves on. Read the copy after Watch to miss nothing.
// Closing ends the watch, and may be done more than once.
var Watch = declare(Operation[WatchRequest, io.Closer]{
	Copy:   func(q WatchRequest) string { return q.Copy },
	Unheld: true, // it only wakes who reads the copy afterwards, and all watches of a node begin one after the other
	Run: func(h Admitted, _ context.Context, q WatchRequest) (io.Closer, error) {
		w, err := h.Shards.WatchOn(q.Copy, q.C)
		if err != nil {
			return nil, err
		}
		return watcher{w}, nil
	},
	Over: watching{},
})

// watcher is a watch of a copy of this node.
type watcher struct{ *shard.Watch }

// Close implements io.Closer.
func (w watcher) Close() error {
	w.Watch.Close()
	return nil
}

// watching carries Watch.
type watching struct{}

func (watching) ask(_ context.Context, p *wire.Peer, to wire.Addressee, q WatchRequest) (io.Closer, error) {
	return p.Watch(to, q.Copy, q.C)
}

func (watching) serve(o *wire.Operations, run func(context.Context, wire.Addressee, WatchRequest) (io.Closer, error)) {
	o.Watch = func(ctx context.Context, to wire.Addressee, copyName string, c chan struct{}) (io.Closer, error) {
		return run(ctx, to, WatchRequest{copyName, c})
	}
}
