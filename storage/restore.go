package storage

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/bulkload"
	"divan/storage/fault"
	"divan/storage/format"
	"divan/storage/instance"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// Restoring brings the tables of dumps together in an instance of their own, in a directory that
// is gone after Close or a crash, and fills an empty store from there. It belongs to one goroutine.
type Restoring struct {
	s      *Store
	inst   *instance.Instance
	remove func() error // the directory
	tables int
}

// Restore begins to restore the store, which is empty. It pins the store until Close.
func (s *Store) Restore() (*Restoring, error) {
	if err := s.mayWrite(false); err != nil {
		return nil, err
	}
	if s.states.applied().batch > 0 {
		return nil, errors.New("restore a store: it is not empty")
	}
	dir, remove, err := s.engine.staging.scratch()
	if err != nil {
		return nil, instance.DiskError("restore store", err)
	}
	r := &Restoring{s: s, remove: remove, inst: s.env.shared.New(dir, s.log, false)}
	err = s.env.markFormat(dir)
	if err == nil {
		err = r.inst.Open(restoringKind(), func(*pebble.DB) error { return nil })
	}
	if err != nil {
		return nil, errors.Join(instance.DiskError("restore store", err), r.inst.Close(), remove())
	}
	s.cache.pin(&s.handle)
	return r, nil
}

// restoringKind is without a log: a crash ends the work.
func restoringKind() instance.Kind {
	k := storeKind()
	k.Log, k.Filters, k.Derived = false, false, true
	return k
}

// Close removes what was brought together.
func (r *Restoring) Close() error {
	err := errors.Join(r.inst.Close(), r.remove())
	r.s.cache.release(&r.s.handle)
	return err
}

// Add adds a table of a dump, behind those before it. It is read to its end before anything of it
// counts, so its reader may have the last word on it. After an error the Restoring is of no use.
func (r *Restoring) Add(table io.Reader) error {
	path := r.s.env.o.FS.PathJoin(r.inst.Dir, fmt.Sprint(r.tables, uploadSuffix))
	r.tables++
	if err := r.write(path, table); err != nil {
		return err
	}
	err := r.ingest(path)
	switch {
	case err == nil:
		return r.inst.Err()
	case pebble.IsCorruptionError(err):
		return fault.Wrap(fault.Corruption, "A table does not open.", err)
	}
	return instance.DiskError("restore store", err)
}

// ingest makes a table part of the instance.
func (r *Restoring) ingest(path string) error {
	before, _, err := r.Content()
	if err != nil {
		return err
	}
	ctx := context.Background() //nolint:forbidigo // only traced; an ingestion cannot be given up half way
	if before != (Counters{}) { // a base is there
		if err := bulkload.Replace(ctx, r.inst.DB(), path, r.s.env.o.FS, r.inst.ReaderOptions(restoringKind())); err != nil {
			return err
		}
	}
	if err := r.inst.DB().Ingest(ctx, []string{path}); err != nil {
		return err
	}
	return r.follows(before)
}

// follows checks, once a dump is whole, that it goes on from the one before.
func (r *Restoring) follows(before Counters) error {
	now, _, err := r.Content()
	if err != nil || now == before {
		return err
	}
	text, _, err := records.Value(r.inst.DB(), keyspace.AppendMeta(nil, keyspace.MetaSince))
	var since format.Position
	if err == nil && text != nil {
		since, err = format.DecodePosition(text)
	}
	if err == nil && since != (format.Position{Seq: before.Seq, PurgeSeq: before.PurgeSeq}) {
		err = format.Corrupt("backup: a step is not of the one before it")
	}
	return err
}

// write makes a file of a table.
func (r *Restoring) write(path string, table io.Reader) error {
	f, err := r.s.env.o.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return instance.DiskError("restore store", err)
	}
	w := &spaceWriter{f: f, s: r.s}
	_, err = io.Copy(w, table)
	err = errors.Join(err, f.Sync(), f.Close())
	if w.err != nil {
		return instance.DiskError("restore store", err)
	}
	return err
}

// spaceWriter writes to a file while there is space on the disk.
type spaceWriter struct {
	f   vfs.File
	s   *Store
	err error // of the disk
}

// Write implements io.Writer.
func (w *spaceWriter) Write(b []byte) (n int, err error) {
	if w.err = errors.Join(w.s.Dropped(), w.s.Err(), w.s.env.space.Err()); w.err == nil {
		n, w.err = w.f.Write(b)
	}
	return n, w.err
}

// Content returns the totals of what the tables hold, and the stores that the dumped one
// continued.
func (r *Restoring) Content() (Counters, []Origin, error) {
	_, c, err := records.Counters(r.inst.DB())
	if err != nil {
		return Counters{}, nil, err
	}
	origins, err := records.Origins(r.inst.DB())
	return c, origins, err
}

// Fill writes tables with what belongs into the store, local documents as well: see Store.Fill.
// When Belongs is nil everything does, and it is held against the totals.
func (r *Restoring) Fill(o FillOptions) (*Filling, error) {
	want, _, err := r.Content()
	if err != nil {
		return nil, err
	}
	all := o.Belongs == nil
	if all {
		o.Belongs = func(string) bool { return true }
	}
	alive := func() error { return errors.Join(r.s.Dropped(), r.inst.Err()) }
	f, err := r.s.fill(bulkload.Options{Source: r.inst.DB(), Counters: want, Locals: true}, o, alive)
	if err == nil && all && f.filled.Counters != want {
		return nil, errors.Join(format.Corrupt("backup: it has other totals than its documents"), f.Discard())
	}
	return f, err
}
