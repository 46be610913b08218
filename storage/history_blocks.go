package storage

import (
	"divan/storage/doc"
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
