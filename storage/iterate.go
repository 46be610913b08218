package storage

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/format"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// Range selects ids with Lo <= id < Hi, in descending order when Desc. An empty
// Hi is no bound. The id that follows x without a gap is x+"\x00".
type Range struct {
	Lo, Hi string
	Desc   bool
}

// rows is the part that all iterators over a keyspace share.
type rows struct {
	it   *pebble.Iterator
	desc bool
	err  error
}

func newRows(r pebble.Reader, lo, hi []byte, desc bool) (rows, error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return rows{}, fmt.Errorf("iterate: %w", err)
	}
	return rows{it: it, desc: desc}, nil
}

// rangeBounds are the keys of a Range in the keyspace of documents or local
// documents.
func rangeBounds(space byte, r Range) (lo, hi []byte) {
	lo = append(keyspace.AppendSpace(nil, space), r.Lo...)
	if r.Hi == "" {
		return lo, keyspace.End(space)
	}
	return lo, append(keyspace.AppendSpace(nil, space), r.Hi...)
}

func (r *rows) first() bool {
	if r.desc {
		return r.it.Last()
	}
	return r.it.First()
}

func (r *rows) next() bool {
	if r.desc {
		return r.it.Prev()
	}
	return r.it.Next()
}

// failed keeps the first error and ends the iteration.
func (r *rows) failed(err error) bool {
	if r.err == nil {
		r.err = err
	}
	return false
}

// Err returns what ended the iteration early, nil at its end.
func (r *rows) Err() error {
	if r.err != nil {
		return r.err
	}
	if err := r.it.Error(); err != nil {
		return fmt.Errorf("iterate: %w", err)
	}
	return nil
}

// Close ends the iteration; the error is that of Err.
func (r *rows) Close() error {
	err := r.Err()
	if cerr := r.it.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("iterate: %w", cerr)
	}
	return err
}

// Docs iterates over documents in the order of their ids, deleted ones
// included. ID and Head are valid until the next call; nothing is allocated per
// row but the name of the winner.
//
//	for ok := it.First(); ok; ok = it.Next() { … }
type Docs struct {
	rows
	space      byte
	blocks     *topBlocks // of all documents, at the moment of the iterator
	deletedRun int        // deleted rows in a row that NextLive came by
	key        []byte     // scratch of Seek
	head       doc.Head
}

// Docs returns an iterator, to be closed before the snapshot.
func (s *Snapshot) Docs(r Range) (*Docs, error) { return s.docs(keyspace.Docs, r) }

// Heads is Docs for those who want no bodies: Head has no Inline, Record is not
// to be called. It reads a twentieth of the bytes.
func (s *Snapshot) Heads(r Range) (*Docs, error) { return s.docs(keyspace.Heads, r) }

func (s *Snapshot) docs(space byte, r Range) (*Docs, error) {
	if err := s.s.Err(); err != nil {
		return nil, err
	}
	lo, hi := rangeBounds(space, r)
	inner, err := newRows(s.snap, lo, hi, r.Desc)
	if err != nil {
		return nil, err
	}
	return &Docs{rows: inner, space: space, blocks: s.state.docs}, nil
}

// Listing is Heads, or Docs with bodies, together with the number of live
// documents before the listing's Lo, or before its Hi when Desc. One iterator
// serves both: counting ends where the listing begins.
func (s *Snapshot) Listing(r Range, bodies bool) (d *Docs, before uint64, err error) {
	space := byte(keyspace.Heads)
	if bodies {
		space = keyspace.Docs
	}
	at := r.Lo
	if r.Desc {
		at = r.Hi
	}
	sums, border, err := s.blocksBefore(at)
	if err == nil && border == at {
		if r.Desc && at == "" {
			sums = s.total()
		}
		d, err = s.docs(space, r)
		return d, uint64(sums.Live), err
	}
	if err != nil {
		return nil, 0, err
	}
	inner, err := newRows(s.snap, keyspace.AppendHead(nil, border), keyspace.AppendHead(nil, at), r.Desc)
	if err != nil {
		return nil, 0, err
	}
	for ok := inner.it.First(); ok && err == nil; ok = inner.it.Next() {
		var head []byte
		if head, err = inner.it.ValueAndErr(); err == nil {
			err = s.s.states.addHead(&sums, head)
		}
	}
	if err = errors.Join(err, inner.it.Error()); err != nil {
		_ = inner.it.Close() // the first error says what happened
		return nil, 0, fmt.Errorf("count documents: %w", err)
	}
	inner.it.SetBounds(rangeBounds(space, r))
	return &Docs{rows: inner, space: space, blocks: s.state.docs}, uint64(sums.Live), nil
}

