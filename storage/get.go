package storage

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/keyspace"
)

// Point reads, from the store as it is or from a snapshot.

// getCopy returns a copy of a value.
func getCopy(r pebble.Reader, key []byte) ([]byte, bool, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read: %w", err)
	}
	out := append(make([]byte, 0, len(value)), value...)
	return out, true, closer.Close()
}

// getRecord looks up a document that most likely exists: Get ends at the newest
// version, which for one that was updated lately is in the memtable.
func getRecord(r pebble.Reader, id string) (rec doc.Record, ok bool, err error) {
	var buf [128]byte
	value, ok, err := getCopy(r, keyspace.AppendDoc(buf[:0], id))
	if ok {
		rec, err = doc.DecodeRecord(id, value)
		ok = err == nil
	}
	if err != nil {
		return doc.Record{}, false, fmt.Errorf("read record: %w", err)
	}
	return rec, ok, nil
}

// probeRecord looks up a document that most likely does not exist. Pebble's Get
// never asks the filters of the lowest level, where most keys are, and so
// reads a block for every new id; an iterator with UseL6Filters does. It opens all
// levels, which costs a document that was updated lately three times as much as Get.
func probeRecord(r pebble.Reader, id string) (rec doc.Record, ok bool, err error) {
	var buf [128]byte
	key := keyspace.AppendDoc(buf[:0], id)
	it, err := r.NewIter(&pebble.IterOptions{
		LowerBound: key, UpperBound: append(key[:len(key):len(key)], 0), UseL6Filters: true,
	})
	if err != nil {
		return rec, false, fmt.Errorf("read record: %w", err)
	}
	if it.SeekPrefixGE(key) {
		rec, err = decodeRecordCopy(id, it)
		ok = err == nil
	}
	if err = errors.Join(err, it.Close()); err != nil {
		return doc.Record{}, false, fmt.Errorf("read record: %w", err)
	}
	return rec, ok, nil
}

// lastID returns the highest id of a document, empty when there is none.
func lastID(r pebble.Reader) (id string, err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: keyspace.Start(keyspace.Docs), UpperBound: keyspace.End(keyspace.Docs)})
	if err != nil {
		return "", fmt.Errorf("find the last document: %w", err)
	}
	if it.Last() {
		id = string(keyspace.Tail(it.Key()))
	}
	if err = errors.Join(it.Error(), it.Close()); err != nil {
		return "", fmt.Errorf("find the last document: %w", err)
	}
	return id, nil
}

func decodeRecordCopy(id string, it *pebble.Iterator) (doc.Record, error) {
	value, err := it.ValueAndErr()
	if err != nil {
		return doc.Record{}, err
	}
	return doc.DecodeRecord(id, append(make([]byte, 0, len(value)), value...))
}

func getHead(r pebble.Reader, id string, h *doc.Head) (bool, error) {
	var buf [128]byte
	return decodeHeadAt(r, keyspace.AppendDoc(buf[:0], id), h)
}

func getFront(r pebble.Reader, id string, h *doc.Head) (bool, error) {
	var buf [128]byte
	return decodeHeadAt(r, keyspace.AppendHead(buf[:0], id), h)
}

func decodeHeadAt(r pebble.Reader, key []byte, h *doc.Head) (bool, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read document: %w", err)
	}
	if err = doc.DecodeHead(value, h); err == nil && h.Inline != nil {
		h.Inline = append(make([]byte, 0, len(h.Inline)), h.Inline...)
	}
	if err = errors.Join(err, closer.Close()); err != nil {
		return false, fmt.Errorf("read document: %w", err)
	}
	return true, nil
}

func getRevision(r pebble.Reader, id string, rev doc.Rev) (v doc.Revision, ok bool, err error) {
	var buf [160]byte
	value, ok, err := getCopy(r, keyspace.AppendBody(buf[:0], id, rev))
	if err != nil || !ok {
		return v, false, err
	}
	v, err = doc.DecodeRevision(value)
	return v, err == nil, err
}
