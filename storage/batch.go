package storage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/format"
	"divan/storage/instance"
	"divan/storage/keyspace"
	"divan/storage/ordered"
)

// Batch collects changes of one store; they become visible, and durable, all
// together or not at all. It belongs to the store's single writer: everything
// it is told about old states is that of the last applied batch, plus what the
// caller put into this batch itself. Apply or Discard must be called.
//
// Methods keep the first error, and Apply returns it; nothing of such a batch
// is written.
type Batch struct {
	s        *Store
	b        *pebble.Batch // nil after an error of NewBatch
	small    *smallBatch   // begun while the store was small; nil: it goes into the store's own instance
	later    ordered.Parts // what goes to b at last
	err      error
	tally    tally
	waiters  int
	claimed  claimed
	origins  []Origin // nil: they stay
	key, val []byte
}

// NewBatch starts a batch. For the first one of a store that is not small it opens the
// store's files, which takes milliseconds.
func (s *Store) NewBatch() *Batch { return s.newBatch(false) }

// NewReserveBatch is NewBatch for what gives space back in the end: it may take
// the space that other writes leave on the disk.
func (s *Store) NewReserveBatch() *Batch { return s.newBatch(true) }

func (s *Store) newBatch(reserve bool) *Batch {
	b := &Batch{s: s, tally: tally{states: &s.states}}
	var db *pebble.DB
	if !s.small.takesBatches() {
		db, b.err = s.writable(reserve)
	} else if b.err = s.mayWrite(reserve); b.err == nil {
		if db, b.err = s.env.emptyDB(); b.err == nil {
			b.small, b.err = s.small.newBatch(reserve)
		}
	}
	if b.err != nil {
		return b
	}
	b.b = db.NewBatch(pebble.WithMaxRetainedSizeBytes(retainedBytes))
	return b
}

// retainedBytes is the size of a batch whose memory the next one gets: a group commit has up
// to 1 MB and a request of documents and their keys, and memory grows by doubling.
const retainedBytes = 4 << 20

// Err returns why the batch cannot be applied, as far as that is known.
func (b *Batch) Err() error { return b.err }

// Waiters says how many requests wait until the batch is durable.
func (b *Batch) Waiters(n int) { b.waiters = n }

// note keeps the first error.
func (b *Batch) note(err error) {
	if b.err == nil && err != nil {
		b.err = fmt.Errorf("build batch: %w", err)
	}
}

func (b *Batch) set() {
	if b.err == nil {
		b.note(b.later.Set(b.b, b.key, b.val))
	}
}

func (b *Batch) delete() {
	if b.err == nil {
		b.note(b.later.Delete(b.b, b.key))
	}
}

// Empty reports whether the batch would change nothing.
func (b *Batch) Empty() bool { return b.b == nil || b.b.Empty() && b.later.Len() == 0 }

// Size returns how many bytes the batch holds so far.
func (b *Batch) Size() int {
	if b.b == nil {
		return 0
	}
	return b.b.Len() + b.later.Len()
}

// Put writes a document: its record, its entry in the sequence at next.Seq
// instead of the one at old.Seq, and what it changes in counters and
// aggregates. old is the record as it is before, nil for a new document.
// next.Seq must be above every sequence in use, or old.Seq when the leaves
// stay as they are. Bodies that next.Inline does not hold are the caller's to
// put. Put decides which of the revisions lie in blocks and sets next.Below.
func (b *Batch) Put(old, next *doc.Record) {
	if b.err != nil {
		return
	}
	b.settle(old, next)
	b.key = keyspace.AppendDoc(b.key[:0], next.ID)
	b.val = next.AppendBinary(b.val[:0])
	b.set()
	b.key = keyspace.AppendHead(b.key[:0], next.ID)
	b.val = next.AppendHead(b.val[:0])
	b.set()
	b.tally.count(old, next)
	if old != nil && old.Seq != next.Seq {
		b.dropSeq(old.Seq)
	}
	b.key = keyspace.AppendSeq(b.key[:0], next.Seq)
	b.val = format.AppendChange(b.val[:0], next)
	b.set()
	b.tally.put(next.ID, next.Seq, old != nil && old.Seq == next.Seq)
	if next.Inline != nil && b.s.uploads.Any() {
		v, err := doc.DecodeRevision(next.Inline)
		b.note(err)
		b.claim(next.ID, v.Atts)
	}
}