// First goes to the first row of the range; it reports whether there is one.
func (d *Docs) First() bool { return d.first() && d.decode() }

// Next goes on; it reports whether there is another row.
func (d *Docs) Next() bool { return d.next() && d.decode() }

// maxDeletedRun is how many deleted rows in a row NextLive reads before it asks
// where the next live one can be: about what a seek costs.
const maxDeletedRun = 64

// NextLive is Next for those who have no use for deleted documents: it may leave
// out any of them, and does so by whole blocks in which nothing is live, so that
// its cost does not grow with their number.
func (d *Docs) NextLive() bool {
	if !d.head.Deleted {
		d.deletedRun = 0
		return d.Next()
	}
	if d.deletedRun++; d.deletedRun%maxDeletedRun != 0 {
		return d.Next()
	}
	id := string(d.ID())
	switch at, ok := d.blocks.live(id, d.desc); {
	case !ok:
		return false
	case at == id:
		return d.Next()
	default:
		return d.Seek(at)
	}
}

// Seek goes to the first row at id or behind it in the direction of the
// iteration; it reports whether there is one.
func (d *Docs) Seek(id string) bool {
	d.key = append(keyspace.AppendSpace(d.key[:0], d.space), id...)
	if !d.desc {
		return d.it.SeekGE(d.key) && d.decode()
	}
	d.key = append(d.key, 0)
	return d.it.SeekLT(d.key) && d.decode()
}

func (d *Docs) decode() bool {
	if d.err != nil {
		return false
	}
	value, err := d.it.ValueAndErr()
	if err != nil {
		return d.failed(fmt.Errorf("iterate: %w", err))
	}
	if err := doc.DecodeHead(value, &d.head); err != nil {
		return d.failed(fmt.Errorf("document %q: %w", d.ID(), err))
	}
	return true
}

// ID returns the id of the row. It aliases the iterator.
func (d *Docs) ID() []byte { return keyspace.Tail(d.it.Key()) }

// Head returns the front of the row's record. It is reused by the next row, and
// its Inline aliases the iterator.
func (d *Docs) Head() *doc.Head { return &d.head }

// Branched reports whether the document of the row has more than one leaf, which
// is less work than Record.
func (d *Docs) Branched() (bool, error) {
	value, err := d.it.ValueAndErr()
	if err != nil {
		return false, fmt.Errorf("iterate: %w", err)
	}
	return doc.Branched(value), nil
}

// Record decodes the record of the row, Partial when older revisions are in blocks: its
// leaves are always there. Nothing aliases the iterator.
func (d *Docs) Record() (doc.Record, error) {
	return records.Decode(string(d.ID()), d.it)
}

// Locals iterates over local documents in the order of their ids. ID and Value
// alias the iterator until the next call.
type Locals struct{ rows }

// Locals returns an iterator, to be closed before the snapshot.
func (s *Snapshot) Locals(r Range) (*Locals, error) {
	if err := s.s.Err(); err != nil {
		return nil, err
	}
	lo, hi := rangeBounds(keyspace.Local, r)
	inner, err := newRows(s.snap, lo, hi, r.Desc)
	if err != nil {
		return nil, err
	}
	return &Locals{inner}, nil
}

// First goes to the first row; it reports whether there is one.
func (l *Locals) First() bool { return l.first() }

