package storage

import (
	"divan/storage/doc"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// settle decides which revisions of next lie in blocks, and writes those that change.
func (b *Batch) settle(old, next *doc.Record) {
	if next.Below == (doc.Below{}) && (old == nil || old.Below == (doc.Below{})) && !next.NeedsBlocks() {
		return // the usual case
	}
	next.Settle(old, b.blocksOf(next.ID))
}

func (b *Batch) blocksOf(id string) records.BlockWriter {
	return records.BlockWriter{ID: id, Batch: b.b, Note: b.note}
}

// dropBlocks deletes all blocks of a document that is stored with that head.
func (b *Batch) dropBlocks(id string, old *doc.Head) error {
	if !doc.MayHaveBlocks(old.Winner) {
		return nil
	}
	return records.Each(b.s.read.now(), keyspace.OfDoc(keyspace.History, id), keyspace.OfDocEnd(keyspace.History, id), func(key, _ []byte) error {
		_, number, ok := keyspace.CutBlock(key)
		if !ok {
			return corruptKey("history", id)
		}
		b.blocksOf(id).DeleteBlock(number)
		return nil
	})
}
