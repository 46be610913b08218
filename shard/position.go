package shard

import (
	"context"
	"fmt"
)

// Position returns which copy this is and its last durable sequence. It is the
// part of Info that costs next to nothing, for feeds that ask whenever they
// are woken. A copy that has stopped gives no position, but the error that says
// why: whoever waits for it to move would wait in vain.
func (l *Local) Position(ctx context.Context, name string) (uuid [16]byte, seq uint64, err error) {
	store, err := l.states.pin(ctx, name)
	if err != nil {
		return uuid, 0, err
	}
	defer l.states.engine.Release(store)
	if err := store.Err(); err != nil {
		return uuid, 0, fmt.Errorf("position of %s: %w", name, err)
	}
	seq = store.Counters().Seq
	return store.UUID(), seq, l.states.waitDurable(ctx, name, seq)
}
