package view

import (
	"context"

	"divan/shard/index"
)

// Info describes the index of one copy.
type Info struct {
	Seq, PurgeSeq          uint64 // up to which the index reflects the copy
	Pending                uint64 // changes of the copy that are not in the index yet
	File, External, Active int64  // bytes on disk; of keys and values; of files in use
	Waiting                int    // queries that wait for an update
	Updating, Compacting   bool
	LeftOut                uint64          // documents that the index holds nothing of, because they cannot be indexed
	Left                   []index.LeftOut // the first of them
	Collation              string          // version of the collation, empty for a view that is ordered raw
}

// Info describes the index of a definition.
func (v *Views) Info(ctx context.Context, copyName string, definition []byte) (info Info, err error) {
	d, err := ParseText(definition)
	if err != nil {
		return info, err
	}
	use, x, err := v.acquire(ctx, copyName, v.spec(copyName, d))
	if err != nil {
		return info, err
	}
	defer use.Release()
	snap, err := use.Index.Snapshot()
	if err != nil {
		return info, err
	}
	defer snap.Close()
	st, err := readState(snap, len(x.trees), d.collation())
	if err != nil {
		return info, err
	}
	status, err := use.Status(ctx, snap)
	if err != nil {
		return info, err
	}
	info = Info{
		Seq: status.Seq, PurgeSeq: status.PurgeSeq, Pending: status.Pending, Waiting: status.Waiting,
		Updating: status.Updating, Compacting: status.Compacting, LeftOut: status.LeftOut, Left: status.Left, Collation: d.collation(),
	}
	for _, t := range st.trees {
		info.External += t.bytes
	}
	info.File, info.Active, err = use.Index.Sizes()
	return info, err
}

// Compact starts the compaction of the index of a definition in the background.
// While one is running a second call changes nothing.
func (v *Views) Compact(ctx context.Context, copyName string, definition []byte) error {
	d, err := ParseText(definition)
	if err != nil {
		return err
	}
	return v.indexes.Compact(ctx, copyName, v.spec(copyName, d))
}