// Next goes on; it reports whether there is another row.
func (l *Locals) Next() bool { return l.next() }

// ID returns the id of the row as it was put.
func (l *Locals) ID() []byte { return keyspace.Tail(l.it.Key()) }

// Value returns the text of the row.
func (l *Locals) Value() []byte { return l.it.Value() }

// SeqRange selects sequences above After and not above Upto, in descending
// order when Desc. Zero for Upto is no bound.
type SeqRange struct {
	After, Upto uint64
	Desc        bool
}

// Changes iterates over the sequence: one entry for the newest edit of every
// document.
type Changes struct {
	rows
	change Change
}

// Changes returns an iterator, to be closed before the snapshot.
func (s *Snapshot) Changes(r SeqRange) (*Changes, error) {
	if err := s.s.Err(); err != nil {
		return nil, err
	}
	hi := keyspace.End(keyspace.Sequence)
	if r.Upto != 0 {
		hi = keyspace.AppendSeq(nil, r.Upto+1)
	}
	inner, err := newRows(s.snap, keyspace.AppendSeq(nil, r.After+1), hi, r.Desc)
	if err != nil {
		return nil, err
	}
	return &Changes{rows: inner}, nil
}

// First goes to the first entry; it reports whether there is one.
func (c *Changes) First() bool { return c.first() && c.decode() }

// Next goes on; it reports whether there is another entry.
func (c *Changes) Next() bool { return c.next() && c.decode() }

func (c *Changes) decode() bool {
	value, err := c.it.ValueAndErr()
	if err != nil {
		return c.failed(fmt.Errorf("iterate: %w", err))
	}
	seq, ok := keyspace.Seq(c.it.Key())
	if !ok {
		return c.failed(format.Corrupt("sequence key"))
	}
	c.change.Seq = seq
	if err := format.DecodeChange(value, &c.change); err != nil {
		return c.failed(fmt.Errorf("sequence %d: %w", seq, err))
	}
	return true
}

// Change returns the entry. It is reused by the next one, and its ID aliases the
// iterator.
func (c *Changes) Change() *Change { return &c.change }

// Text returns the entry as it is stored. It aliases the iterator.
func (c *Changes) Text() []byte { return c.it.Value() }

// Purges iterates over the purge log, the oldest first. It is its own moment of
// the store and pins it until Close.
type Purges struct {
	rows
	s     *Store
	purge Purge
}

// Purges returns the entries above since.
func (s *Store) Purges(since uint64) (*Purges, error) { return newPurges(s, s.read.now(), since) }

// Purges is Store.Purges of the moment.
func (s *Snapshot) Purges(since uint64) (*Purges, error) { return newPurges(s.s, s.snap, since) }

func newPurges(s *Store, r pebble.Reader, since uint64) (*Purges, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	inner, err := newRows(r, keyspace.AppendPurge(nil, since+1), keyspace.End(keyspace.Purges), false)
	if err != nil {
		return nil, err
	}
	s.cache.pin(&s.handle)
	return &Purges{rows: inner, s: s}, nil
}

// First goes to the first entry; it reports whether there is one.
func (p *Purges) First() bool { return p.first() && p.decode() }

// Next goes on; it reports whether there is another entry.
func (p *Purges) Next() bool { return p.next() && p.decode() }

func (p *Purges) decode() bool {
	seq, ok := keyspace.Seq(p.it.Key())
	if !ok {
		return p.failed(format.Corrupt("purge key"))
	}
	value, err := p.it.ValueAndErr()
	if err == nil {
		p.purge, err = format.DecodePurge(seq, value)
	}
	if err != nil {
		return p.failed(fmt.Errorf("purge %d: %w", seq, err))
	}
	return true
}

// Purge returns the entry; nothing aliases the iterator.
func (p *Purges) Purge() Purge { return p.purge }

// Close ends the iteration and gives its pin back.
func (p *Purges) Close() error {
	err := p.rows.Close()
	p.s.cache.release(&p.s.handle)
	return err
}
