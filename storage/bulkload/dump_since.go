package bulkload

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/format"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// Since writes what has changed since another dump of the store, that ended at a position: the
// documents with a sequence above it, whole, and the purges. Entries of the sequence that these
// documents had before are left to [Replace]. Local documents are not among it.
func (o *Dump) Since(p format.Position) error {
	c := &o.Counters
	switch {
	case p.Seq > c.Seq || p.PurgeSeq > c.PurgeSeq:
		return errors.New("dump a store: it is behind what was dumped of it")
	case c.PurgeTrimmed > p.PurgeSeq:
		return errors.New("dump a store: its purge log does not go back so far")
	}
	return o.run(func(d *dumper) error { return d.since(p) })
}

func (d *dumper) since(p format.Position) error {
	if err := d.purgesSince(p.PurgeSeq); err != nil {
		return err
	}
	if err := d.changesSince(p.Seq); err != nil {
		return err
	}
	if err := d.putMeta(); err != nil {
		return err
	}
	if err := d.out.set(keyspace.AppendMeta(nil, keyspace.MetaSince), format.AppendPosition(nil, p)); err != nil {
		return err
	}
	return d.out.deleteRange(keyspace.AppendPurge(nil, 0), keyspace.AppendPurge(nil, d.Counters.PurgeTrimmed+1))
}

const (
	// windowEntries and windowBytes bound what is in memory to be sorted, which becomes one table
	// or, when documents are large, a few.
	windowEntries = 8192
	windowBytes   = 2 << 20
)

// window holds entries of the sequence or of the purge log, with the ids of their documents.
type window struct {
	entries []entry
	ids     []string
	seqs    map[string]uint64 // of the documents; nil for purges
	bytes   int
}

func (w *window) add(key, value, id []byte) {
	w.entries = append(w.entries, entry{bytes.Clone(key), bytes.Clone(value)})
	w.ids = append(w.ids, string(id))
	w.bytes += len(key) + len(value) + len(id)
}

func (w *window) full() bool { return len(w.entries) >= windowEntries || w.bytes >= windowBytes }

func (w *window) clear() {
	clear(w.seqs)
	*w = window{seqs: w.seqs}
}

