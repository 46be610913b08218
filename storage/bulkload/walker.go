package bulkload

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/keyspace"
)

// walker goes to keys in ascending order.
type walker struct {
	it *pebble.Iterator
	on bool // it has been at a key
}

// open begins at the start of a keyspace.
func (w *walker) open(source pebble.Reader, space byte) error {
	it, err := source.NewIter(&pebble.IterOptions{LowerBound: keyspace.Start(space), UpperBound: keyspace.End(space)})
	if err != nil {
		return err
	}
	w.it = it
	return nil
}

// close closes the iterator, when there is one.
func (w *walker) close() error {
	if w.it == nil {
		return nil
	}
	err := errors.Join(w.it.Error(), w.it.Close())
	*w = walker{}
	return err
}

// nearby is how many entries a walker passes before it seeks.
const nearby = 8

// to goes to the first entry at a key or behind it.
func (w *walker) to(key []byte) bool {
	if !w.on {
		w.on = true
		return w.it.SeekGE(key)
	}
	for range nearby {
		if !w.it.Valid() || bytes.Compare(w.it.Key(), key) >= 0 {
			return w.it.Valid()
		}
		w.it.Next()
	}
	if w.it.Valid() && bytes.Compare(w.it.Key(), key) >= 0 {
		return true
	}
	return w.it.SeekGE(key)
}

// each calls fn for each entry with a prefix.
func (w *walker) each(prefix []byte, fn func(key, value []byte) error) error {
	for ok := w.to(prefix); ok && bytes.HasPrefix(w.it.Key(), prefix); ok = w.it.Next() {
		value, err := w.it.ValueAndErr()
		if err == nil {
			err = fn(w.it.Key(), value)
		}
		if err != nil {
			return err
		}
	}
	return w.it.Error()
}

// referred adds the contents that an encoded revision refers to; there may be none.
func referred(keys []keyspace.ContentKey, text []byte) ([]keyspace.ContentKey, error) {
	if text == nil {
		return keys, nil
	}
	v, err := doc.DecodeRevision(text)
	for i := range v.Atts {
		keys = append(keys, v.Atts[i].Key)
	}
	return keys, err
}

// sorted brings keys into their order, each once.
func sorted(keys *[]keyspace.ContentKey) []keyspace.ContentKey {
	slices.SortFunc(*keys, func(a, b keyspace.ContentKey) int { return bytes.Compare(a[:], b[:]) })
	*keys = slices.Compact(*keys)
	return *keys
}
