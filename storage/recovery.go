package storage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"divan/storage/format"
	"divan/storage/instance"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// storeKind is what the instances of shard copies are.
func storeKind() instance.Kind {
	return instance.Kind{Merger: format.SumsMerger(), TableEnd: keyspace.TableEnd, Log: true, Filters: true}
}

// openPebble opens the store's own instance and loads its state.
func (s *Store) openPebble() error {
	err := s.inst.Open(storeKind(), s.load)
	if err == nil {
		s.engine.countOpen(&s.handle)
	}
	return err
}

// load reads counters and top-level aggregates, and drops uploads that a crash
// left without a document. Their files go from a full disk too: that gives room back.
func (s *Store) load(db *pebble.DB) error {
	if err := s.removeUploadFiles(); err != nil {
		if !s.inst.ReadOnly() {
			return err
		}
		s.log.Warn("files of uploads stay on a full disk", zap.Error(err))
	}
	if !s.inst.ReadOnly() {
		if err := s.sweepUploads(db); err != nil {
			return err
		}
	}
	v := &batchState{docs: newTopBlocks(), seqs: newTopBlocks()}
	var err error
	if v.batch, v.counters, err = readCounters(db); err != nil {
		return err
	}
	if v.origins, err = readOrigins(db); err != nil {
		return err
	}
	if v.last, err = records.LastID(db); err != nil {
		return err
	}
	if v.docs, err = loadTopBlocks(db, keyspace.AggDocs); err != nil {
		return err
	}
	if v.seqs, err = loadTopBlocks(db, keyspace.AggSeqs); err != nil {
		return err
	}
	s.states.Store(&statePair{prev: v})
	return nil
}

// removeUploadFiles removes tables that did not become part of the store before a crash.
// The store is not in use yet.
func (s *Store) removeUploadFiles() error {
	files, err := s.engine.o.FS.List(s.inst.Dir)
	if err != nil {
		return instance.DiskError("list store", err)
	}
	var errs []error
	for _, name := range files {
		if strings.HasSuffix(name, uploadSuffix) {
			errs = append(errs, s.engine.o.FS.Remove(s.engine.o.FS.PathJoin(s.inst.Dir, name)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove files of uploads: %w", err)
	}
	return nil
}

// sweepUploads deletes what was uploaded but not referred to before a crash.
// The store is not in use yet.
func (s *Store) sweepUploads(db *pebble.DB) error {
	var errs []error
	b := db.NewBatch()
	var u uses // of the document of the last upload
	errs = append(errs, each(db, keyspace.Start(keyspace.Uploads), keyspace.End(keyspace.Uploads), func(k, _ []byte) error {
		id, key, ok := keyspace.CutUpload(k)
		if !ok {
			return format.Corrupt("upload key")
		}
		if s.uploads.Has(k) {
			return nil
		}
		if u.keys == nil || u.id != string(id) {
			var err error
			if u, err = readUses(db, string(id)); err != nil {
				return err
			}
		}
		if u.has(key) {
			return b.Delete(k, nil)
		}
		s.swept++
		lo, hi := keyspace.AppendContent(nil, u.id, key), keyspace.ContentEnd(u.id, key)
		return errors.Join(b.Delete(k, nil), b.DeleteRange(lo, hi, nil))
	}))
	err := errors.Join(errs...)
	if err == nil && !b.Empty() {
		// Not synced: what is lost again is swept again.
		err = b.Commit(pebble.NoSync)
	}
	if err == nil && s.swept > 0 {
		s.log.Info("uploads without a document removed", zap.Int("uploads", s.swept))
	}
	if err = errors.Join(err, b.Close()); err != nil {
		return fmt.Errorf("sweep uploads: %w", err)
	}
	return nil
}
