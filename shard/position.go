package shard

import "context"

// Position returns which copy this is and its last durable sequence. It is the
// part of Info that costs next to nothing, for feeds that ask whenever they
// are woken.
func (l *Local) Position(ctx context.Context, name string) (uuid [16]byte, seq uint64, err error) {
	store, err := l.pin(ctx, name)
	if err != nil {
		return uuid, 0, err
	}
	defer l.engine.Release(store)
	seq = store.Counters().Seq
	return store.UUID(), seq, l.durable(ctx, name, seq)
}
