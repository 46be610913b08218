package storage

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/diskspace"
	"divan/storage/format"
	"divan/storage/garbage"
	"divan/storage/keyspace"
)

// CompactOptions say how Compact reaches the store's writer.
type CompactOptions struct {
	// Write runs fn with a fresh batch in the shard's single writer, applies
	// the batch and waits until it is durable. Compact calls it many times with
	// little work each, so that edits go on in between.
	Write func(ctx context.Context, fn func(b *Batch) error) error
	// PurgesToTrim returns the sequence of the last purge that the log may forget.
	// It is called inside Write: no purge, and no new reader that would have to
	// read one, comes between its answer and the batch that drops them. nil: all
	// stay.
	PurgesToTrim func() (upto uint64, err error)
	// Progress, when set, hears how many documents of how many are done.
	Progress func(done, total uint64)
}

// trimBatch is how many documents one call of CompactOptions.Write trims.
const trimBatch = 64

// Compact gives back the space of what no client can ask for any more: bodies
// of revisions that are not leaves, attachments that no leaf refers to, old
// purges. Then it compacts the files. It runs beside reads and edits and stops
// early with ctx; it may be called again at any time, but not twice at once.
func (s *Store) Compact(ctx context.Context, o CompactOptions) error {
	if err := s.Err(); err != nil {
		return err
	}
	if !s.inst.Opened() && s.small.view.Load() == nil {
		return nil
	}
	if s.inst.ReadOnly() {
		return diskspace.ErrDiskFull()
	}
	if o.Progress == nil {
		o.Progress = func(uint64, uint64) {}
	}
	c := compaction{s: s, o: o}
	for pass, space := range [...]byte{keyspace.Bodies, keyspace.Attachments} {
		if err := c.trimSpace(ctx, space, pass); err != nil {
			return err
		}
	}
	if now := s.Counters(); o.PurgesToTrim != nil && now.PurgeSeq > now.PurgeTrimmed {
		err := o.Write(ctx, func(b *Batch) error {
			upto, err := o.PurgesToTrim()
			if err == nil {
				b.TrimPurges(upto)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if s.small.takesBatches() {
		if err := o.Write(ctx, joinSmall); err != nil || !s.small.takesBatches() {
			return err
		}
		s.small.host.reclaim.Compacted(s.id.UUID)
		return nil
	}
	if err := s.inst.Compact(ctx, nil, keyspace.Start(keyspace.Attachments), keyspace.End(keyspace.Uploads)); err != nil {
		return fmt.Errorf("compact files: %w", err)
	}
	return nil
}

// joinSmall has the batches of a small store put together: what was written again or deleted goes.
// Any other store is compacted by its files.
func joinSmall(b *Batch) error {
	if b.small != nil {
		b.small.join = true
	}
	return nil
}

// compaction is one call of Store.Compact.
type compaction struct {
	s *Store
	o CompactOptions
}

// trimSpace walks over the documents that have something in a keyspace and
// trims those with garbage. No iterator stays open between two batches, so that
// what is deleted meanwhile can go.
func (c *compaction) trimSpace(ctx context.Context, space byte, pass int) error {
	next := keyspace.Start(space)
	for next != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		ids, last, err := c.findGarbage(space, next)
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			err := c.o.Write(ctx, func(b *Batch) error {
				for _, id := range ids {
					if err := trim(b, id); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		next = nil
		if last != "" {
			next = keyspace.OfDocEnd(space, last)
		}
		if err := c.progress(pass, last); err != nil {
			return err
		}
	}
	return nil
}

// progress reports; the two passes count as half the work each.
func (c *compaction) progress(pass int, last string) error {
	snap, err := c.s.Snapshot()
	if err != nil {
		return err
	}
	now := snap.Counters()
	total := now.Live + now.Deleted
	done := total
	if last != "" {
		var sums Sums
		sums, err = snap.sumsBefore(last)
		done = uint64(sums.Live + sums.Deleted)
	}
	if err = errors.Join(err, snap.Close()); err != nil {
		return err
	}
	c.o.Progress((total*uint64(pass)+done)/2, total)
	return nil
}

// findPage is how many documents one page of findGarbage looks at.
const findPage = 4096

// findGarbage looks at the documents of a keyspace from a key on, until it has
// found a batch full of garbage or seen a page. last is the last id it looked
// at, empty when the keyspace is done.
func (c *compaction) findGarbage(space byte, from []byte) (ids []string, last string, err error) {
	db := c.s.read.now()
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: keyspace.End(space)})
	if err != nil {
		return nil, "", fmt.Errorf("compact: %w", err)
	}
	seen := 0
	for ok := it.First(); ok && err == nil; ok = it.SeekGE(keyspace.OfDocEnd(space, last)) {
		raw, _, whole := keyspace.CutEscaped(keyspace.Tail(it.Key()))
		if !whole {
			err = format.Corrupt("key")
			break
		}
		last = string(raw)
		var g garbage.Garbage
		if g, err = garbage.Find(db, last, c.s.uploads); err == nil && !g.Empty() {
			ids = append(ids, last)
		}
		if seen++; seen == findPage || len(ids) == trimBatch {
			return ids, last, errors.Join(err, it.Close())
		}
	}
	if err = errors.Join(err, it.Error(), it.Close()); err != nil {
		return nil, "", fmt.Errorf("compact: %w", err)
	}
	return ids, "", nil
}

// trim compacts one document as it is now: bodies of inner revisions and
// attachments without a leaf go. The batch must hold nothing else of that
// document. Its sequence stays.
func trim(b *Batch, id string) error {
	if b.err != nil {
		return b.err
	}
	g, err := garbage.Find(b.s.read.now(), id, b.s.uploads)
	if err != nil {
		b.note(err)
		return err
	}
	for _, rev := range g.Revs {
		b.DeleteRevision(id, rev)
	}
	for _, key := range g.Contents {
		b.DeleteAttachment(id, key)
	}
	for _, key := range g.Marked {
		b.endUpload(keyspace.Upload(id, key))
	}
	if len(g.Unstored) > 0 {
		next := g.Old
		next.Tree = g.Old.Tree.Clone()
		for _, rev := range g.Unstored {
			next.Tree.SetStored(rev, false)
		}
		b.Put(&g.Old, &next)
	}
	return b.err
}
