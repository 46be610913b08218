// Package bulkload writes tables for an empty store that make it what another one holds of a
// part of the ids, with the sequences that changes have there. Each keyspace is read in
// its own order, so nothing is sorted, and nothing passes a log or a memtable. It also writes what
// a store holds as tables that no store is there for yet ([Dump]).
package bulkload

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/format"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// Options say what is written. All are required but Origins and Locals.
type Options struct {
	Source   pebble.Reader   // of one moment
	Counters format.Counters // of the source then
	Origins  []format.Origin // that the store has then
	Batch    uint64          // the batch that the tables come in the place of
	// Partitioned says that blocks count bytes.
	Partitioned bool
	Belongs     func(id string) bool
	Locals      bool // local documents are copied, too
	// Looked hears now and then how many documents were looked at since, and how many bytes
	// copied. Its error ends the work.
	Looked func(docs, copied int) error
	Files  Files
}

// Filled describes the content of the tables.
type Filled struct {
	*Tables
	Counters   format.Counters
	Docs, Seqs []Block // of the top level, in their order
	Last       string  // the last id
	Design     bool    // there is a design document
}

// Paths are the files.
func (f *Filled) Paths() []string { return f.paths }

// filler is one Write.
type filler struct {
	*Options
	out                                                                       *Filled
	contents, bodies, docs, aggregates, heads, locals, meta, purges, sequence *stream

	scan
	sum      uint64 // over documents, less that over entries of the sequence
	entries  uint64 // of the sequence
	key, val []byte
}

// Write writes the tables, durable on return. After an error nothing is left of them.
func Write(o Options) (*Filled, error) {
	t := &Tables{files: o.Files}
	f := &filler{Options: &o, out: &Filled{Tables: t}}
	f.scan = scan{source: o.Source, looked: func(docs int) error {
		copied := t.put
		t.put = 0
		return errors.Join(o.Looked(docs, copied), t.err)
	}}
	f.out.Counters = format.Counters{Seq: o.Counters.Seq, PurgeSeq: o.Counters.PurgeSeq, PurgeTrimmed: o.Counters.PurgeTrimmed}
	f.contents, f.bodies, f.docs, f.aggregates = t.stream(), t.stream(), t.stream(), t.stream()
	f.heads, f.locals, f.meta, f.purges, f.sequence = t.stream(), t.stream(), t.stream(), t.stream(), t.stream()
	err := f.write()
	if err == nil {
		err = t.close()
	}
	if err != nil {
		return nil, errors.Join(err, t.Discard())
	}
	return f.out, nil
}

func (f *filler) write() error {
	if err := f.copyDocs(); err != nil {
		return err
	}
	if err := f.copySequence(); err != nil {
		return err
	}
	c := &f.out.Counters
	if f.entries != c.Live+c.Deleted || f.sum != 0 {
		return fault.New(fault.Corruption, "The entries of the sequence are not those of the documents.")
	}
	if err := f.copyPurges(); err != nil {
		return err
	}
	if f.Locals {
		if err := f.copyLocals(); err != nil {
			return err
		}
	}
	f.meta.put(keyspace.AppendMeta(nil, keyspace.MetaCounters), format.AppendCounters(nil, f.Batch, c))
	if f.Origins != nil {
		f.meta.put(keyspace.AppendMeta(nil, keyspace.MetaOrigins), format.AppendOrigins(nil, f.Origins))
	}
	return f.out.err
}

// fingerprint is that of a document at a sequence.
func fingerprint(hash, seq uint64) uint64 { return (hash + 1) * (2*seq + 1) }

const designPrefix = "_design/"

