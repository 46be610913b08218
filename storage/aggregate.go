package storage

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
)

// Aggregates answer "how many before this one" without a scan. Documents and
// sequences are cut into blocks on two levels; each block has an entry with
// the sums of what it holds.
//
// Documents: a document opens a block when its id hashes to a multiple of 64,
// a top-level block at a multiple of 4096. So borders depend on the ids alone,
// are spread evenly whatever the ids look like, and move no other border. A
// block is never closed; one without documents has zero sums. The first block
// has the empty border and needs no document.
//
// Sequences: blocks of 256 and of 65536 numbers.
//
// Entries of the low level are sums of merge operands, which the writer adds
// without reading. Entries of the top level are values, which the writer has
// in memory (summary): a merge operand per batch would make every reader add
// up as many as the memtable holds.
//
// Invariant A1: after every batch the entry of a block is the sum over the
// documents, or sequence entries, between its border and the next of its level.
const (
	lowMask  = 1<<6 - 1
	topMask  = 1<<12 - 1
	lowShift = 8  // sequences of a low block: 1<<lowShift
	topShift = 16 // of a top block
)

// borderHash spreads ids. It is part of the format. CRC-32 would not do: it
// chooses the shard, so that the ids of one shard share some of its bits.
func borderHash[T string | []byte](id T) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	h ^= h >> 32 // the low bits of FNV depend on the low bits of the bytes only
	return h * 0x9e3779b97f4a7c15 >> 32
}

// docDelta is what a batch changes for one document.
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

// lowBorders caches, for the writer, the low-level borders inside top-level
// blocks: top border → low borders, sorted, the top border itself first.
type lowBorders struct {
	lists map[string][]string
	n     int
}

// maxBorders is how many low borders a store keeps in memory: a million
// documents, about 1.5 MB.
const maxBorders = 1 << 14

// fold is one batch being added to the aggregates.
type fold struct {
	s       *Store
	db      *pebble.DB // as of the batch before
	b       *pebble.Batch
	low     *lowBorders
	top     *summaryEdit
	touched map[string]struct{} // top borders with a new value
	key     []byte
	val     []byte
}

// foldDocs adds the batch's changes of documents to the low level, as
// operations of b, and to a copy of the top level, which it returns.
func (s *Store) foldDocs(db *pebble.DB, b *pebble.Batch, cur *summary, deltas []docDelta) (*summary, error) {
	deltas = combine(deltas)
	if len(deltas) == 0 {
		return cur, nil
	}
	s.low.shrink()
	f := &fold{s: s, db: db, b: b, low: &s.low, top: cur.edit(), touched: map[string]struct{}{}}
	if err := f.docs(deltas); err != nil {
		return nil, err
	}
	return f.top.summary, nil
}

// combine sorts by id and adds up the deltas of one id; what changes nothing is
// left out.
func combine(deltas []docDelta) []docDelta {
	slices.SortFunc(deltas, func(a, b docDelta) int { return strings.Compare(a.id, b.id) })
	out := deltas[:0]
	for _, d := range deltas {
		if n := len(out); n > 0 && out[n-1].id == d.id {
			out[n-1].d.add(d.d)
			out[n-1].fresh = out[n-1].fresh || d.fresh
			continue
		}
		out = append(out, d)
	}
	return slices.DeleteFunc(out, func(d docDelta) bool { return d.d.zero() })
}

