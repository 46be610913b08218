package records

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/format"
	"divan/storage/keyspace"
)

// History returns the revisions of a document that are in blocks. The error is
// fault.Corruption when they are not all there, as after a change of the document since
// below was read.
func History(r pebble.Reader, id string, below doc.Below) (doc.Tree, error) {
	it, err := r.NewIter(&pebble.IterOptions{
		LowerBound: keyspace.OfDoc(keyspace.History, id), UpperBound: keyspace.OfDocEnd(keyspace.History, id),
	})
	if err != nil {
		return doc.Tree{}, fmt.Errorf("read history: %w", err)
	}
	t, err := history(it, id, below)
	if err = errors.Join(err, it.Close()); err != nil {
		return doc.Tree{}, fmt.Errorf("read history of %q: %w", id, err)
	}
	return t, nil
}

func history(it *pebble.Iterator, id string, below doc.Below) (t doc.Tree, err error) {
	number, end := below.Blocks()
	t = below.Space()
	for ok := it.SeekGE(keyspace.AppendBlock(nil, id, number)); number < end; ok = it.Next() {
		if !ok {
			return t, errors.Join(it.Error(), format.Corrupt("history: a block is missing"))
		}
		_, at, whole := keyspace.CutBlock(it.Key())
		if !whole || at != number {
			return t, format.Corrupt("history: a block is missing")
		}
		value, err := it.ValueAndErr()
		if err == nil {
			err = t.AddBlock(number, value, below.Floor)
		}
		if err != nil {
			return t, err
		}
		number++
	}
	return t, nil
}

// Oldest returns the revisions of a document in the block of its oldest one, from that on.
// The error is fault.Corruption when they are not there.
func Oldest(r pebble.Reader, id string, below doc.Below) (t doc.Tree, err error) {
	number, _ := below.Blocks()
	value, closer, err := r.Get(keyspace.AppendBlock(nil, id, number))
	if errors.Is(err, pebble.ErrNotFound) {
		return t, fmt.Errorf("document %q: %w", id, format.Corrupt("history: a block is missing"))
	}
	if err == nil {
		err = errors.Join(t.AddBlock(number, value, below.Floor), closer.Close())
	}
	if err != nil {
		return doc.Tree{}, fmt.Errorf("read history of %q: %w", id, err)
	}
	return t, nil
}

// Expand returns the encoded record of a document with its whole history in it: record
// itself when it has no blocks. r is of the moment that record was read.
func Expand(r pebble.Reader, id string, record []byte) ([]byte, error) {
	if !doc.HasBlocks(record) {
		return record, nil
	}
	rec, err := doc.DecodeRecord(id, record)
	if err != nil {
		return nil, err
	}
	older, err := History(r, id, rec.Below)
	if err == nil {
		err = rec.Widen(&older)
	}
	if err != nil {
		return nil, err
	}
	rec.Below = doc.Below{}
	return rec.AppendBinary(make([]byte, 0, 2*len(record))), nil
}

// BlockWriter puts blocks of a document into a batch.
type BlockWriter struct {
	ID    string
	Batch *pebble.Batch
	Note  func(error) // hears of each error
}

// PutBlock implements doc.BlockWriter.
func (w BlockWriter) PutBlock(number uint64, block []byte) {
	w.Note(w.Batch.Set(keyspace.AppendBlock(nil, w.ID, number), block, nil))
}

// DeleteBlock implements doc.BlockWriter.
func (w BlockWriter) DeleteBlock(number uint64) {
	w.Note(w.Batch.Delete(keyspace.AppendBlock(nil, w.ID, number), nil))
}
