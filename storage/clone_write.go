package storage

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/format"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// found turns what Get returns into whether there is such a key.
func found(closer io.Closer, err error) (bool, error) {
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read: %w", err)
	}
	return true, closer.Close()
}

func corruptKey(kind, id string) error {
	return fmt.Errorf("document %q: %w", id, format.Corrupt(kind+" key"))
}

// Transfer puts documents into a batch as another store holds them, and what that one knows of
// where its documents came from.
type Transfer struct{ b *Batch }

// TransferInto returns the transfer whose changes are a part of a batch.
func TransferInto(b *Batch) Transfer { return Transfer{b} }

// Replace replaces all that this store holds of documents by what another store holds
// of them, under the sequences that they have there; contents of attachments that are
// not referred to any more go with the next compaction. No document comes twice in a
// batch, and no other document has one of the sequences. Contents that are not in
// Kept are the caller's to put. fresh says that the store has none of the documents,
// which saves looking.
func (t Transfer) Replace(docs []StoredDoc, fresh bool) {
	if fresh {
		for i := range docs {
			t.b.note(t.replace(&docs[i], nil))
		}
		return
	}
	order := make([]int, len(docs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int { return strings.Compare(docs[x].ID, docs[y].ID) })
	ids := make([]string, len(docs))
	for k, i := range order {
		ids[k] = docs[i].ID
	}
	t.fronts(ids, func(k int, old *doc.Head) error { return t.replace(&docs[order[k]], old) })
}

// Erase takes documents out, whose ids are in ascending order, as if they had never
// been there.
func (t Transfer) Erase(ids []string) {
	t.fronts(ids, func(i int, old *doc.Head) error {
		if old == nil {
			return nil
		}
		b := t.b
		b.key = keyspace.AppendDoc(b.key[:0], ids[i])
		b.delete()
		b.key = keyspace.AppendHead(b.key[:0], ids[i])
		b.delete()
		b.dropSeq(old.Seq)
		b.tally.countSums(ids[i], format.HeadSums(old).Neg(), false)
		return errors.Join(t.dropBlocks(ids[i], old), t.dropBodies(ids[i], nil))
	})
}

// fronts calls fn for each document with the front of its record as it is stored
// now, nil when there is none.
func (t Transfer) fronts(ids []string, fn func(i int, old *doc.Head) error) {
	if t.b.err != nil {
		return
	}
	var h doc.Head
	t.b.note(t.b.s.read.Fronts(ids, func(i int, front []byte) error {
		if front == nil {
			return fn(i, nil)
		}
		if err := doc.DecodeHead(front, &h); err != nil {
			return fmt.Errorf("document %q: %w", ids[i], err)
		}
		return fn(i, &h)
	}))
}

func (t Transfer) replace(d *StoredDoc, old *doc.Head) error {
	var h doc.Head
	if err := doc.DecodeHead(d.Record, &h); err != nil {
		return fmt.Errorf("document %q: %w", d.ID, err)
	}
	if doc.HasBlocks(d.Record) {
		return fmt.Errorf("document %q: %w", d.ID, format.Corrupt("record: a part of its history is elsewhere"))
	}
	b := t.b
	b.key = keyspace.AppendDoc(b.key[:0], d.ID)
	b.val = append(b.val[:0], d.Record...)
	b.set()
	next := doc.Record{ID: d.ID, Seq: h.Seq, Winner: h.Winner, Deleted: h.Deleted, External: h.External, Active: h.Active}
	b.key = keyspace.AppendHead(b.key[:0], d.ID)
	b.val = next.AppendHead(b.val[:0])
	b.set()
	b.key = keyspace.AppendSeq(b.key[:0], h.Seq)
	b.val = append(b.val[:0], d.Change...)
	b.set()
	sums := format.HeadSums(&h)
	if old != nil {
		sums.Add(format.HeadSums(old).Neg())
		if old.Seq != h.Seq {
			b.dropSeq(old.Seq)
		}
		if err := errors.Join(t.dropBlocks(d.ID, old), t.dropBodies(d.ID, d.Bodies)); err != nil {
			return err
		}
	}
	b.tally.countSums(d.ID, sums, old == nil)
	b.tally.put(d.ID, h.Seq, old != nil && old.Seq == h.Seq)
	for i := range d.Bodies {
		b.PutRevisionText(d.ID, d.Bodies[i].Rev, d.Bodies[i].Text)
	}
	return t.refer(d, h.Inline)
}

// dropBodies deletes the revisions of a document from the bodies keyspace, but for
// those that are going to be put.
func (t Transfer) dropBodies(id string, but []StoredRevision) error {
	return eachBody(t.b.s.read.now(), id, func(rev doc.Rev, _ []byte) error {
		if !slices.ContainsFunc(but, func(r StoredRevision) bool { return r.Rev == rev }) {
			t.b.DeleteRevision(id, rev)
		}
		return nil
	})
}

// refer claims the contents that a document refers to. Those that the store was seen
// to have may have gone since with a compaction.
func (t Transfer) refer(d *StoredDoc, inline []byte) error {
	for _, key := range d.Kept {
		if ok, err := t.b.s.read.HasContent(d.ID, key); err != nil || !ok {
			return errors.Join(err, fault.New(fault.Unavailable, "The content of an attachment has been dropped meanwhile."))
		}
	}
	if !t.b.s.uploads.Any() {
		return nil
	}
	texts := [][]byte{inline}
	for i := range d.Bodies {
		texts = append(texts, d.Bodies[i].Text)
	}
	for _, text := range texts {
		if len(text) == 0 {
			continue
		}
		v, err := doc.DecodeRevision(text)
		if err != nil {
			return fmt.Errorf("document %q: %w", d.ID, err)
		}
		t.b.claim(d.ID, v.Atts)
	}
	return nil
}

// dropBlocks deletes all blocks of a document that is stored with that head.
func (t Transfer) dropBlocks(id string, old *doc.Head) error {
	if !doc.MayHaveBlocks(old.Winner) {
		return nil
	}
	return records.Each(t.b.s.read.now(), keyspace.OfDoc(keyspace.History, id), keyspace.OfDocEnd(keyspace.History, id), func(key, _ []byte) error {
		_, number, ok := keyspace.CutBlock(key)
		if !ok {
			return corruptKey("history", id)
		}
		t.b.blocksOf(id).DeleteBlock(number)
		return nil
	})
}

// AdvancePurges moves the purge sequence to seq without an entry there. The entries up
// to trimmed are gone where the others came from, before they came; those that are
// here go as well.
func (t Transfer) AdvancePurges(seq, trimmed uint64) {
	b := t.b
	if b.err != nil {
		return
	}
	c := &b.tally.counters
	c.PurgeSeq = max(c.PurgeSeq, seq)
	if trimmed > max(b.s.Counters().PurgeTrimmed, c.PurgeTrimmed) {
		c.PurgeTrimmed = trimmed
		b.note(b.b.DeleteRange(keyspace.AppendPurge(nil, 0), keyspace.AppendPurge(nil, trimmed+1), nil))
	}
}

// maxOrigins is how many stores are remembered that a store continues: so many
// splits ago a client may have read a sequence that it goes on from.
const maxOrigins = 16

// SetOrigins notes the stores that this one continues, the newest first.
func (t Transfer) SetOrigins(origins []Origin) {
	b := t.b
	b.origins = slices.Clone(origins[:min(len(origins), maxOrigins)])
	b.key = keyspace.AppendMeta(b.key[:0], keyspace.MetaOrigins)
	b.val = format.AppendOrigins(b.val[:0], b.origins)
	b.set()
}