func (f *fold) docs(deltas []docDelta) error {
	// All blocks are opened before anything is added: opening one moves what
	// the store holds, not what this batch adds.
	for i := range deltas {
		if deltas[i].fresh && borderHash(deltas[i].id)&lowMask == 0 {
			if err := f.open(deltas[i].id); err != nil {
				return err
			}
		}
	}
	var border string // the low block of sum
	var sum Sums
	for i := range deltas {
		id := deltas[i].id
		f.add(id, deltas[i].d)
		list, err := f.list(id)
		if err != nil {
			return err
		}
		if b := list[indexOf(list, id)]; i == 0 || b != border {
			f.merge(border, sum)
			border, sum = b, Sums{}
		}
		sum.add(deltas[i].d)
	}
	f.merge(border, sum)
	for top := range f.touched {
		f.key = appendAggKey(f.key[:0], aggDocs, levelTop, top)
		f.val = appendSums(f.val[:0], f.top.sums(top))
		if err := f.b.Set(f.key, f.val, nil); err != nil {
			return err
		}
	}
	return nil
}

// add changes the top-level block of id.
func (f *fold) add(id string, d Sums) {
	f.touched[f.top.border(id)] = struct{}{}
	f.top.add(id, d)
}

// merge changes a low-level block. Errors of a batch without an index are
// those of its size, which Apply reports.
func (f *fold) merge(border string, d Sums) {
	if d.zero() {
		return
	}
	f.key = appendAggKey(f.key[:0], aggDocs, levelLow, border)
	f.val = appendSums(f.val[:0], d)
	_ = f.b.Merge(f.key, f.val, nil) // never fails
}

// indexOf returns where in a list of borders the block that contains id is.
func indexOf(list []string, id string) int {
	return sort.Search(len(list), func(i int) bool { return list[i] > id }) - 1
}

// list returns the low borders of the top-level block that contains id.
func (f *fold) list(id string) ([]string, error) {
	top := f.top.border(id)
	if list := f.low.lists[top]; list != nil {
		return list, nil
	}
	end, ok := f.top.next(id)
	list := []string{top}
	err := f.eachLow(top+"\x00", end, !ok, func(border string, _ Sums) {
		list = append(list, border)
	})
	if err != nil {
		return nil, err
	}
	f.low.put(top, list)
	return list, nil
}

