package index

import (
	"context"
	"fmt"
	"slices"
	"time"

	"divan/shard"
	"divan/storage"
)

// updater is one update of an open index.
type updater struct {
	f       *follower
	x       *storage.Index
	b       *storage.IndexBatch
	reads   bool     // through b
	pos     Position // as committed
	reading Position // as read
	docs    int      // that were committed
	applied []piece  // that were not, yet
	weighs  int64    // bytes of space that those have used
	key     []byte
	account *account
	weight  weight
	// doubtful says that the next document has failed: it is tried before others
	// are mapped.
	doubtful bool
	left     leftOut
}

// follow brings the index to what the copy is now: fills it if it is new, then
// takes the purges, then the changes.
func (up *updater) follow(ctx context.Context, info shard.Info) error {
	f := up.f
	if up.pos == (Position{}) {
		up.pos = Position{Seq: 0, PurgeSeq: info.PurgeSeq, Filled: f.sequences}
	}
	up.reading = up.pos
	f.holdPurges(ctx, up.pos.PurgeSeq)
	if !up.pos.Filled {
		if err := up.fill(ctx); err != nil {
			return fmt.Errorf("fill index: %w", err)
		}
	}
	if info.PurgeSeq > up.pos.PurgeSeq {
		if err := up.purge(ctx, info.PurgeSeq); err != nil {
			return fmt.Errorf("purge from index: %w", err)
		}
	}
	if err := up.changes(ctx, info.Seq); err != nil {
		return fmt.Errorf("update index: %w", err)
	}
	return nil
}

// begin announces so many changes.
func (up *updater) begin(ctx context.Context, changes uint64) error {
	up.f.progress.total.Add(changes)
	reads, err := up.f.kind.Begin(ctx, up.x, changes)
	if err != nil {
		return indexed(err)
	}
	up.close()
	up.reads = reads
	up.b = up.x.NewBatch(reads)
	return nil
}

func (up *updater) close() {
	if up.b != nil {
		up.b.Close()
	}
}

// fill lists the documents of the copy, from where an earlier update stopped.
func (up *updater) fill(ctx context.Context) error {
	scanned := up.pos.Scanned
	s, err := up.f.m.o.Shards.AllDocs(ctx, shard.DocsRequest{
		Copy: up.f.copyName, Lo: scanned, LoExclusive: scanned != "", IncludeDocs: true, Limit: batchDocs,
		Conflicts: true, DeletedConflicts: true,
	})
	if err != nil {
		return err
	}
	defer s.Close()
	if scanned == "" {
		up.reading.Seq = s.Seq
		up.f.held = false // the checkpoint went with an index that was dropped
	}
	if err := up.begin(ctx, s.Total-s.Before); err != nil {
		return err
	}
	return up.feed(ctx, true, func(b *batch) (more bool, err error) {
		b.at = func(p *Position, d *Doc) { p.Scanned = d.ID }
		more, err = s.Next(&b.rows)
		for i := range b.rows.Rows {
			r := &b.rows.Rows[i]
			b.docs = append(b.docs, Doc{ID: r.ID, Doc: r.Doc})
			b.pos.Scanned = r.ID
		}
		if err == nil && !more {
			b.pos.Filled, b.pos.Scanned = true, ""
		}
		return more, err
	})
}

// changes follows the changes of the copy to the end of a snapshot, the sequence
// of which upto is known.
func (up *updater) changes(ctx context.Context, upto uint64) error {
	limit := batchDocs
	if upto > up.pos.Seq && upto-up.pos.Seq < batchDocs {
		limit = int(upto - up.pos.Seq)
	}
	s, err := up.f.m.o.Shards.Changes(ctx, shard.ChangesRequest{
		Copy: up.f.copyName, Since: up.pos.Seq, IncludeDocs: true, Conflicts: true, DeletedConflicts: true, Limit: limit,
	})
	if err != nil {
		return err
	}
	defer s.Close()
	if s.Seq <= up.pos.Seq && up.pos.Filled {
		return nil
	}
	pending, err := s.Pending(up.pos.Seq)
	if err != nil {
		return err
	}
	if err := up.begin(ctx, pending); err != nil {
		return err
	}
	return up.feed(ctx, false, func(b *batch) (more bool, err error) {
		b.at = func(p *Position, d *Doc) { p.Seq = d.Seq }
		more, err = s.Next(&b.changes)
		b.add()
		b.pos.Seq = max(b.pos.Seq, b.changes.Upto)
		return more, err
	})
}

