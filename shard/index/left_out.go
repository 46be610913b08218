package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"divan/storage"
	"divan/storage/fault"
)

// An index keeps which documents it has left out, with the reason, and how many they are.
const (
	leftKey      = "m\x00left\x00" // and the id
	leftEnd      = "m\x00left\x01"
	leftCountKey = "m\x00leftcount"
)

// LeftOut is a document that an index holds nothing of, because it cannot be indexed.
type LeftOut struct{ ID, Reason string }

// leftSample is how many documents that are left out are named at most.
const leftSample = 10

// maxLeftReason bounds the reason that is kept of a document.
const maxLeftReason = 1 << 10

// leaveOut marks the first document as left out, and gone, if its error says so.
func leaveOut(docs []Doc, err error) bool {
	var cause *DocumentError
	if !errors.As(err, &cause) || !cause.LeftOut || docs[0].left != nil {
		return false
	}
	docs[0].Doc, docs[0].left = nil, cause
	return true
}

// leftOut records the documents that an update leaves out.
type leftOut struct {
	count   uint64
	changed bool            // since it was written
	pending map[string]bool // documents of the batch: whether they are left out now
	key     []byte
}

// reason is why a document is left out, for the index's own notes.
func (e *DocumentError) reason() string {
	text := e.Err.Error()
	if known := fault.Reason(e.Err); known != "" {
		text = known
	}
	if e.Function != "" {
		text = e.Function + ": " + text
	}
	if len(text) > maxLeftReason {
		text = strings.ToValidUTF8(text[:maxLeftReason], "") + "…"
	}
	return text
}

// noteLeftOut notes which of the documents that were applied are left out, and which are
// no more. It reads nothing while there are none.
func (up *updater) noteLeftOut(docs []Doc) error {
	for i := range docs {
		d := &docs[i]
		if d.left == nil && up.left.count == 0 {
			continue
		}
		had, known := up.left.pending[d.ID]
		if !known {
			var err error
			up.left.key = append(append(up.left.key[:0], leftKey...), d.ID...)
			if _, had, err = up.x.Get(nil, up.left.key); err != nil {
				return indexed(err)
			}
		}
		if d.left != nil {
			up.f.leftOut(d.left)
		}
		up.left.note(up.b, d, had)
	}
	return nil
}

// note notes one document in a batch; had says that it was left out before.
func (l *leftOut) note(b *storage.IndexBatch, d *Doc, had bool) {
	l.key = append(append(l.key[:0], leftKey...), d.ID...)
	switch {
	case d.left != nil:
		b.Set(l.key, []byte(d.left.reason()))
		if !had {
			l.count++
		}
	case had:
		b.Delete(l.key)
		l.count--
	default:
		return
	}
	if l.pending == nil {
		l.pending = map[string]bool{}
	}
	l.pending[strings.Clone(d.ID)], l.changed = d.left != nil, true
}

// write adds the count to a batch, if it has changed.
func (l *leftOut) write(b *storage.IndexBatch) {
	if l.changed {
		b.Set([]byte(leftCountKey), binary.AppendUvarint(nil, l.count))
		l.changed = false
	}
}

// leftOut tells of a document that is left out: in the log, and in the figures.
func (f *follower) leftOut(e *DocumentError) {
	f.m.leftOut.Add(1)
	f.log.Warn("an index leaves a document out", zap.String("design", f.spec.Design), zap.String("document", e.ID),
		zap.String("function", e.Function), zap.Error(e.Err))
}

// leftReader reads an index, or a snapshot of it.
type leftReader interface {
	Get(dst, key []byte) ([]byte, bool, error)
}

// readLeftCount returns how many documents an index has left out.
func readLeftCount(from leftReader) (uint64, error) {
	b, ok, err := from.Get(nil, []byte(leftCountKey))
	if err != nil || !ok {
		return 0, err
	}
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return 0, fault.New(fault.Corruption, "The index has a malformed count of documents that are left out.")
	}
	return n, nil
}

// readLeftOut returns the first documents that an index has left out, and how many there are.
func readLeftOut(snap *storage.IndexSnapshot) (first []LeftOut, count uint64, err error) {
	if count, err = readLeftCount(snap); err != nil || count == 0 {
		return nil, 0, err
	}
	it, err := snap.Iterate([]byte(leftKey), []byte(leftEnd))
	if err != nil {
		return nil, 0, fmt.Errorf("list documents that are left out: %w", err)
	}
	for ok := it.First(); ok && len(first) < leftSample; ok = it.Next() {
		reason, err := it.Value()
		if err != nil {
			return nil, 0, errors.Join(err, it.Close())
		}
		first = append(first, LeftOut{ID: strings.TrimPrefix(string(it.Key()), leftKey), Reason: string(reason)})
	}
	return first, count, it.Close()
}
