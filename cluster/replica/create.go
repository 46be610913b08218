package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
	"divan/shard/ring"
)

// Create makes a copy of a new database, empty and complete; fault.Exists when it is there.
// It is refused unless the map of this node has the copy. No other node can ask for it.
func (l *Local) Create(ctx context.Context, r ring.Replica, partitioned bool) error {
	if err := l.check(ctx, r.Name, Of(l, r).To, demand{needs: Present, unheld: true}); err != nil {
		return err
	}
	return l.held.Shards.Copies.Create(ctx, r.Name, shard.CreateOptions{ID: r.ID, Partitioned: partitioned})
}

// Drop removes a copy with everything in it.
var Drop = declare(Operation[string, Done]{
	Copy:  copyName,
	Needs: Dropped, Unheld: true,
	Run: func(h Admitted, ctx context.Context, copyName string) (Done, error) {
		if h.Dropped != nil {
			h.Dropped(copyName)
		}
		return Done{}, h.Shards.Copies.Drop(ctx, copyName)
	},
	Over: unary(wirepb.Op_DROP, wire.ClassWrite, copyCodec(), doneCodec()),
})
