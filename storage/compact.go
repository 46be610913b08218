package storage

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/diskspace"
	"divan/storage/doc"
	"divan/storage/format"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// CompactOptions say how Compact reaches the store's writer.
type CompactOptions struct {
	// Write runs fn with a fresh batch in the shard's single writer, applies
	// the batch and waits until it is durable. Compact calls it many times with
	// little work each, so that edits go on in between.
	Write func(ctx context.Context, fn func(b *Batch) error) error
	// PurgesToTrim returns the sequence of the last purge that the log may forget.
	// It is called inside Write: no purge, and nobody who would have to read
	// one, comes between its answer and the batch that drops them. nil: all stay.
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
	if !s.inst.Opened() {
		return nil
	}
	if s.inst.ReadOnly() {
		return diskspace.ErrDiskFull()
	}
	if o.Progress == nil {
		o.Progress = func(uint64, uint64) {}
	}
	for pass, space := range [...]byte{keyspace.Bodies, keyspace.Attachments} {
		if err := s.trimSpace(ctx, &o, space, pass); err != nil {
			return err
		}
	}
	if c := s.Counters(); o.PurgesToTrim != nil && c.PurgeSeq > c.PurgeTrimmed {
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
	if err := s.inst.Compact(ctx, keyspace.Start(keyspace.Attachments), keyspace.End(keyspace.Uploads)); err != nil {
		return fmt.Errorf("compact files: %w", err)
	}
	return nil
}

// trimSpace walks over the documents that have something in a keyspace and
// trims those with garbage. No iterator stays open between two batches, so that
// what is deleted meanwhile can go.
func (s *Store) trimSpace(ctx context.Context, o *CompactOptions, space byte, pass int) error {
	next := keyspace.Start(space)
	for next != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		ids, last, err := s.findGarbage(space, next)
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			err := o.Write(ctx, func(b *Batch) error {
				for _, id := range ids {
					if err := b.Trim(id); err != nil {
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
		if err := s.progress(o, pass, last); err != nil {
			return err
		}
	}
	return nil
}

// progress reports; the two passes count as half the work each.
func (s *Store) progress(o *CompactOptions, pass int, last string) error {
	snap, err := s.Snapshot()
	if err != nil {
		return err
	}
	c := snap.Counters()
	total := c.Live + c.Deleted
	done := total
	if last != "" {
		var sums Sums
		sums, err = snap.sumsBefore(last)
		done = uint64(sums.Live + sums.Deleted)
	}
	if err = errors.Join(err, snap.Close()); err != nil {
		return err
	}
	o.Progress((total*uint64(pass)+done)/2, total)
	return nil
}

// findPage is how many documents one page of findGarbage looks at.
const findPage = 4096

// findGarbage looks at the documents of a keyspace from a key on, until it has
// found a batch full of garbage or seen a page. last is the last id it looked
// at, empty when the keyspace is done.
func (s *Store) findGarbage(space byte, from []byte) (ids []string, last string, err error) {
	db := s.inst.DB()
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
		var g garbage
		if g, err = s.findIn(db, last); err == nil && !g.empty() {
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

// garbage is what a compaction takes from one document.
type garbage struct {
	old      doc.Record // as stored; zero when there is none
	revs     []doc.Rev  // bodies of revisions that are not leaves
	unstored []doc.Rev  // nodes that will have no body
	contents []keyspace.ContentKey
	marked   []keyspace.ContentKey // contents in use that are still noted as uploads
}

func (g *garbage) empty() bool {
	return len(g.revs) == 0 && len(g.unstored) == 0 && len(g.contents) == 0 && len(g.marked) == 0
}

// findIn looks at one document.
func (s *Store) findIn(r pebble.Reader, id string) (g garbage, err error) {
	rec, ok, err := records.Get(r, id)
	if err != nil {
		return g, err
	}
	if ok {
		g.old = rec
	}
	leaf := map[doc.Rev]bool{}
	for _, n := range rec.Tree.Nodes() {
		_, isLeaf, _ := rec.Tree.Find(n.Rev)
		leaf[n.Rev] = isLeaf
		if n.Stored && !isLeaf {
			g.unstored = append(g.unstored, n.Rev)
		}
	}
	used := map[keyspace.ContentKey]bool{}
	lo, hi := keyspace.OfDoc(keyspace.Bodies, id), keyspace.OfDocEnd(keyspace.Bodies, id)
	err = each(r, lo, hi, func(key, value []byte) error {
		_, rev, ok := keyspace.CutBody(key)
		if !ok {
			return format.Corrupt("body key")
		}
		if !leaf[rev] {
			g.revs = append(g.revs, rev)
			return nil
		}
		return useContents(used, value)
	})
	if err == nil && rec.Inline != nil {
		err = useContents(used, rec.Inline)
	}
	if err != nil {
		return g, fmt.Errorf("document %q: %w", id, err)
	}
	return g, s.findContents(r, id, used, &g)
}

// useContents notes the contents that an encoded revision refers to.
func useContents(used map[keyspace.ContentKey]bool, encoded []byte) error {
	v, err := doc.DecodeRevision(encoded)
	if err != nil {
		return err
	}
	for i := range v.Atts {
		used[v.Atts[i].Key] = true
	}
	return nil
}

// findContents adds the contents of a document that are neither used nor on
// their way to be. One that is both came twice; it is on no way any more.
func (s *Store) findContents(r pebble.Reader, id string, used map[keyspace.ContentKey]bool, g *garbage) error {
	it, err := r.NewIter(&pebble.IterOptions{
		LowerBound: keyspace.OfDoc(keyspace.Attachments, id),
		UpperBound: keyspace.OfDocEnd(keyspace.Attachments, id),
	})
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	for ok := it.First(); ok; {
		_, key, _, whole := keyspace.CutChunk(it.Key())
		if !whole {
			return errors.Join(format.Corrupt("attachment key"), it.Close())
		}
		switch upload := s.uploads.Has(keyspace.Upload(id, key)); {
		case used[key] && upload:
			g.marked = append(g.marked, key)
		case !used[key] && !upload:
			g.contents = append(g.contents, key)
		}
		ok = it.SeekGE(keyspace.ContentEnd(id, key))
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	return nil
}

// Trim compacts one document as it is now: bodies of inner revisions and
// attachments without a leaf go. The batch must hold nothing else of that
// document. Its sequence stays.
func (b *Batch) Trim(id string) error {
	if b.err != nil {
		return b.err
	}
	g, err := b.s.findIn(b.s.inst.DB(), id)
	if err != nil {
		b.note(err)
		return err
	}
	for _, rev := range g.revs {
		b.DeleteRevision(id, rev)
	}
	for _, key := range g.contents {
		b.DeleteAttachment(id, key)
	}
	for _, key := range g.marked {
		b.endUpload(keyspace.Upload(id, key))
	}
	if len(g.unstored) > 0 {
		next := g.old
		next.Tree = g.old.Tree.Clone()
		for _, rev := range g.unstored {
			next.Tree.SetStored(rev, false)
		}
		b.Put(&g.old, &next)
	}
	return b.err
}
