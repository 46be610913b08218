package bulkload

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/format"
	"divan/storage/keyspace"
)

// extras copies what documents have beside their records: revisions and the contents of
// attachments. The keyspaces of both are in the order of ids.
type extras struct {
	f                *filler
	bodies, contents walker
	keys             []keyspace.ContentKey // that the document refers to
}

func newExtras(f *filler) (*extras, error) {
	e := &extras{f: f}
	if err := e.open(); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *extras) open() error {
	for space, w := range map[byte]*walker{keyspace.Bodies: &e.bodies, keyspace.Attachments: &e.contents} {
		o := &pebble.IterOptions{LowerBound: keyspace.Start(space), UpperBound: keyspace.End(space)}
		it, err := e.f.Source.NewIter(o)
		if err != nil {
			return err
		}
		w.it = it
	}
	return nil
}

func (e *extras) close() error { return errors.Join(e.bodies.close(), e.contents.close()) }

// rest begins anew where the documents are: see pieceBytes.
func (e *extras) rest() error {
	if err := e.close(); err != nil {
		return err
	}
	return e.open()
}

// copy copies what a document with that record has.
func (e *extras) copy(id string, record []byte) error {
	var h doc.Head
	if err := doc.DecodeHead(record, &h); err != nil {
		return err
	}
	e.keys = e.keys[:0]
	if h.Inline != nil {
		if err := e.refer(h.Inline); err != nil {
			return err
		}
	}
	if doc.StoredOutside(record) {
		if err := e.copyBodies(id); err != nil {
			return err
		}
	}
	slices.SortFunc(e.keys, func(a, b keyspace.ContentKey) int { return bytes.Compare(a[:], b[:]) })
	for _, key := range slices.Compact(e.keys) {
		if err := e.copyContent(id, key); err != nil {
			return err
		}
	}
	return nil
}

// refer notes the contents that an encoded revision refers to.
func (e *extras) refer(text []byte) error {
	v, err := doc.DecodeRevision(text)
	for i := range v.Atts {
		e.keys = append(e.keys, v.Atts[i].Key)
	}
	return err
}

func (e *extras) copyBodies(id string) error {
	end := keyspace.OfDocEnd(keyspace.Bodies, id)
	it := e.bodies.it
	for ok := e.bodies.to(keyspace.OfDoc(keyspace.Bodies, id)); ok && bytes.Compare(it.Key(), end) < 0; ok = it.Next() {
		text, err := it.ValueAndErr()
		if err == nil {
			err = e.refer(text)
		}
		if err == nil {
			e.f.bodies.put(it.Key(), text)
			err = e.f.look(0, len(it.Key())+len(text))
		}
		if err != nil {
			return err
		}
	}
	return it.Error()
}

// copyContent copies the chunks of a content as they are stored, one by one.
func (e *extras) copyContent(id string, key keyspace.ContentKey) error {
	prefix := keyspace.AppendContent(nil, id, key)
	it, next := e.contents.it, uint32(0)
	for ok := e.contents.to(prefix); ok && bytes.HasPrefix(it.Key(), prefix); ok = it.Next() {
		if _, _, chunk, ok := keyspace.CutChunk(it.Key()); !ok || chunk != next {
			return format.Corrupt("attachment key")
		}
		next++
		data, err := it.ValueAndErr()
		if err == nil {
			e.f.contents.put(it.Key(), data)
			err = e.f.look(0, len(it.Key())+len(data))
		}
		if err != nil {
			return err
		}
	}
	return it.Error()
}
