package bulkload

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/doc"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// replaceBytes is the size of a batch of Replace.
const replaceBytes = 256 << 10

// Replace prepares an instance that holds the tables of dumps for one more of [Dump.Since]: it
// deletes the entries of the sequence that documents of the table have there. Only what wrote the
// instance knows them. options are those of the instance.
func Replace(ctx context.Context, db *pebble.DB, path string, fs vfs.FS, options sstable.ReaderOptions) (err error) {
	f, err := fs.Open(path)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	table, err := sstable.NewReader(ctx, readable, options)
	if err != nil {
		return err // the file is closed
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	it, err := table.NewIter(sstable.NoTransforms, keyspace.Start(keyspace.Docs), keyspace.End(keyspace.Docs), sstable.AssertNoBlobHandles)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	batch := db.NewBatch()
	defer func() { err = errors.Join(err, batch.Close()) }()
	for kv := it.First(); kv != nil; kv = it.Next() {
		if err := replace(batch, db, string(keyspace.Tail(kv.K.UserKey))); err != nil {
			return err
		}
		if batch.Len() >= replaceBytes {
			if err := batch.Commit(pebble.NoSync); err != nil {
				return err
			}
			batch.Reset()
		}
	}
	if err := it.Error(); err != nil {
		return err
	}
	return batch.Commit(pebble.NoSync)
}

// replace deletes the entry of the sequence that a document has.
func replace(batch *pebble.Batch, db *pebble.DB, id string) error {
	var h doc.Head
	found, err := records.Head(db, id, &h)
	if err != nil || !found {
		return err
	}
	return batch.Delete(keyspace.AppendSeq(nil, h.Seq), nil)
}
