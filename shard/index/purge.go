package index

import (
	"context"

	"divan/shard"
)

// purgeIDs is how many purged documents are looked up together.
const purgeIDs = 256

// purgeReader reads purged documents as they are now.
type purgeReader struct {
	ctx  context.Context
	up   *updater
	log  []shard.PurgeInfo   // what is left
	upto uint64              // where the log ends at least
	seq  uint64              // of the documents that are looked up
	ids  []string            // that are looked up
	left map[string]bool     // of them
	from *shard.ChangeStream // of them; nil: the next ones have to be looked up
}

// read is a readBatch. Documents that are looked up together may come in several
// batches; the position moves behind them with the last one.
func (r *purgeReader) read(b *batch) (more bool, err error) {
	b.at = nil
	if r.from == nil {
		if len(r.log) == 0 {
			b.pos.PurgeSeq = max(b.pos.PurgeSeq, r.upto)
			return false, nil
		}
		if err := r.lookUp(); err != nil {
			return false, err
		}
	}
	if more, err = r.from.Next(&b.changes); err != nil {
		return false, err
	}
	b.add()
	for i := range b.docs {
		r.left[b.docs[i].ID] = true
	}
	if more {
		return true, nil
	}
	for _, id := range r.ids {
		if !r.left[id] {
			b.docs = append(b.docs, Doc{ID: id})
		}
	}
	b.pos.PurgeSeq = r.seq
	if len(r.log) == 0 {
		b.pos.PurgeSeq = max(r.seq, r.upto)
	}
	r.close()
	return len(r.log) > 0, nil
}

// lookUp begins with the next documents of the log.
func (r *purgeReader) lookUp() (err error) {
	r.ids, r.left = r.ids[:0], map[string]bool{}
	named := map[string]bool{}
	for ; len(r.log) > 0 && len(r.ids) < purgeIDs; r.log = r.log[1:] {
		if id := r.log[0].ID; !named[id] {
			named[id] = true
			r.ids = append(r.ids, id)
		}
		r.seq = r.log[0].Seq
	}
	r.from, err = r.up.f.m.o.Shards.Changes(r.ctx, shard.ChangesRequest{
		Copy: r.up.f.copyName, IncludeDocs: true, Conflicts: true, DeletedConflicts: true, Filter: shard.Filter{Kind: shard.FilterDocIDs, IDs: r.ids},
	})
	return err
}

func (r *purgeReader) close() {
	if r.from != nil {
		r.from.Close()
		r.from = nil
	}
}
