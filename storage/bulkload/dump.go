package bulkload

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/format"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// Dump writes what a store holds at one moment as tables for a Sink, one after the other. They
// leave out what can be made of the rest: heads, aggregates and blocks of histories, which are in
// the records. Each keyspace is read in its own order, and memory holds one table that is being
// written, but for its values. All fields are required but Origins.
type Dump struct {
	Source   pebble.Reader   // of one moment
	Counters format.Counters // then
	Origins  []format.Origin // then
	Table    sstable.WriterOptions
	Sink     Sink
	// Looked hears now and then how many bytes were read since. Its error ends the work.
	Looked func(bytes int) error
}

// dumper is one method of a Dump.
type dumper struct {
	*Dump
	scan
	out     tableStream
	sum     uint64 // over documents, less that over entries of the sequence
	entries uint64 // of the sequence, less documents
}

// run calls fn and ends the tables. After an error what the sink has got is of no use.
func (o *Dump) run(fn func(d *dumper) error) error {
	d := &dumper{Dump: o, out: tableStream{sink: o.Sink, options: o.Table}}
	seen := int64(0)
	d.scan = scan{source: o.Source, looked: func(int) error {
		n := d.read - seen
		seen = d.read
		return o.Looked(int(n))
	}}
	err := fn(d)
	return errors.Join(err, d.out.end(err))
}

// All writes everything but local documents.
func (o *Dump) All() error { return o.run((*dumper).all) }

// Locals writes the local documents.
func (o *Dump) Locals() error {
	return o.run(func(d *dumper) error { return d.walk(keyspace.Start(keyspace.Local), 0, d.out.set, nil) })
}

// all writes keyspaces in the order of keys.
func (d *dumper) all() error {
	for _, space := range [...]byte{keyspace.Attachments, keyspace.Bodies} {
		if err := d.walk(keyspace.Start(space), 0, d.out.set, nil); err != nil {
			return err
		}
	}
	if err := d.walk(keyspace.Start(keyspace.Docs), 1, d.putRecord, nil); err != nil {
		return err
	}
	if err := d.putMeta(); err != nil {
		return err
	}
	if err := d.walk(keyspace.AppendPurge(nil, d.Counters.PurgeTrimmed+1), 0, d.out.set, nil); err != nil {
		return err
	}
	if err := d.walk(keyspace.Start(keyspace.Sequence), 0, d.putChange, nil); err != nil {
		return err
	}
	if d.entries != 0 || d.sum != 0 {
		return fault.New(fault.Corruption, "The entries of the sequence are not those of the documents.")
	}
	return nil
}

// putRecord writes a record with its whole history in it.
func (d *dumper) putRecord(key, record []byte) error {
	id := string(keyspace.Tail(key))
	record, err := records.Expand(d.source, id, record)
	var h doc.Head
	if err == nil {
		err = doc.DecodeHead(record, &h)
	}
	if err != nil {
		return fmt.Errorf("document %q: %w", id, err)
	}
	d.sum += fingerprint(keyspace.BorderHash(id), h.Seq)
	d.entries--
	return d.out.set(key, record)
}

func (d *dumper) putChange(key, change []byte) error {
	seq, ok := keyspace.Seq(key)
	if !ok {
		return format.Corrupt("sequence key")
	}
	id, err := format.ChangeID(change)
	if err != nil {
		return fmt.Errorf("sequence %d: %w", seq, err)
	}
	d.sum -= fingerprint(keyspace.BorderHash(id), seq)
	d.entries++
	return d.out.set(key, change)
}

// putMeta writes how far the dump goes. There is no batch.
func (d *dumper) putMeta() error {
	err := d.out.set(keyspace.AppendMeta(nil, keyspace.MetaCounters), format.AppendCounters(nil, 0, &d.Counters))
	if err != nil {
		return err
	}
	return d.out.set(keyspace.AppendMeta(nil, keyspace.MetaOrigins), format.AppendOrigins(nil, d.Origins))
}