// eachLow reads the low-level entries with lo <= border < hi.
func (f *fold) eachLow(lo, hi string, toEnd bool, fn func(border string, s Sums)) error {
	end := appendAggKey(nil, aggDocs, levelLow, hi)
	if toEnd {
		end = appendAggKey(nil, aggDocs, levelLow+1, "")
	}
	err := each(f.db, appendAggKey(nil, aggDocs, levelLow, lo), end, func(key, value []byte) error {
		s, err := decodeSums(value)
		if err == nil {
			fn(string(aggBorder(key)), s)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read aggregates: %w", err)
	}
	return nil
}

// open opens the blocks that id begins, unless they are there. Borders are
// opened in ascending order, so that those after id are all in the store.
func (f *fold) open(id string) error {
	list, err := f.list(id)
	if err != nil {
		return err
	}
	i := indexOf(list, id)
	if list[i] == id {
		return nil
	}
	id = strings.Clone(id) // the caller's string may be part of a request
	topEnd, bounded := f.top.next(id)
	end, last := topEnd, !bounded
	if i+1 < len(list) {
		end, last = list[i+1], false
	}
	moved, err := f.s.sumDocs(f.db, id, end, last)
	if err != nil {
		return err
	}
	f.merge(list[i], moved.neg())
	f.merge(id, moved)
	// An entry with zero sums marks the border all the same.
	f.key = appendAggKey(f.key[:0], aggDocs, levelLow, id)
	if err := f.b.Merge(f.key, nil, nil); err != nil {
		return err
	}
	top := list[0]
	list = slices.Insert(list, i+1, id)
	f.low.put(top, list)
	if borderHash(id)&topMask != 0 {
		return nil
	}
	if !last { // the blocks behind the one that id cuts
		err = f.eachLow(end, topEnd, !bounded, func(_ string, s Sums) { moved.add(s) })
		if err != nil {
			return err
		}
	}
	f.low.cut(top, i+1)
	f.top.insert(id)
	f.add(id, moved)
	f.add(top, moved.neg())
	return nil
}

// sumDocs adds up the documents with lo <= id < hi.
func (s *Store) sumDocs(r pebble.Reader, lo, hi string, toEnd bool) (Sums, error) {
	var sums Sums
	end := appendDocKey(nil, hi)
	if toEnd {
		end = spaceEnd(spaceDocs)
	}
	var h doc.Head
	err := each(r, appendDocKey(nil, lo), end, func(_, value []byte) error {
		err := doc.DecodeHead(value, &h)
		sums.add(s.kept(headSums(&h)))
		return err
	})
	if err != nil {
		return sums, fmt.Errorf("count documents: %w", err)
	}
	return sums, nil
}

// headSums is what one document adds to the sums.
func headSums(h *doc.Head) Sums {
	s := Sums{External: h.External, Active: h.Active}
	if h.Deleted {
		s.Deleted = 1
	} else {
		s.Live = 1
	}
	return s
}

// kept is the part of the sums that this store keeps.
func (s *Store) kept(sums Sums) Sums {
	if !s.partitioned {
		sums.External, sums.Active = 0, 0
	}
	return sums
}

func (l *lowBorders) put(top string, list []string) {
	if l.lists == nil {
		l.lists = map[string][]string{}
	}
	l.n += len(list) - len(l.lists[top])
	l.lists[top] = list
}

// cut makes two lists of one: the border at i is a top border now.
func (l *lowBorders) cut(top string, i int) {
	list := l.lists[top]
	l.lists[list[i]] = slices.Clone(list[i:])
	l.lists[top] = slices.Clip(list[:i])
}

// shrink forgets arbitrary lists when too many borders are held. Only between
// batches: what a batch has opened is not in the store yet.
func (l *lowBorders) shrink() {
	if l.n <= maxBorders {
		return
	}
	for top, list := range l.lists {
		delete(l.lists, top)
		if l.n -= len(list); l.n <= maxBorders/2 {
			return
		}
	}
}

// foldSeqs adds the entries that come and go to the aggregates of sequences.
func foldSeqs(b *pebble.Batch, cur *summary, deltas []seqDelta) (*summary, error) {
	if len(deltas) == 0 {
		return cur, nil
	}
	slices.SortFunc(deltas, func(a, b seqDelta) int { return cmp.Compare(a.seq, b.seq) })
	top := cur.edit()
	touched := map[string]struct{}{}
	var key, val []byte
	for i := 0; i < len(deltas); {
		low, n := deltas[i].seq>>lowShift, int64(0)
		for ; i < len(deltas) && deltas[i].seq>>lowShift == low; i++ {
			n += deltas[i].n
		}
		if n == 0 {
			continue
		}
		border := seqBorder(low<<lowShift, topShift)
		name := string(border[:])
		top.insert(name)
		top.add(name, Sums{Live: n})
		touched[name] = struct{}{}
		border = seqBorder(low<<lowShift, lowShift)
		key = appendAggKey(key[:0], aggSeqs, levelLow, string(border[:]))
		val = appendSums(val[:0], Sums{Live: n})
		if err := b.Merge(key, val, nil); err != nil {
			return nil, err
		}
	}
	for name := range touched {
		if err := putSeqTop(b, top, name); err != nil {
			return nil, err
		}
	}
	return top.summary, nil
}

// putSeqTop writes the new value of a top-level block of sequences, or removes
// it with all it stands for when no entry is left.
func putSeqTop(b *pebble.Batch, top *summaryEdit, border string) error {
	key := appendAggKey(nil, aggSeqs, levelTop, border)
	sums := top.sums(border)
	if !sums.zero() {
		return b.Set(key, appendSums(nil, sums), nil)
	}
	top.remove(border)
	end := binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64([]byte(border))+1<<topShift)
	return errors.Join(b.Delete(key, nil), b.DeleteRange(
		appendAggKey(nil, aggSeqs, levelLow, border), appendAggKey(nil, aggSeqs, levelLow, string(end)), nil))
}
