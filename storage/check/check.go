// Package check verifies what is on the disk of a store: every invariant that binds two keyspaces.
package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/format"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// Options say what is checked. All are required.
type Options struct {
	Reader   pebble.Reader // of one moment
	Counters format.Counters
	// Kept returns what the aggregates keep of the sums of a document.
	Kept func(format.Sums) format.Sums
	// Report hears of each broken invariant.
	Report func(problem string)
}

// checker verifies one moment of a store. Every invariant is looked at from both sides, each by one
// scan and point reads, so that memory does not grow with the store.
type checker struct {
	Options
	ctx context.Context

	found          format.Counters // documents and their sizes
	changes        uint64
	historyBlocks  uint64
	docLow, docTop *blockCheck
	seqLow, seqTop *blockCheck
}

// Run reads the whole store and reports every broken invariant: between records, sequence entries,
// bodies, attachments, aggregates and the purge log. It returns the counters as the documents give
// them. The error is that of reading or of ctx, not that of what was found.
func Run(ctx context.Context, o Options) (format.Counters, error) {
	c := &checker{Options: o, ctx: ctx}
	c.found = o.Counters
	c.found.Live, c.found.Deleted, c.found.External, c.found.Active = 0, 0, 0, 0
	err := errors.Join(c.run(), c.close())
	return c.found, err
}

func (c *checker) problemf(format string, args ...any) { c.Report(fmt.Sprintf(format, args...)) }

// each scans a keyspace of the snapshot.
func (c *checker) each(space byte, fn func(key, value []byte) error) error {
	return records.Each(c.Reader, keyspace.Start(space), keyspace.End(space), func(key, value []byte) error {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		return fn(key, value)
	})
}

func (c *checker) run() error {
	steps := []func() error{
		c.openBlocks, c.checkDocs, c.checkHistories, c.checkSequence, c.checkBodies, c.checkContents, c.checkUploads,
		c.checkPurges,
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
		b, e := newBlockCheck(c.Reader, kind, level, c.problemf)
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
	return errors.Join(errs...)
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
		sums := format.RecordSums(&rec)
		c.found.Live += uint64(sums.Live)
		c.found.Deleted += uint64(sums.Deleted)
		c.found.External += sums.External
		c.found.Active += sums.Active
		sums = c.Kept(sums)
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
	if err == nil && heads != c.found.Live+c.found.Deleted {
		c.problemf("%d heads for listings, %d documents", heads, c.found.Live+c.found.Deleted)
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
		if older, err = records.History(c.Reader, id, rec.Below); err == nil {
			err = rec.Widen(&older)
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
	if rec.Seq == 0 || rec.Seq > c.Counters.Seq {
		c.problemf("document %q has sequence %d, the store is at %d", rec.ID, rec.Seq, c.Counters.Seq)
	}
}

// checkHead compares a record with its copy without the body.
func (c *checker) checkHead(rec *doc.Record) error {
	value, ok, err := records.Value(c.Reader, keyspace.AppendHead(nil, rec.ID))
	if err == nil && (!ok || !bytes.Equal(value, rec.AppendHead(nil))) {
		c.problemf("document %q: its head for listings is missing or another", rec.ID)
	}
	return err
}

// checkEntry compares a record with its entry in the sequence.
func (c *checker) checkEntry(rec *doc.Record) error {
	value, ok, err := records.Value(c.Reader, keyspace.AppendSeq(nil, rec.Seq))
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
			v, ok, err = records.Revision(c.Reader, rec.ID, n.Rev)
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
	err := records.Each(c.Reader, keyspace.AppendContent(nil, id, a.Key), keyspace.ContentEnd(id, a.Key), func(key, value []byte) error {
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
	var change format.Change
	err := c.each(keyspace.Sequence, func(key, value []byte) error {
		seq, ok := keyspace.Seq(key)
		if !ok {
			c.problemf("sequence key %x is malformed", key)
			return nil
		}
		c.changes++
		low, top := keyspace.SeqBorder(seq, keyspace.LowShift), keyspace.SeqBorder(seq, keyspace.TopShift)
		c.seqLow.add(string(low[:]), true, format.Sums{Live: 1})
		c.seqTop.add(string(top[:]), true, format.Sums{Live: 1})
		if err := format.DecodeChange(value, &change); err != nil {
			c.problemf("sequence %d: %v", seq, err)
			return nil
		}
		var h doc.Head
		found, err := records.Head(c.Reader, string(change.ID), &h)
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
	if c.changes != c.found.Live+c.found.Deleted {
		c.problemf("%d sequence entries for %d documents", c.changes, c.found.Live+c.found.Deleted)
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
			if rec, found, err = records.Get(c.Reader, string(id)); fault.Is(err, fault.Corruption) {
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
		_, ok, err := records.Value(c.Reader, keyspace.AppendChunk(nil, string(id), content, 0))
		if err == nil && !ok {
			c.problemf("document %q: upload %x without content", id, content)
		}
		return err
	})
}

func (c *checker) checkPurges() error {
	counters := &c.Counters
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
