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
	"divan/storage/uploads"
)

// storeKind returns the kind of the instances of shard copies.
func storeKind() instance.Kind {
	return instance.Kind{Merger: format.SumsMerger(), TableEnd: keyspace.TableEnd, Log: true, Filters: true}
}

// openPebble opens the store's own instance and loads its state.
func (s *Store) openPebble() error {
	v := s.small.view.Load()
	if err := s.inst.Open(storeKind(), func(db *pebble.DB) error { return s.load(db, v) }); err != nil {
		return err
	}
	if s.small.maybe.Load() && !s.inst.ReadOnly() {
		s.small.leave(s.states.applied().batch > 0)
	}
	s.cache.countOpen(&s.handle, 0)
	return nil
}

// load takes over what the store had among the small ones, reads its state, and drops uploads
// that a crash left without a document. Their files go from a full disk too: that gives space back.
func (s *Store) load(db *pebble.DB, v *small.View) error {
	if err := removeUploadFiles(&s.handle); err != nil {
		if !s.inst.ReadOnly() {
			return err
		}
		s.log.Warn("files of uploads stay on a full disk", zap.Error(err))
	}
	if !s.inst.ReadOnly() {
		var err error
		if s.swept, err = sweepUploads(db, s.uploads); err != nil {
			return err
		}
		if s.swept > 0 {
			s.log.Info("uploads without a document removed", zap.Int("uploads", s.swept))
		}
	}
	r, err := s.small.bring(db, v, s.attached)
	if err != nil {
		return err
	}
	return s.states.load(r)
}

// removeUploadFiles removes tables that did not become part of the store before a crash.
// The store is not in use yet.
func removeUploadFiles(s *handle) error {
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

// sweepUploads deletes what was uploaded but not referred to before a crash, but for known uploads.
// The store is not in use yet.
func sweepUploads(db *pebble.DB, known *uploads.Set) (swept int, err error) {
	b := db.NewBatch()
	var u garbage.Uses // of the document of the last upload
	err = records.Each(db, keyspace.Start(keyspace.Uploads), keyspace.End(keyspace.Uploads), func(k, _ []byte) error {
		id, key, ok := keyspace.CutUpload(k)
		if !ok {
			return format.Corrupt("upload key")
		}
		if known.Has(k) {
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
		swept++
		lo, hi := keyspace.AppendContent(nil, u.ID, key), keyspace.ContentEnd(u.ID, key)
		return errors.Join(b.Delete(k, nil), b.DeleteRange(lo, hi, nil))
	})
	if err == nil && !b.Empty() {
		// Not synced: what is lost again is swept again.
		err = b.Commit(pebble.NoSync)
	}
	if err = errors.Join(err, b.Close()); err != nil {
		return 0, fmt.Errorf("sweep uploads: %w", err)
	}
	return swept, nil
}
