// Package garbage finds what no client can ask for any more: bodies of revisions that are not leaves,
// and contents of attachments that no revision refers to.
package garbage

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/format"
	"divan/storage/keyspace"
	"divan/storage/records"
	"divan/storage/uploads"
)

// Garbage lists what a compaction takes from one document.
type Garbage struct {
	Old      doc.Record // as stored; zero when there is none
	Revs     []doc.Rev  // bodies of revisions that are not leaves
	Unstored []doc.Rev  // nodes that will have no body
	Contents []keyspace.ContentKey
	Marked   []keyspace.ContentKey // contents in use that are still noted as uploads
}

// Empty reports whether there is nothing to take.
func (g *Garbage) Empty() bool {
	return len(g.Revs) == 0 && len(g.Unstored) == 0 && len(g.Contents) == 0 && len(g.Marked) == 0
}

// Find looks at one document. uploads are the contents that are on their way into the store.
func Find(r pebble.Reader, id string, uploads *uploads.Set) (g Garbage, err error) {
	rec, ok, err := records.Get(r, id)
	if err != nil {
		return g, err
	}
	if ok {
		g.Old = rec
	}
	leaf := map[doc.Rev]bool{}
	for _, n := range rec.Tree.Nodes() {
		_, isLeaf, _ := rec.Tree.Find(n.Rev)
		leaf[n.Rev] = isLeaf
		if n.Stored && !isLeaf {
			g.Unstored = append(g.Unstored, n.Rev)
		}
	}
	used := map[keyspace.ContentKey]bool{}
	lo, hi := keyspace.OfDoc(keyspace.Bodies, id), keyspace.OfDocEnd(keyspace.Bodies, id)
	err = records.Each(r, lo, hi, func(key, value []byte) error {
		_, rev, ok := keyspace.CutBody(key)
		if !ok {
			return format.Corrupt("body key")
		}
		if !leaf[rev] {
			g.Revs = append(g.Revs, rev)
			return nil
		}
		return useContents(used, value)
	})
	if err == nil && rec.Inline != nil {
		err = useContents(used, rec.Inline)
	}
	if err != nil {
		return g, fmt.Errorf("document %q: %w", id, err)
	}
	return g, findContents(r, id, uploads, used, &g)
}

// useContents notes the contents that an encoded revision refers to.
func useContents(used map[keyspace.ContentKey]bool, encoded []byte) error {
	v, err := doc.DecodeRevision(encoded)
	if err != nil {
		return err
	}
	for i := range v.Atts {
		used[v.Atts[i].Key] = true
	}
	return nil
}

// findContents adds the contents of a document that are neither used nor on
// their way to be. One that is both came twice; it is on no way any more.
func findContents(r pebble.Reader, id string, uploads *uploads.Set, used map[keyspace.ContentKey]bool, g *Garbage) error {
	it, err := r.NewIter(&pebble.IterOptions{
		LowerBound: keyspace.OfDoc(keyspace.Attachments, id),
		UpperBound: keyspace.OfDocEnd(keyspace.Attachments, id),
	})
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	for ok := it.First(); ok; {
		_, key, _, whole := keyspace.CutChunk(it.Key())
		if !whole {
			return errors.Join(format.Corrupt("attachment key"), it.Close())
		}
		switch upload := uploads.Has(keyspace.Upload(id, key)); {
		case used[key] && upload:
			g.Marked = append(g.Marked, key)
		case !used[key] && !upload:
			g.Contents = append(g.Contents, key)
		}
		ok = it.SeekGE(keyspace.ContentEnd(id, key))
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	return nil
}
