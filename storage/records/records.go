// Package records reads the records of documents, with the older revisions that lie in
// blocks beside them (doc.Below).
package records

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/keyspace"
)

// Get returns the whole record of a document that most likely exists; nothing aliases the
// store. r need not be of one moment.
func Get(r pebble.Reader, id string) (rec doc.Record, ok bool, err error) {
	if rec, ok, err = GetTip(r, id); err != nil || !rec.Partial {
		return rec, ok, err
	}
	// What was read and the blocks may be of two moments. An iterator shows one.
	it, err := r.NewIter(&pebble.IterOptions{
		LowerBound: keyspace.AppendDoc(nil, id), UpperBound: keyspace.OfDocEnd(keyspace.History, id),
	})
	if err != nil {
		return doc.Record{}, false, fmt.Errorf("read record: %w", err)
	}
	rec, ok, err = getWhole(it, id)
	if err = errors.Join(err, it.Close()); err != nil {
		return doc.Record{}, false, fmt.Errorf("read record of %q: %w", id, err)
	}
	return rec, ok, nil
}

func getWhole(it *pebble.Iterator, id string) (rec doc.Record, ok bool, err error) {
	key := keyspace.AppendDoc(nil, id)
	if !it.SeekGE(key) || string(it.Key()) != string(key) {
		return rec, false, it.Error()
	}
	rec, err = Decode(id, it)
	if err == nil && rec.Partial {
		var older doc.Tree
		if older, err = history(it, id, rec.Below); err == nil {
			err = rec.Widen(&older)
		}
	}
	return rec, err == nil, err
}

// GetTip is Get without what lies in blocks: the record is Partial when there are some. Get
// of Pebble ends at the newest version, which for a document that was updated lately is in
// the memtable.
func GetTip(r pebble.Reader, id string) (rec doc.Record, ok bool, err error) {
	var buf [128]byte
	value, closer, err := r.Get(keyspace.AppendDoc(buf[:0], id))
	if errors.Is(err, pebble.ErrNotFound) {
		return rec, false, nil
	}
	if err == nil {
		rec, err = doc.DecodeRecord(id, append(make([]byte, 0, len(value)), value...))
		err = errors.Join(err, closer.Close())
	}
	if err != nil {
		return doc.Record{}, false, fmt.Errorf("read record: %w", err)
	}
	return rec, true, nil
}

// ProbeTip is GetTip for a document that most likely does not exist. Pebble's Get
// never asks the filters of the lowest level, where most keys are, and so
// reads a block for every new id; an iterator with UseL6Filters does. It opens all
// levels, which costs a document that was updated lately three times as much as Get.
func ProbeTip(r pebble.Reader, id string) (rec doc.Record, ok bool, err error) {
	var buf [128]byte
	key := keyspace.AppendDoc(buf[:0], id)
	it, err := r.NewIter(&pebble.IterOptions{
		LowerBound: key, UpperBound: append(key[:len(key):len(key)], 0), UseL6Filters: true,
	})
	if err != nil {
		return rec, false, fmt.Errorf("read record: %w", err)
	}
	if it.SeekPrefixGE(key) {
		rec, err = Decode(id, it)
		ok = err == nil
	}
	if err = errors.Join(err, it.Error(), it.Close()); err != nil {
		return doc.Record{}, false, fmt.Errorf("read record: %w", err)
	}
	return rec, ok, nil
}

// Decode decodes the record that an iterator is at, Partial when it has blocks. Nothing
// aliases the iterator.
func Decode(id string, it *pebble.Iterator) (doc.Record, error) {
	value, err := it.ValueAndErr()
	if err != nil {
		return doc.Record{}, err
	}
	return doc.DecodeRecord(id, append(make([]byte, 0, len(value)), value...))
}

// Walk looks many ids up, in ascending order, in a keyspace that has an entry for each
// document. fn gets an iterator on the entry, nil when there is none.
func Walk(r pebble.Reader, space byte, ids []string, fn func(i int, it *pebble.Iterator) error) error {
	if len(ids) == 0 {
		return nil
	}
	it, err := r.NewIter(&pebble.IterOptions{
		LowerBound: keyspace.Start(space), UpperBound: keyspace.End(space), UseL6Filters: true,
	})
	if err != nil {
		return err
	}
	var key []byte
	for i, id := range ids {
		key = append(keyspace.AppendSpace(key[:0], space), id...)
		switch {
		case it.SeekPrefixGE(key):
			err = fn(i, it)
		case it.Error() != nil:
			err = it.Error()
		default:
			err = fn(i, nil)
		}
		if err != nil {
			break
		}
	}
	return errors.Join(err, it.Close())
}