// Remove takes a document out: record, history and sequence entry. Its bodies are the
// caller's to delete; its attachments go with the next compaction unless they
// are deleted too.
func (b *Batch) Remove(old *doc.Record) {
	if b.err != nil {
		return
	}
	b.key = keyspace.AppendDoc(b.key[:0], old.ID)
	b.delete()
	b.key = keyspace.AppendHead(b.key[:0], old.ID)
	b.delete()
	for n, end := old.Below.Blocks(); n < end; n++ {
		b.blocksOf(old.ID).DeleteBlock(n)
	}
	b.dropSeq(old.Seq)
	b.tally.count(old, nil)
}

func (b *Batch) dropSeq(seq uint64) {
	b.key = keyspace.AppendSeq(b.key[:0], seq)
	b.delete()
	b.tally.leave(seq)
}

// Advance moves the update sequence to seq without an entry there. A purged
// document leaves that behind, so that a reader that saw the store before can
// tell that it has changed.
func (b *Batch) Advance(seq uint64) { b.tally.advance(seq) }

// PutRevision stores a revision in the bodies keyspace.
func (b *Batch) PutRevision(id string, rev doc.Rev, v doc.Revision) {
	b.key = keyspace.AppendBody(b.key[:0], id, rev)
	b.val = v.AppendBinary(b.val[:0])
	b.set()
	if b.s.uploads.Any() {
		b.claim(id, v.Atts)
	}
}

// PutRevisionText is PutRevision for a revision that is encoded already, such
// as Record.Inline of a winner that is about to be replaced.
func (b *Batch) PutRevisionText(id string, rev doc.Rev, encoded []byte) {
	b.key = keyspace.AppendBody(b.key[:0], id, rev)
	b.val = append(b.val[:0], encoded...)
	b.set()
}

// DeleteRevision removes a revision from the bodies keyspace.
func (b *Batch) DeleteRevision(id string, rev doc.Rev) {
	b.key = keyspace.AppendBody(b.key[:0], id, rev)
	b.delete()
}

// PutAttachment stores a content that is small enough to pass through the log;
// larger ones go through NewAttachment. Content of no bytes is legal.
func (b *Batch) PutAttachment(id string, key [16]byte, data []byte) {
	for chunk := uint32(0); ; chunk++ {
		n := min(len(data), keyspace.ChunkSize)
		b.key = keyspace.AppendChunk(b.key[:0], id, key, chunk)
		b.val = append(b.val[:0], data[:n]...)
		b.set()
		if data = data[n:]; len(data) == 0 {
			return
		}
	}
}

// maxPointDeletes is how many chunks of a content are deleted one by one;
// above it one range tombstone does, of which a store should have few.
const maxPointDeletes = 16

// DeleteAttachment removes a content, even if revisions refer to it, and the
// note that it is an upload; see DropUploads.
func (b *Batch) DeleteAttachment(id string, key [16]byte) {
	if b.err != nil {
		return
	}
	lo, hi := keyspace.AppendContent(nil, id, key), keyspace.ContentEnd(id, key)
	b.note(deleteChunks(b.b, b.s.read.now(), lo, hi))
	// Also when nothing is known of a note: one of a content that came twice may
	// have been written just after the first was claimed.
	b.endUpload(keyspace.Upload(id, key))
}

// deleteChunks deletes the chunks of a content from lo on and below hi that r has.
func deleteChunks(b *pebble.Batch, r pebble.Reader, lo, hi []byte) error {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return err
	}
	n := 0
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if n++; n > maxPointDeletes {
			err = b.DeleteRange(lo, hi, nil)
			break
		}
		err = b.Delete(it.Key(), nil)
	}
	return errors.Join(err, it.Close())
}

// claim notes that a document refers to uploads from now on: a crash keeps
// them.
func (b *Batch) claim(id string, atts []doc.Attachment) {
	for i := range atts {
		upload := keyspace.Upload(id, atts[i].Key)
		if b.s.uploads.Has(upload) {
			b.endUpload(upload)
		}
	}
}

// PutLocal stores the text of a local document.
func (b *Batch) PutLocal(id string, text []byte) {
	b.key = keyspace.AppendLocal(b.key[:0], id)
	b.val = append(b.val[:0], text...)
	b.set()
}

// DeleteLocal removes a local document.
func (b *Batch) DeleteLocal(id string) {
	b.key = keyspace.AppendLocal(b.key[:0], id)
	b.delete()
}

// PutPurge adds an entry to the purge log; p.Seq must be above Counters.PurgeSeq.
func (b *Batch) PutPurge(p Purge) {
	b.key = keyspace.AppendPurge(b.key[:0], p.Seq)
	b.val = format.AppendPurge(b.val[:0], &p)
	b.set()
	b.tally.counters.PurgeSeq = max(b.tally.counters.PurgeSeq, p.Seq)
}