func (f *filler) copyDocs() error {
	e, err := newExtras(f)
	if err != nil {
		return err
	}
	counts := blocks{out: f.aggregates, kind: keyspace.AggDocs}
	err = f.walk(keyspace.Start(keyspace.Docs), 1, func(key, record []byte) error {
		id := string(keyspace.Tail(key))
		if !f.Belongs(id) {
			return nil
		}
		record, err := records.Expand(f.Source, id, record)
		if err != nil {
			return fmt.Errorf("document %q: %w", id, err)
		}
		if err := f.copyDoc(&counts, key, id, record); err != nil {
			return fmt.Errorf("document %q: %w", id, err)
		}
		if err := e.copy(id, record); err != nil {
			return fmt.Errorf("document %q: %w", id, err)
		}
		return nil
	}, e.rest)
	counts.end()
	f.out.Docs = counts.done
	return errors.Join(err, e.close())
}

// copyDoc copies a record, and makes its head and what it adds to the counts.
func (f *filler) copyDoc(counts *blocks, key []byte, id string, record []byte) error {
	var h doc.Head
	if err := doc.DecodeHead(record, &h); err != nil {
		return err
	}
	f.docs.put(key, record)
	front := doc.Record{ID: id, Seq: h.Seq, Winner: h.Winner, Deleted: h.Deleted, External: h.External, Active: h.Active}
	f.key = keyspace.AppendHead(f.key[:0], id)
	f.val = front.AppendHead(f.val[:0])
	f.heads.put(f.key, f.val)

	sums := format.Sums{Live: 1, External: h.External, Active: h.Active}
	c := &f.out.Counters
	if h.Deleted {
		sums.Live, sums.Deleted = 0, 1
	}
	c.Live += uint64(sums.Live)
	c.Deleted += uint64(sums.Deleted)
	c.External += h.External
	c.Active += h.Active
	if !f.Partitioned {
		sums.External, sums.Active = 0, 0
	}
	hash := keyspace.BorderHash(id)
	if hash&keyspace.LowMask == 0 {
		counts.beginLow(id)
	}
	if hash&keyspace.TopMask == 0 {
		counts.beginTop(id)
	}
	counts.add(sums)
	f.sum += fingerprint(hash, h.Seq)
	f.out.Last = id
	f.out.Design = f.out.Design || strings.HasPrefix(id, designPrefix)
	return nil
}

func (f *filler) copySequence() error {
	counts := blocks{out: f.aggregates, kind: keyspace.AggSeqs}
	low, top := uint64(1), uint64(1) // no border
	err := f.walk(keyspace.Start(keyspace.Sequence), 0, func(key, change []byte) error {
		seq, ok := keyspace.Seq(key)
		if !ok {
			return format.Corrupt("sequence key")
		}
		id, err := format.ChangeID(change)
		if err != nil {
			return fmt.Errorf("sequence %d: %w", seq, err)
		}
		if !f.Belongs(string(id)) {
			return nil
		}
		if at := seq >> keyspace.LowShift << keyspace.LowShift; at != low {
			border := keyspace.SeqBorder(seq, keyspace.LowShift)
			counts.beginLow(string(border[:]))
			low = at
		}
		if at := seq >> keyspace.TopShift << keyspace.TopShift; at != top {
			border := keyspace.SeqBorder(seq, keyspace.TopShift)
			counts.beginTop(string(border[:]))
			top = at
		}
		counts.add(format.Sums{Live: 1})
		f.sequence.put(key, change)
		f.entries++
		f.sum -= fingerprint(keyspace.BorderHash(id), seq)
		return nil
	}, nil)
	counts.end()
	f.out.Seqs = counts.done
	return err
}

func (f *filler) copyPurges() error {
	return f.walk(keyspace.AppendPurge(nil, f.Counters.PurgeTrimmed+1), 0, func(key, value []byte) error {
		seq, ok := keyspace.Seq(key)
		if !ok {
			return format.Corrupt("purge key")
		}
		p, err := format.DecodePurge(seq, value)
		if err != nil {
			return fmt.Errorf("purge %d: %w", seq, err)
		}
		if f.Belongs(p.ID) {
			f.purges.put(key, value)
		}
		return nil
	}, nil)
}

func (f *filler) copyLocals() error {
	return f.walk(keyspace.Start(keyspace.Local), 0, func(key, text []byte) error {
		if f.Belongs(string(keyspace.Tail(key))) {
			f.locals.put(key, text)
		}
		return nil
	}, nil)
}
