package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/format"
	"divan/storage/instance"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// checker verifies one moment of a store. Every invariant that binds two
// keyspaces is looked at from both sides, each by one scan and point reads, so
// that memory does not grow with the store.
type checker struct {
	ctx    context.Context
	s      *Store
	snap   *Snapshot
	report func(problem string)

	live, deleted    uint64
	external, active int64
	changes          uint64
	historyBlocks    uint64
	docLow, docTop   *blockCheck
	seqLow, seqTop   *blockCheck
}

// Check reads the whole store and reports every broken invariant: between
// records, sequence entries, bodies, attachments, counters, aggregates and the
// purge log. Edits may go on; what is checked is one moment. The error is that
// of reading or of ctx, not that of what was found.
func (s *Store) Check(ctx context.Context, report func(problem string)) error {
	snap, err := s.Snapshot()
	if err != nil {
		return err
	}
	c := &checker{ctx: ctx, s: s, snap: snap, report: report}
	return errors.Join(c.run(), c.close())
}

// GivenUp returns what opening the store gave up of its log, which a loss of power
// explains and damage as well; nil when that was nothing.
func (s *Store) GivenUp() *instance.GivenUp { return s.inst.GivenUp() }

func (c *checker) problemf(format string, args ...any) { c.report(fmt.Sprintf(format, args...)) }

// each scans a keyspace of the snapshot.
func (c *checker) each(space byte, fn func(key, value []byte) error) error {
	return each(c.snap.snap, keyspace.Start(space), keyspace.End(space), func(key, value []byte) error {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		return fn(key, value)
	})
}

