package index

import (
	"context"
	"encoding/json"

	"go.uber.org/zap"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// checkpointID is the local document of a copy that makes its purge log wait for
// an index.
func checkpointID(n Name) string { return shard.PurgePrefix + "index-" + n.String() }

// checkpoint is the content of that document.
type checkpoint struct {
	PurgeSeq uint64 `json:"purge_seq"`
	Type     string `json:"type"`
}

// holdPurges makes the purge log of the copy wait for the index at a position
// that is durable. What fails is only told: an index that is behind the log is
// built anew.
func (f *follower) holdPurges(ctx context.Context, purgeSeq uint64) {
	if f.held && f.heldSeq == purgeSeq {
		return
	}
	body, _ := json.Marshal(checkpoint{PurgeSeq: purgeSeq, Type: "index"}) // a number and a string: it cannot fail
	if _, err := f.m.o.Shards.LocalDocs.Put(ctx, f.copyName, checkpointID(f.spec.Name), doc.Rev{}, body); err != nil {
		f.log.Warn("the purge log does not wait for the index", zap.Error(err))
		return
	}
	f.held, f.heldSeq = true, purgeSeq
}

// removeCheckpoint lets the purge log of a copy forget an index.
func (m *Manager) removeCheckpoint(ctx context.Context, copyName string, name Name) error {
	_, err := m.o.Shards.LocalDocs.Delete(ctx, copyName, checkpointID(name), doc.Rev{})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
