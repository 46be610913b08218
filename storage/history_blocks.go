package storage

import (
	"go.uber.org/zap"

	"divan/storage/doc"
	"divan/storage/identity"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// Old programs do not know of blocks of histories and would take a record that has some for
// damaged. So a store gets a marker of another format, which they refuse to open, before its
// first block is written; stores without a long history stay as they are. A store that does
// not say yet which copy it is (formats 1 and 2) has no blocks: it gets its id first.

// settle decides which revisions of next lie in blocks, and writes those that change.
func (b *Batch) settle(old, next *doc.Record) {
	if next.Below == (doc.Below{}) && (old == nil || old.Below == (doc.Below{})) {
		// The usual case. A history may stay whole, as it does where the marker cannot be renamed.
		if !next.NeedsBlocks() || !b.s.allowBlocks() {
			return
		}
	}
	next.Settle(old, b.blocksOf(next.ID))
}

// allowBlocks makes the marker of the store one that tells of blocks, durably; false when it
// cannot have that yet, or when the disk refused once. It is called by the store's writer.
func (s *Store) allowBlocks() bool {
	if s.historyBlocks.Load() {
		return true
	}
	if s.copyID.Load() == 0 || s.blocksRefused {
		return false
	}
	if err := identity.AllowBlocks(s.engine.o.FS, s.inst.Dir, s.name); err != nil {
		s.blocksRefused = true
		s.engine.o.Logger.Warn("Histories of documents stay in their records: the marker of the store cannot be renamed.",
			zap.String("store", s.name), zap.Error(err))
		return false
	}
	s.historyBlocks.Store(true)
	return true
}

func (b *Batch) blocksOf(id string) records.BlockWriter {
	return records.BlockWriter{ID: id, Batch: b.b, Note: b.note}
}

// dropBlocks deletes all blocks of a document.
func (b *Batch) dropBlocks(id string) error {
	if !b.s.historyBlocks.Load() {
		return nil
	}
	return records.Each(b.s.reader(), keyspace.OfDoc(keyspace.History, id), keyspace.OfDocEnd(keyspace.History, id), func(key, _ []byte) error {
		_, number, ok := keyspace.CutBlock(key)
		if !ok {
			return corruptKey("history", id)
		}
		b.blocksOf(id).DeleteBlock(number)
		return nil
	})
}