// TrimPurges drops the entries of the purge log up to and including that
// sequence.
func (b *Batch) TrimPurges(upto uint64) {
	if b.err != nil {
		return
	}
	now := b.s.Counters()
	upto = min(upto, max(now.PurgeSeq, b.tally.counters.PurgeSeq))
	if upto <= max(now.PurgeTrimmed, b.tally.counters.PurgeTrimmed) {
		return
	}
	b.note(b.b.DeleteRange(keyspace.AppendPurge(nil, now.PurgeTrimmed), keyspace.AppendPurge(nil, upto+1), nil))
	b.tally.counters.PurgeTrimmed = upto
}

// Discard gives the batch up.
func (b *Batch) Discard() {
	if b.b != nil {
		_ = b.b.Close() // nothing was written
		b.b = nil
	}
	if b.small != nil {
		b.small.end()
	}
}

// Apply makes the batch visible to every reader and queues it for the disk.
// Batches become durable in the order of Apply; Commit.Wait waits for it. An
// error means that nothing was applied, and unless it is one of the batch
// itself, that the store has stopped.
func (b *Batch) Apply() (*Commit, error) {
	s := b.s
	if b.err == nil {
		b.err = s.Err()
	}
	if b.err == nil && b.small != nil {
		s.opening.Lock()
		defer s.opening.Unlock()
		b.err = b.place()
	}
	if b.err != nil {
		b.Discard()
		return nil, b.err
	}
	prev := s.states.applied()
	next, err := b.finish(prev)
	if err != nil {
		b.Discard()
		return nil, err
	}
	s.states.set(prev, next)
	s.env.syncs.begin(&s.inflight, b.waiters)
	c := &Commit{s: s, b: b.b, waiters: b.waiters}
	if b.small != nil {
		c.b, err = s.small.apply(b.b, b.small, next.batch)
	} else {
		err = applyOwn(s.inst, b.b)
	}
	if err != nil {
		s.env.syncs.end(&s.inflight, b.waiters)
		if b.small != nil {
			b.small.end()
		}
		return nil, s.inst.Fail(err)
	}
	s.states.set(next, nil)
	s.uploads.Drop(b.claimed...)
	if b.small != nil { // it is in c.b
		c.small, b.small.shared = b.small.shared, nil
		b.Discard()
	}
	return c, nil
}

// finish adds counters and aggregates and returns the state that the batch
// leaves.
func (b *Batch) finish(prev *batchState) (*batchState, error) {
	next := &batchState{batch: prev.batch + 1, counters: prev.counters.Plus(&b.tally.counters), last: prev.last, origins: prev.origins}
	if b.origins != nil {
		next.origins = b.origins
	}
	if b.tally.last > prev.last {
		next.last = strings.Clone(b.tally.last) // it may be part of a request
	}
	err := b.later.Move(b.b)
	if err != nil {
		return nil, fmt.Errorf("build batch: %w", err)
	}
	if next.docs, err = b.s.states.aggregateDocs(b.s.read.now(), b.b, prev.docs, b.tally.docs); err == nil {
		next.seqs, err = aggregateSeqs(b.b, prev.seqs, b.tally.seqs)
	}
	if err == nil {
		b.key = keyspace.AppendMeta(b.key[:0], keyspace.MetaCounters)
		b.val = format.AppendCounters(b.val[:0], next.batch, &next.counters)
		err = b.b.Set(b.key, b.val, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("build batch: %w", err)
	}
	return next, nil
}

// applyOwn hands a batch to Pebble.
func applyOwn(own *instance.Instance, b *pebble.Batch) error {
	if err := own.DB().ApplyNoSyncWait(b, pebble.Sync); err != nil {
		return fmt.Errorf("apply batch: %w", err)
	}
	return own.Err() // set when Pebble, or a log that it began, failed there
}

// Commit is an applied batch on its way to the disk.
type Commit struct {
	s       *Store
	b       *pebble.Batch
	waiters int
	small   *smallStores // pinned, where the batch goes; nil: into the store's own instance
}

// Wait blocks until the batch and all before it are durable. It must be called
// once. An error means that the batch may be lost, and that the store has
// stopped.
func (c *Commit) Wait() error {
	err := c.b.SyncWait()
	c.s.env.syncs.end(&c.s.inflight, c.waiters)
	c.s.env.syncs.commits.Add(1)
	if err == nil {
		// The log keeps its errors from Pebble (package instance): they are found here.
		err = c.s.Err()
	}
	if c.small != nil {
		err = errors.Join(err, c.small.Err())
		defer c.small.cache.release(&c.small.handle)
	}
	if err == nil {
		err = c.b.Close()
	}
	if err != nil {
		return c.s.inst.Fail(fmt.Errorf("sync batch: %w", err))
	}
	return nil
}
