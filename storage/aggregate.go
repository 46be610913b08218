package storage

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/blocks"
	"divan/storage/doc"
	"divan/storage/format"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// Aggregates answer "how many before this one" without a scan. Documents and
// sequences are cut into blocks on two levels; each block has an entry with
// the sums of what it holds.
//
// Documents: a document opens a block when its id hashes to a multiple of 32, a
// top-level block at a multiple of 2048. So borders depend on the ids alone,
// are spread evenly for ids of any form, and move no other border. A block is
// never closed; one without documents has zero sums. The first block has the
// empty border and needs no document.
//
// Sequences: blocks of 256 and of 65536 numbers.
//
// Entries of the low level are sums of merge operands, which the writer adds
// without reading; those around recent edits are in memory too (blocks.Low).
// Entries of the top level are values, which are in memory always (topBlocks): a
// merge operand per batch would make every reader add up as many as the
// memtable holds.
//
// Invariant A1: after every batch the entry of a block is the sum over the
// documents, or sequence entries, between its border and the next of its level.

// docDelta is the change that a batch makes to the sums of one document.
type docDelta struct {
	id    string
	d     Sums
	fresh bool // the document may be new
}

// seqDelta is an entry that comes (+1) or goes (-1).
type seqDelta struct {
	seq uint64
	n   int64
}

// aggregateEdit is one batch being added to the aggregates.
type aggregateEdit struct {
	states  *states
	db      pebble.Reader // as of the batch before
	b       *pebble.Batch
	top     *topBlocksEdit
	touched map[string]struct{}      // top borders with a new value
	own     map[*blocks.Low]struct{} // made by this batch, so that it may change them
	key     []byte
	val     []byte
}

// aggregateDocs adds the batch's changes of documents to the low level, as
// operations of b, and to a copy of the top level, which it returns.
func (s *states) aggregateDocs(db pebble.Reader, b *pebble.Batch, cur *topBlocks, deltas []docDelta) (*topBlocks, error) {
	deltas = combine(deltas)
	if len(deltas) == 0 {
		return cur, nil
	}
	a := &aggregateEdit{states: s, db: db, b: b, top: cur.edit(), touched: map[string]struct{}{}, own: map[*blocks.Low]struct{}{}}
	s.limitLowBlocks(cur)
	if err := a.docs(deltas); err != nil {
		return nil, err
	}
	return a.top.topBlocks, nil
}

// combine sorts by id and adds up the deltas of one id; what changes nothing is
// left out.
func combine(deltas []docDelta) []docDelta {
	slices.SortFunc(deltas, func(a, b docDelta) int { return strings.Compare(a.id, b.id) })
	out := deltas[:0]
	for _, d := range deltas {
		if n := len(out); n > 0 && out[n-1].id == d.id {
			out[n-1].d.Add(d.d)
			out[n-1].fresh = out[n-1].fresh || d.fresh
			continue
		}
		out = append(out, d)
	}
	return slices.DeleteFunc(out, func(d docDelta) bool { return d.d.IsZero() })
}

func (a *aggregateEdit) docs(deltas []docDelta) error {
	// All blocks are opened before anything is added: opening one moves what
	// the store holds, not what this batch adds.
	for i := range deltas {
		if deltas[i].fresh && keyspace.BorderHash(deltas[i].id)&keyspace.LowMask == 0 {
			if err := a.open(deltas[i].id); err != nil {
				return err
			}
		}
	}
	for i := 0; i < len(deltas); {
		id := deltas[i].id
		low, k, err := a.writable(id)
		if err != nil {
			return err
		}
		end, bounded := a.top.next(id)
		if k+1 < len(low.Borders) {
			end, bounded = low.Borders[k+1], true
		}
		var sum Sums // of the low block
		for ; i < len(deltas) && (!bounded || deltas[i].id < end); i++ {
			sum.Add(deltas[i].d)
		}
		a.add(id, sum)
		low.Sums[k].Add(sum)
		a.merge(low.Borders[k], sum)
	}
	for top := range a.touched {
		a.key = keyspace.AppendAgg(a.key[:0], keyspace.AggDocs, keyspace.LevelTop, top)
		a.val = format.AppendSums(a.val[:0], a.top.sums(top))
		if err := a.b.Set(a.key, a.val, nil); err != nil {
			return err
		}
	}
	return nil
}

// add changes the top-level block of id.
func (a *aggregateEdit) add(id string, d Sums) {
	a.touched[a.top.border(id)] = struct{}{}
	a.top.add(id, d)
}

// merge changes a low-level block. Errors of a batch without an index are
// those of its size, which Apply reports.
func (a *aggregateEdit) merge(border string, d Sums) {
	if d.IsZero() {
		return
	}
	a.key = keyspace.AppendAgg(a.key[:0], keyspace.AggDocs, keyspace.LevelLow, border)
	a.val = format.AppendSums(a.val[:0], d)
	_ = a.b.Merge(a.key, a.val, nil) // never fails
}

