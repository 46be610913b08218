package bulkload

import (
	"errors"

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
	if err := e.bodies.open(e.f.Source, keyspace.Bodies); err != nil {
		return err
	}
	return e.contents.open(e.f.Source, keyspace.Attachments)
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
	var err error
	if e.keys, err = referred(e.keys[:0], h.Inline); err != nil {
		return err
	}
	if doc.StoredOutside(record) {
		if err := e.copyBodies(id); err != nil {
			return err
		}
	}
	for _, key := range sorted(&e.keys) {
		if err := e.copyContent(id, key); err != nil {
			return err
		}
	}
	return nil
}

func (e *extras) copyBodies(id string) error {
	return e.bodies.each(keyspace.OfDoc(keyspace.Bodies, id), func(key, text []byte) (err error) {
		if e.keys, err = referred(e.keys, text); err != nil {
			return err
		}
		e.f.bodies.put(key, text)
		return e.f.look(0, len(key)+len(text))
	})
}

// copyContent copies the chunks of a content as they are stored, one by one.
func (e *extras) copyContent(id string, key keyspace.ContentKey) error {
	next := uint32(0)
	return e.contents.each(keyspace.AppendContent(nil, id, key), func(k, data []byte) error {
		if _, _, chunk, ok := keyspace.CutChunk(k); !ok || chunk != next {
			return format.Corrupt("attachment key")
		}
		next++
		e.f.contents.put(k, data)
		return e.f.look(0, len(k)+len(data))
	})
}
