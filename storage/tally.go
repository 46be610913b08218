package storage

import (
	"divan/storage/doc"
	"divan/storage/format"
)

// tally counts the changes of a batch to the totals and aggregates of its store.
type tally struct {
	states   *states  // of the store
	counters Counters // differences; sequences are the highest of it
	docs     []docDelta
	seqs     []seqDelta
	last     string // the highest id that was put
}

// count adds the difference between two states of a document.
func (t *tally) count(old, next *doc.Record) {
	var d Sums
	var id string
	if old != nil {
		id = old.ID
		d = format.RecordSums(old).Neg()
	}
	if next != nil {
		id = next.ID
		d.Add(format.RecordSums(next))
	}
	t.countSums(id, d, old == nil)
}

// countSums adds what a document adds to the sums; fresh says that it may be new.
func (t *tally) countSums(id string, d Sums, fresh bool) {
	t.counters.Live += uint64(d.Live) // wraps around for a negative difference
	t.counters.Deleted += uint64(d.Deleted)
	t.counters.External += d.External
	t.counters.Active += d.Active
	if d = t.states.kept(d); !d.IsZero() {
		t.docs = append(t.docs, docDelta{id: id, d: d, fresh: fresh})
	}
}

// put counts a document that is put, with its entry in the sequence; entered: it had that one before.
func (t *tally) put(id string, seq uint64, entered bool) {
	t.last = max(t.last, id)
	if !entered {
		t.seqs = append(t.seqs, seqDelta{seq, 1})
	}
	t.advance(seq)
}

// leave counts an entry of the sequence that goes.
func (t *tally) leave(seq uint64) { t.seqs = append(t.seqs, seqDelta{seq, -1}) }

func (t *tally) advance(seq uint64) { t.counters.Seq = max(t.counters.Seq, seq) }