func (c *checker) run() error {
	steps := []func() error{
		c.openBlocks, c.checkDocs, c.checkHistories, c.checkSequence, c.checkBodies, c.checkContents, c.checkUploads,
		c.checkPurges, c.checkTotals,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) openBlocks() error {
	var err error
	open := func(kind, level byte) *blockCheck {
		b, e := newBlockCheck(c.snap.snap, kind, level, c.problemf)
		err = errors.Join(err, e)
		return b
	}
	c.docLow, c.docTop = open(keyspace.AggDocs, keyspace.LevelLow), open(keyspace.AggDocs, keyspace.LevelTop)
	c.seqLow, c.seqTop = open(keyspace.AggSeqs, keyspace.LevelLow), open(keyspace.AggSeqs, keyspace.LevelTop)
	return err
}

func (c *checker) close() error {
	var errs []error
	for _, b := range []*blockCheck{c.docLow, c.docTop, c.seqLow, c.seqTop} {
		if b != nil {
			errs = append(errs, b.close())
		}
	}
	return errors.Join(append(errs, c.snap.Close())...)
}

// checkDocs looks at every record and at what it refers to.
func (c *checker) checkDocs() error {
	err := c.each(keyspace.Docs, func(key, value []byte) error {
		id := string(keyspace.Tail(key))
		rec, err := c.decode(id, value)
		if err != nil {
			c.problemf("document %q: %v", id, err)
			return nil
		}
		sums := recordSums(&rec)
		c.live += uint64(sums.Live)
		c.deleted += uint64(sums.Deleted)
		c.external += sums.External
		c.active += sums.Active
		sums = c.s.kept(sums)
		hash := keyspace.BorderHash(id)
		c.docLow.add(id, hash&keyspace.LowMask == 0, sums)
		c.docTop.add(id, hash&keyspace.TopMask == 0, sums)
		c.checkRecord(&rec)
		if err := c.checkHead(&rec); err != nil {
			return err
		}
		if err := c.checkEntry(&rec); err != nil {
			return err
		}
		return c.checkStored(&rec)
	})
	if err != nil {
		return err
	}
	c.docLow.end()
	c.docTop.end()
	heads := uint64(0)
	err = c.each(keyspace.Heads, func(_, _ []byte) error { heads++; return nil })
	if err == nil && heads != c.live+c.deleted {
		c.problemf("%d heads for listings, %d documents", heads, c.live+c.deleted)
	}
	return err
}

// decode decodes a record with its whole history.
func (c *checker) decode(id string, value []byte) (doc.Record, error) {
	rec, err := doc.DecodeRecord(id, value)
	if err == nil && rec.Partial {
		first, end := rec.Below.Blocks()
		c.historyBlocks += end - first
		var older doc.Tree
		if older, err = records.History(c.snap.snap, id, rec.Below); err == nil {
			err = rec.Widen(&older)
		}
		if !c.s.historyBlocks.Load() {
			c.problemf("document %q has blocks of its history, the name of the store's marker tells of none", id)
		}
	}
	return rec, err
}

// checkHistories counts the blocks of histories: as many as records have found leave no stray
// one.
func (c *checker) checkHistories() error {
	found := uint64(0)
	err := c.each(keyspace.History, func(_, _ []byte) error { found++; return nil })
	if err == nil && found != c.historyBlocks {
		c.problemf("%d blocks of histories, the documents have %d", found, c.historyBlocks)
	}
	return err
}

// checkRecord compares the fields of a record with its tree.
func (c *checker) checkRecord(rec *doc.Record) {
	winner, ok := rec.Tree.Winner()
	switch {
	case !ok:
		c.problemf("document %q has no revision", rec.ID)
	case winner.Rev != rec.Winner || winner.Deleted != rec.Deleted:
		c.problemf("document %q says its winner is %v, the tree says %v", rec.ID, rec.Winner, winner.Rev)
	case rec.Inline != nil && !winner.Stored:
		c.problemf("document %q has a body that its tree does not know", rec.ID)
	}
	if rec.Seq == 0 || rec.Seq > c.snap.Seq() {
		c.problemf("document %q has sequence %d, the store is at %d", rec.ID, rec.Seq, c.snap.Seq())
	}
}

// checkHead compares a record with its copy without the body.
func (c *checker) checkHead(rec *doc.Record) error {
	value, ok, err := records.Value(c.snap.snap, keyspace.AppendHead(nil, rec.ID))
	if err == nil && (!ok || !bytes.Equal(value, rec.AppendHead(nil))) {
		c.problemf("document %q: its head for listings is missing or another", rec.ID)
	}
	return err
}

// checkEntry compares a record with its entry in the sequence.
func (c *checker) checkEntry(rec *doc.Record) error {
	value, ok, err := records.Value(c.snap.snap, keyspace.AppendSeq(nil, rec.Seq))
	if err != nil {
		return err
	}
	if !ok {
		c.problemf("document %q: no entry at its sequence %d", rec.ID, rec.Seq)
	} else if !bytes.Equal(value, format.AppendChange(nil, rec)) {
		c.problemf("document %q: the entry at its sequence %d is another", rec.ID, rec.Seq)
	}
	return nil
}

// checkStored looks for the body of every revision that should have one, and
// the attachments of every leaf.
func (c *checker) checkStored(rec *doc.Record) error {
	for _, n := range rec.Tree.Nodes() {
		if !n.Stored {
			continue
		}
		var v doc.Revision
		var err error
		if n.Rev == rec.Winner && rec.Inline != nil {
			v, err = doc.DecodeRevision(rec.Inline)
		} else {
			var ok bool
			v, ok, err = records.Revision(c.snap.snap, rec.ID, n.Rev)
			if err == nil && !ok {
				c.problemf("document %q: no body of %v", rec.ID, n.Rev)
				continue
			}
		}
		if err != nil {
			c.problemf("document %q, revision %v: %v", rec.ID, n.Rev, err)
			continue
		}
		if _, leaf, _ := rec.Tree.Find(n.Rev); !leaf {
			continue
		}
		for i := range v.Atts {
			if err := c.checkContent(rec.ID, n.Rev, &v.Atts[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkContent measures a content that a leaf refers to.
func (c *checker) checkContent(id string, rev doc.Rev, a *doc.Attachment) error {
	var size int64
	next := uint32(0)
	err := each(c.snap.snap, keyspace.AppendContent(nil, id, a.Key), keyspace.ContentEnd(id, a.Key), func(key, value []byte) error {
		_, _, chunk, ok := keyspace.CutChunk(key)
		if !ok || chunk != next || size != int64(chunk)*keyspace.ChunkSize {
			c.problemf("document %q, attachment %q: damaged at chunk %d", id, a.Name, next)
		}
		next++
		size += int64(len(value))
		return nil
	})
	if err == nil && (next == 0 || size != a.StoredLength) {
		c.problemf("document %q, revision %v, attachment %q: %d of %d bytes", id, rev, a.Name, size, a.StoredLength)
	}
	return err
}

// checkSequence counts the entries: as many as documents, each of which has
// found its own, leave no stray one.
func (c *checker) checkSequence() error {
	var change Change
	err := c.each(keyspace.Sequence, func(key, value []byte) error {
		seq, ok := keyspace.Seq(key)
		if !ok {
			c.problemf("sequence key %x is malformed", key)
			return nil
		}
		c.changes++
		low, top := keyspace.SeqBorder(seq, keyspace.LowShift), keyspace.SeqBorder(seq, keyspace.TopShift)
		c.seqLow.add(string(low[:]), true, Sums{Live: 1})
		c.seqTop.add(string(top[:]), true, Sums{Live: 1})
		if err := format.DecodeChange(value, &change); err != nil {
			c.problemf("sequence %d: %v", seq, err)
			return nil
		}
		var h doc.Head
		found, err := records.Head(c.snap.snap, string(change.ID), &h)
		if err != nil {
			return err
		}
		if !found || h.Seq != seq {
			c.problemf("sequence %d names document %q, which does not have it", seq, change.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.seqLow.end()
	c.seqTop.end()
	if c.changes != c.live+c.deleted {
		c.problemf("%d sequence entries for %d documents", c.changes, c.live+c.deleted)
	}
	return nil
}

// checkBodies looks for the record of every body.
func (c *checker) checkBodies() error {
	var rec doc.Record // of the last body: those of a document follow each other
	found := false
	return c.each(keyspace.Bodies, func(key, value []byte) error {
		id, rev, ok := keyspace.CutBody(key)
		if !ok {
			c.problemf("body key %x is malformed", key)
			return nil
		}
		if _, err := doc.DecodeRevision(value); err != nil {
			c.problemf("document %q, revision %v: %v", id, rev, err)
		}
		if !found || rec.ID != string(id) {
			var err error
			if rec, found, err = records.Get(c.snap.snap, string(id)); fault.Is(err, fault.Corruption) {
				return nil // checkDocs has told
			} else if err != nil {
				return err
			}
		}
		if n, _, known := rec.Tree.Find(rev); !found || !known || !n.Stored {
			c.problemf("document %q: body of %v, which its tree does not know as stored", id, rev)
		}
		return nil
	})
}

// checkContents looks at the keys of all contents. One that no document uses is
// no problem: the next compaction takes it.
func (c *checker) checkContents() error {
	var last []byte
	return c.each(keyspace.Attachments, func(key, value []byte) error {
		_, _, chunk, ok := keyspace.CutChunk(key)
		if !ok || len(value) > keyspace.ChunkSize {
			c.problemf("attachment key %x is malformed", key)
			return nil
		}
		prefix := key[:len(key)-4]
		if chunk == 0 {
			last = append(last[:0], prefix...)
		} else if !bytes.Equal(last, prefix) {
			c.problemf("attachment key %x: first chunk missing", key)
			last = append(last[:0], prefix...)
		}
		return nil
	})
}

// checkUploads looks for the content of every upload.
func (c *checker) checkUploads() error {
	return c.each(keyspace.Uploads, func(key, _ []byte) error {
		id, content, ok := keyspace.CutUpload(key)
		if !ok {
			c.problemf("upload key %x is malformed", key)
			return nil
		}
		_, ok, err := records.Value(c.snap.snap, keyspace.AppendChunk(nil, string(id), content, 0))
		if err == nil && !ok {
			c.problemf("document %q: upload %x without content", id, content)
		}
		return err
	})
}

func (c *checker) checkPurges() error {
	counters := c.snap.Counters()
	return c.each(keyspace.Purges, func(key, value []byte) error {
		seq, ok := keyspace.Seq(key)
		if !ok {
			c.problemf("purge key %x is malformed", key)
			return nil
		}
		if seq <= counters.PurgeTrimmed || seq > counters.PurgeSeq {
			c.problemf("purge %d outside of (%d, %d]", seq, counters.PurgeTrimmed, counters.PurgeSeq)
		}
		if _, err := format.DecodePurge(seq, value); err != nil {
			c.problemf("purge %d: %v", seq, err)
		}
		return nil
	})
}

// checkTotals compares the counters, stored and in memory, and the top level in
// memory with what was found.
func (c *checker) checkTotals() error {
	have := c.snap.Counters()
	want := have
	want.Live, want.Deleted, want.External, want.Active = c.live, c.deleted, c.external, c.active
	if have != want {
		c.problemf("counters are %+v, the documents give %+v", have, want)
	}
	batch, stored, err := readCounters(c.snap.snap)
	if err != nil {
		return err
	}
	if stored != have || batch != c.snap.state.batch {
		c.problemf("counters on disk are %+v of batch %d, in memory %+v of batch %d", stored, batch, have, c.snap.state.batch)
	}
	for kind, memory := range map[byte]*topBlocks{keyspace.AggDocs: c.snap.state.docs, keyspace.AggSeqs: c.snap.state.seqs} {
		disk, err := loadTopBlocks(c.snap.snap, kind)
		if err != nil {
			return err
		}
		if !slices.EqualFunc(disk.list(), memory.list(), block.same) {
			c.problemf("aggregate %c on disk differs from the one in memory", kind)
		}
	}
	return errors.Join(c.checkLow(), c.checkLast())
}

// checkLast looks for documents above the last id.
func (c *checker) checkLast() error {
	last, err := records.LastID(c.snap.snap)
	if err == nil && last > c.snap.state.last {
		c.problemf("document %q is above %q, the last id in memory", last, c.snap.state.last)
	}
	return err
}

// checkLow compares the low blocks that are in memory with the store.
func (c *checker) checkLow() error {
	docs := c.snap.state.docs
	for _, b := range docs.list() {
		held := b.low.Load()
		if held == nil {
			continue
		}
		disk, err := loadLow(c.snap.snap, docs, b.border)
		if err != nil {
			return err
		}
		if !slices.Equal(disk.borders, held.borders) || !slices.Equal(disk.sums, held.sums) {
			c.problemf("low blocks of documents from %q on differ on disk and in memory", b.border)
		}
	}
	return nil
}

// list returns all blocks in order.
func (s *topBlocks) list() []block {
	var out []block
	for _, ch := range s.chunks {
		out = append(out, ch.blocks...)
	}
	return out
}