// batchDocs is how many documents are read, mapped and applied together at most:
// what each of them becomes may be much larger than itself.
const batchDocs = 256

// purge replaces what the index holds of purged documents by what is left of
// them, and goes on to a sequence of the log: the last ones of a copy that was cloned
// may be of documents that it does not have.
func (up *updater) purge(ctx context.Context, upto uint64) error {
	log, err := up.f.m.o.Shards.Purges(ctx, up.f.copyName, up.pos.PurgeSeq)
	if err != nil {
		return err
	}
	if err := up.begin(ctx, uint64(len(log))); err != nil {
		return err
	}
	r := purgeReader{ctx: ctx, up: up, log: log, upto: upto}
	defer r.close()
	return up.feed(ctx, false, r.read)
}

// CommitBytes is from how many bytes on a commit does not wait for the end of its
// batch. Larger ones are written to files as they are, which costs the engine less
// than many small ones.
const CommitBytes = 24 << 20

// What a Gatherer gathers: documents, and bytes of space, unless the share of the update is
// smaller.
const (
	gatherDocs  = 5000
	gatherBytes = 8 << 20
)

// gathers reports whether more should come together before a commit.
func (up *updater) gathers(p *piece) bool {
	if _, ok := up.f.kind.(Gatherer); !ok || !p.more {
		return false
	}
	docs := 0
	for i := range up.applied {
		docs += len(up.applied[i].docs)
	}
	return docs < gatherDocs && up.weighs < min(gatherBytes, up.account.share()/4)
}

// large reports that a commit does not wait for the end of its batch of documents.
func (up *updater) large() bool {
	_, gathers := up.f.kind.(Gatherer)
	return up.b.Len() >= CommitBytes || gathers && up.weighs >= CommitBytes
}

// commit commits what was applied, and gives the memory of that back.
func (up *updater) commit(ctx context.Context) error {
	if len(up.applied) == 0 {
		return nil
	}
	return up.commitBatch(ctx)
}

// commitBatch is commit, though there may be nothing whose position is known.
func (up *updater) commitBatch(ctx context.Context) error {
	if g, ok := up.f.kind.(Gatherer); ok {
		if err := g.Flush(up.b); err != nil {
			return indexed(err)
		}
	}
	if n := len(up.applied); n > 0 {
		up.pos = up.applied[n-1].pos
		up.key = up.pos.append(up.key[:0])
		up.b.Set([]byte(positionKey), up.key)
	}
	up.left.write(up.b)
	if err := indexed(up.b.Commit(ctx)); err != nil {
		return err
	}
	clear(up.left.pending)
	up.f.progress.left.Store(up.left.count)
	if err := up.settle(); err != nil {
		return err
	}
	progress := &up.f.progress
	for i := range up.applied {
		p := &up.applied[i]
		p.space.close()
		up.docs += len(p.docs)
		progress.done.Add(uint64(len(p.docs)))
	}
	progress.updated.Store(time.Now().UnixMilli())
	clear(up.applied)
	up.applied, up.weighs = up.applied[:0], 0
	return nil
}

// settle waits until the engine has written what went beyond the budget, which it
// holds in memory until then: the next update that goes beyond it may begin.
func (up *updater) settle() error {
	if !slices.ContainsFunc(up.applied, func(p piece) bool { return p.space.beyond > 0 }) {
		return nil
	}
	return indexed(up.x.Settle())
}

// flushAfter is after how many documents what an update has done is made
// durable at its end. What a smaller one did is done again after a crash.
const flushAfter = 10000

// end makes the progress durable where that is worth it.
func (up *updater) end(ctx context.Context) error {
	f := up.f
	purged := f.held && f.heldSeq != up.pos.PurgeSeq
	if f.unflushed += up.docs; f.unflushed >= flushAfter || purged {
		if err := up.x.Flush(); err != nil {
			return err
		}
		f.unflushed = 0
		f.holdPurges(ctx, up.pos.PurgeSeq)
	}
	f.setPosition(up.x, up.pos)
	return nil
}
