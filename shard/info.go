package shard

import (
	"context"
	"fmt"
)

// Info describes a copy by what its store maintains.
func (l *Local) Info(ctx context.Context, name string) (Info, error) {
	store, err := l.states.pin(ctx, name)
	if err != nil {
		return Info{}, err
	}
	defer l.states.engine.Release(store)
	c := store.Counters()
	file, err := store.FileSize()
	if err != nil {
		return Info{}, fmt.Errorf("size of %s: %w", name, err)
	}
	info := Info{
		UUID: store.UUID(), Live: c.Live, Deleted: c.Deleted, Seq: c.Seq, PurgeSeq: c.PurgeSeq,
		External: c.External, Active: c.Active, File: file, Compacting: l.Compactions.isRunning(name),
	}
	if c.PurgeSeq > c.PurgeTrimmed {
		info.PurgeOldest = c.PurgeTrimmed + 1
	}
	if err := l.states.waitUnsequenced(ctx, name); err != nil {
		return Info{}, err
	}
	return info, l.states.waitDurable(ctx, name, c.Seq)
}

// Partition describes one partition of a copy; one that has no documents is
// all zeros. Sizes are kept only in a copy made with CreateOptions.Partitioned.
func (l *Local) Partition(ctx context.Context, name, partition string) (PartitionInfo, error) {
	store, err := l.states.pin(ctx, name)
	if err != nil {
		return PartitionInfo{}, err
	}
	defer l.states.engine.Release(store)
	snap, err := store.Snapshot()
	if err != nil {
		return PartitionInfo{}, fmt.Errorf("snapshot of %s: %w", name, err)
	}
	defer func() { _ = snap.Close() }() // read only: nothing to lose
	if err := l.states.waitDurable(ctx, name, snap.Seq()); err != nil {
		return PartitionInfo{}, err
	}
	sums, err := snap.Sums(partitionBounds(partition))
	if err != nil {
		return PartitionInfo{}, fmt.Errorf("partition %q of %s: %w", partition, name, err)
	}
	return PartitionInfo{
		Live: uint64(sums.Live), Deleted: uint64(sums.Deleted), External: sums.External, Active: sums.Active,
	}, nil
}

// Position returns which copy this is and its last durable sequence. It is the
// part of Info that costs next to nothing, for feeds that ask whenever they are
// woken. A copy that has stopped gives no position, but the error that says
// why: a caller that waits for it to move would wait in vain.
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
