package storage

import (
	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// Reader reads documents of a store as its last applied batch left them. It is safe for concurrent
// use while the store is pinned. After a failure of the store it reads nothing.
type Reader struct {
	h      *handle // of the store
	small  *smallPart
	states *states
}

// now returns what the store is read from.
func (r *Reader) now() pebble.Reader {
	if v := r.small.view.Load(); v != nil {
		return v
	}
	return r.h.inst.DB()
}

// moment returns a reader of the present content; later batches do not
// show in it.
func (r *Reader) moment() pebble.Reader {
	if v := r.small.view.Load(); v != nil {
		return v
	}
	return r.h.inst.DB().NewSnapshot()
}

// ProbeTip is Tip for a document that most likely does not exist, as a new one
// does not: for that it costs microseconds.
func (r *Reader) ProbeTip(id string) (rec doc.Record, ok bool, err error) {
	if err := r.h.Err(); err != nil || id > r.states.applied().last {
		return rec, false, err
	}
	return records.ProbeTip(r.now(), id)
}

// Record returns the record of a document as of the last applied batch; ok is
// false when there is none. It costs nothing for an id above all others, as ids made
// of the time are. Nothing aliases the store.
func (r *Reader) Record(id string) (rec doc.Record, ok bool, err error) {
	if err := r.h.Err(); err != nil || id > r.states.applied().last {
		return rec, false, err
	}
	return records.Get(r.now(), id)
}

// Tip is Record without what lies in blocks of a long history.
func (r *Reader) Tip(id string) (rec doc.Record, ok bool, err error) {
	if err := r.h.Err(); err != nil || id > r.states.applied().last {
		return rec, false, err
	}
	return records.GetTip(r.now(), id)
}

// History returns the revisions of a document that are in blocks. The error is
// fault.Corruption when the document has changed since below was read so that they are no
// longer all there.
func (r *Reader) History(id string, below doc.Below) (doc.Tree, error) {
	if err := r.h.Err(); err != nil {
		return doc.Tree{}, err
	}
	return records.History(r.now(), id, below)
}

// Oldest is History for those that lie in one block with the oldest.
func (r *Reader) Oldest(id string, below doc.Below) (doc.Tree, error) {
	if err := r.h.Err(); err != nil {
		return doc.Tree{}, err
	}
	return records.Oldest(r.now(), id, below)
}

// Head fills h with the front of the record of a document, enough to answer
// with its winner; ok is false, and h untouched, when there is none. h.Inline
// is a copy.
func (r *Reader) Head(id string, h *doc.Head) (ok bool, err error) {
	if err := r.h.Err(); err != nil {
		return false, err
	}
	return records.Head(r.now(), id, h)
}

// Front is Head without Inline, from the keyspace of heads: a twentieth of the
// bytes, so that far more of it stays in the cache.
func (r *Reader) Front(id string, h *doc.Head) (ok bool, err error) {
	if err := r.h.Err(); err != nil {
		return false, err
	}
	return records.Front(r.now(), id, h)
}

// Revision returns a revision from the bodies keyspace, where all are but the
// winners that their records hold; ok is false when it is not there. Nothing
// aliases the store.
func (r *Reader) Revision(id string, rev doc.Rev) (v doc.Revision, ok bool, err error) {
	if err := r.h.Err(); err != nil {
		return v, false, err
	}
	return records.Revision(r.now(), id, rev)
}

// Local returns the text of a local document; ok is false when there is none.
func (r *Reader) Local(id string) (text []byte, ok bool, err error) {
	if err := r.h.Err(); err != nil {
		return nil, false, err
	}
	var key [128]byte
	return records.Value(r.now(), keyspace.AppendLocal(key[:0], id))
}

// HasContent reports whether the store has a content now.
func (r *Reader) HasContent(id string, key [16]byte) (bool, error) {
	if err := r.h.Err(); err != nil {
		return false, err
	}
	_, closer, err := r.now().Get(keyspace.AppendChunk(nil, id, key, 0))
	return found(closer, err)
}
