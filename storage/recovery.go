package storage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"divan/storage/format"
	"divan/storage/garbage"
	"divan/storage/instance"
	"divan/storage/keyspace"
	"divan/storage/records"
	"divan/storage/small"
)

// storeKind returns the kind of the instances of shard copies.
func storeKind() instance.Kind {
	return instance.Kind{Merger: format.SumsMerger(), TableEnd: keyspace.TableEnd, Log: true, Filters: true}
}

// openPebble opens the store's own instance and loads its state.
func (s *Store) openPebble() error {
	v := s.small.Load()
	if err := s.inst.Open(storeKind(), func(db *pebble.DB) error { return s.load(db, v) }); err != nil {
		return err
	}
	if s.mayBeSmall.Load() && !s.inst.ReadOnly() {
		s.leaveSmall()
	}
	s.cache.countOpen(&s.handle, 0)
	return nil
}

// load takes over what the store had among the small ones, reads its state, and drops uploads
// that a crash left without a document. Their files go from a full disk too: that gives room back.
func (s *Store) load(db *pebble.DB, v *small.View) error {
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
	r, err := s.bringSmall(db, v)
	if err != nil {
		return err
	}
	return s.loadState(r)
}

// loadState reads counters and top-level aggregates.
func (s *Store) loadState(r pebble.Reader) error {
	v := &batchState{docs: newTopBlocks(), seqs: newTopBlocks()}
	var err error
	if v.batch, v.counters, err = records.Counters(r); err != nil {
		return err
	}
	if v.origins, err = records.Origins(r); err != nil {
		return err
	}
	if v.last, err = records.LastID(r); err != nil {
		return err
	}
	if v.docs, err = loadTopBlocks(r, keyspace.AggDocs); err != nil {
		return err
	}
	if v.seqs, err = loadTopBlocks(r, keyspace.AggSeqs); err != nil {
		return err
	}
	s.states.Store(&statePair{prev: v})
	return nil
}

// removeUploadFiles removes tables that did not become part of the store before a crash.
// The store is not in use yet.
func (s *Store) removeUploadFiles() error {
	files, err := s.env.o.FS.List(s.inst.Dir)
	if err != nil {
		return instance.DiskError("list store", err)
	}
	var errs []error
	for _, name := range files {
		if strings.HasSuffix(name, uploadSuffix) {
			errs = append(errs, s.env.o.FS.Remove(s.env.o.FS.PathJoin(s.inst.Dir, name)))
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
	var u garbage.Uses // of the document of the last upload
	errs = append(errs, records.Each(db, keyspace.Start(keyspace.Uploads), keyspace.End(keyspace.Uploads), func(k, _ []byte) error {
		id, key, ok := keyspace.CutUpload(k)
		if !ok {
			return format.Corrupt("upload key")
		}
		if s.uploads.Has(k) {
			return nil
		}
		if u.ID == "" || u.ID != string(id) {
			var err error
			if u, err = garbage.ReadUses(db, string(id)); err != nil {
				return err
			}
		}
		if u.Has(key) {
			return b.Delete(k, nil)
		}
		s.swept++
		lo, hi := keyspace.AppendContent(nil, u.ID, key), keyspace.ContentEnd(u.ID, key)
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