// open opens the blocks that id begins, unless they are there.
func (a *aggregateEdit) open(id string) error {
	low, i, err := a.writable(id)
	if err != nil || low.Borders[i] == id {
		return err
	}
	id = strings.Clone(id) // the caller's string may be part of a request
	end, bounded := a.top.next(id)
	if i+1 < len(low.Borders) {
		end, bounded = low.Borders[i+1], true
	}
	moved, err := a.states.sumDocs(a.db, id, end, !bounded)
	if err != nil {
		return err
	}
	a.merge(low.Borders[i], moved.Neg())
	a.merge(id, moved)
	// An entry with zero sums marks the border all the same.
	a.key = keyspace.AppendAgg(a.key[:0], keyspace.AggDocs, keyspace.LevelLow, id)
	if err := a.b.Merge(a.key, nil, nil); err != nil {
		return err
	}
	low.Sums[i].Add(moved.Neg())
	low.Insert(i+1, id, moved)
	a.states.lowHeld.Add(1)
	if keyspace.BorderHash(id)&keyspace.TopMask != 0 {
		return nil
	}
	top := low.Borders[0]
	right, sums := low.Cut(i + 1)
	a.own[right] = struct{}{}
	a.top.insert(id)
	a.top.setLow(id, right)
	a.add(id, sums)
	a.add(top, sums.Neg())
	return nil
}

// sumDocs adds up the documents with lo <= id < hi.
func (s *states) sumDocs(r pebble.Reader, lo, hi string, toEnd bool) (Sums, error) {
	var sums Sums
	end := keyspace.AppendHead(nil, hi)
	if toEnd {
		end = keyspace.End(keyspace.Heads)
	}
	err := records.Each(r, keyspace.AppendHead(nil, lo), end, func(_, value []byte) error {
		return s.addHead(&sums, value)
	})
	if err != nil {
		return sums, fmt.Errorf("count documents: %w", err)
	}
	return sums, nil
}

// addHead adds one document.
func (s *states) addHead(sums *Sums, head []byte) error {
	var h doc.Head
	err := doc.DecodeHead(head, &h)
	sums.Add(s.kept(format.HeadSums(&h)))
	return err
}

// kept is the part of the sums that this store keeps.
func (s *states) kept(sums Sums) Sums {
	if !s.partitioned {
		sums.External, sums.Active = 0, 0
	}
	return sums
}

// aggregateSeqs adds the entries that come and go to the aggregates of sequences.
func aggregateSeqs(b *pebble.Batch, cur *topBlocks, deltas []seqDelta) (*topBlocks, error) {
	if len(deltas) == 0 {
		return cur, nil
	}
	slices.SortFunc(deltas, func(a, b seqDelta) int { return cmp.Compare(a.seq, b.seq) })
	top := cur.edit()
	touched := map[string]struct{}{}
	var key, val []byte
	for i := 0; i < len(deltas); {
		low, n := deltas[i].seq>>keyspace.LowShift, int64(0)
		for ; i < len(deltas) && deltas[i].seq>>keyspace.LowShift == low; i++ {
			n += deltas[i].n
		}
		if n == 0 {
			continue
		}
		border := keyspace.SeqBorder(low<<keyspace.LowShift, keyspace.TopShift)
		name := string(border[:])
		top.insert(name)
		top.add(name, Sums{Live: n})
		touched[name] = struct{}{}
		border = keyspace.SeqBorder(low<<keyspace.LowShift, keyspace.LowShift)
		key = keyspace.AppendAgg(key[:0], keyspace.AggSeqs, keyspace.LevelLow, string(border[:]))
		val = format.AppendSums(val[:0], Sums{Live: n})
		if err := b.Merge(key, val, nil); err != nil {
			return nil, err
		}
	}
	for name := range touched {
		if err := putSeqTop(b, top, name); err != nil {
			return nil, err
		}
	}
	return top.topBlocks, nil
}

// putSeqTop writes the new value of a top-level block of sequences, or removes
// it with all it stands for when no entry is left.
func putSeqTop(b *pebble.Batch, top *topBlocksEdit, border string) error {
	key := keyspace.AppendAgg(nil, keyspace.AggSeqs, keyspace.LevelTop, border)
	sums := top.sums(border)
	if !sums.IsZero() {
		return b.Set(key, format.AppendSums(nil, sums), nil)
	}
	top.remove(border)
	end := binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64([]byte(border))+1<<keyspace.TopShift)
	return errors.Join(b.Delete(key, nil), b.DeleteRange(
		keyspace.AppendAgg(nil, keyspace.AggSeqs, keyspace.LevelLow, border), keyspace.AppendAgg(nil, keyspace.AggSeqs, keyspace.LevelLow, string(end)), nil))
}