// purgesSince writes entries of the purge log, and that documents are gone that they name.
func (d *dumper) purgesSince(since uint64) error {
	var w window
	flush := func() error {
		if len(w.entries) == 0 {
			return nil
		}
		err := d.putPurges(&w)
		w.clear()
		return err
	}
	err := d.walk(keyspace.AppendPurge(nil, since+1), 0, func(key, value []byte) error {
		seq, ok := keyspace.Seq(key)
		if !ok {
			return format.Corrupt("purge key")
		}
		p, err := format.DecodePurge(seq, value)
		if err != nil {
			return fmt.Errorf("purge %d: %w", seq, err)
		}
		if w.add(key, value, []byte(p.ID)); w.full() {
			return flush()
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	return flush()
}

func (d *dumper) putPurges(w *window) error {
	slices.Sort(w.ids)
	w.ids = slices.Compact(w.ids)
	err := records.Walk(d.source, keyspace.Docs, w.ids, func(i int, it *pebble.Iterator) error {
		if it != nil { // what a purge leaves of a document is a change
			return nil
		}
		id := w.ids[i]
		err := d.out.deleteRange(keyspace.OfDoc(keyspace.Bodies, id), keyspace.OfDocEnd(keyspace.Bodies, id))
		if err == nil {
			err = d.out.delete(keyspace.AppendDoc(nil, id))
		}
		return err
	})
	if err != nil {
		return err
	}
	return d.putEntries(w)
}

// putEntries writes the entries of a window and ends their table: the next window begins anew in
// the order of keys.
func (d *dumper) putEntries(w *window) error {
	for _, e := range w.entries {
		if err := d.out.set(e.key, e.value); err != nil {
			return err
		}
	}
	return d.out.end(nil)
}

// changesSince writes documents that have changed.
func (d *dumper) changesSince(since uint64) error {
	w := window{seqs: map[string]uint64{}}
	flush := func() error {
		if len(w.entries) == 0 {
			return nil
		}
		slices.Sort(w.ids)
		err := d.putDocs(&w)
		w.clear()
		return err
	}
	err := d.walk(keyspace.AppendSeq(nil, since+1), 1, func(key, change []byte) error {
		seq, ok := keyspace.Seq(key)
		if !ok {
			return format.Corrupt("sequence key")
		}
		id, err := format.ChangeID(change)
		if err != nil {
			return fmt.Errorf("sequence %d: %w", seq, err)
		}
		w.add(key, change, id)
		if w.seqs[string(id)] = seq; w.full() {
			return flush()
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	return flush()
}

// putDocs writes the documents of a window keyspace by keyspace.
func (d *dumper) putDocs(w *window) error {
	if len(w.seqs) != len(w.entries) {
		return fault.New(fault.Corruption, "A document has two entries in the sequence.")
	}
	if err := d.putContents(w); err != nil {
		return err
	}
	if err := d.putBodies(w.ids); err != nil {
		return err
	}
	err := d.eachRecord(w.ids, func(id string, record []byte) error {
		record, err := records.Expand(d.source, id, record)
		if err != nil {
			return err
		}
		return d.out.set(keyspace.AppendDoc(nil, id), record)
	})
	if err != nil {
		return err
	}
	return d.putEntries(w)
}

// eachRecord calls fn with the stored record of each document.
func (d *dumper) eachRecord(ids []string, fn func(id string, record []byte) error) error {
	return records.Walk(d.source, keyspace.Docs, ids, func(i int, it *pebble.Iterator) error {
		if it == nil {
			return fault.Newf(fault.Corruption, "The sequence has the document %q, which is not there.", ids[i])
		}
		record, err := it.ValueAndErr()
		if err == nil {
			err = fn(ids[i], record)
		}
		if err != nil {
			return fmt.Errorf("document %q: %w", ids[i], err)
		}
		return d.look(0, len(ids[i])+len(record))
	})
}

// putContents writes the contents that documents refer to.
func (d *dumper) putContents(w *window) (err error) {
	var bodies, contents walker
	defer func() { err = errors.Join(err, bodies.close(), contents.close()) }()
	if err := bodies.open(d.source, keyspace.Bodies); err != nil {
		return err
	}
	if err := contents.open(d.source, keyspace.Attachments); err != nil {
		return err
	}
	var keys []keyspace.ContentKey
	return d.eachRecord(w.ids, func(id string, record []byte) (err error) {
		var h doc.Head
		if err := doc.DecodeHead(record, &h); err != nil {
			return err
		}
		if h.Seq != w.seqs[id] {
			return fault.Newf(fault.Corruption, "The entry of sequence %d is not that of its document.", w.seqs[id])
		}
		if keys, err = referred(keys[:0], h.Inline); err != nil {
			return err
		}
		if doc.StoredOutside(record) || doc.HasBlocks(record) {
			err = bodies.each(keyspace.OfDoc(keyspace.Bodies, id), func(_, text []byte) error {
				keys, err = referred(keys, text)
				return err
			})
		}
		for _, key := range sorted(&keys) {
			if err == nil {
				err = contents.each(keyspace.AppendContent(nil, id, key), d.copyEntry)
			}
		}
		return err
	})
}

// copyEntry writes an entry as it is.
func (d *dumper) copyEntry(key, value []byte) error {
	if err := d.out.set(key, value); err != nil {
		return err
	}
	return d.look(0, len(key)+len(value))
}

// putBodies writes revisions in the place of all that documents had.
func (d *dumper) putBodies(ids []string) (err error) {
	var bodies walker
	if err := bodies.open(d.source, keyspace.Bodies); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bodies.close()) }()
	for _, id := range ids {
		from := keyspace.OfDoc(keyspace.Bodies, id)
		if err := d.out.deleteRange(from, keyspace.OfDocEnd(keyspace.Bodies, id)); err != nil {
			return err
		}
		if err := bodies.each(from, d.copyEntry); err != nil {
			return err
		}
	}
	return nil
}
