package storage

import (
	"context"
	"errors"
	"os"

	"github.com/cockroachdb/pebble/v2/sstable"

	"divan/storage/bulkload"
	"divan/storage/fault"
	"divan/storage/instance"
)

// FillOptions say what an empty store is filled with. All are required.
type FillOptions struct {
	Origins []Origin // that the store has then, the newest first
	// Belongs reports whether a document belongs into the store.
	Belongs func(id string) bool
	// Looked hears now and then how many documents were looked at since, and how many bytes
	// copied. Its error ends the work.
	Looked func(docs, copied int) error
}

// Filling is the content that an empty store is about to be filled with: tables beside
// it, durable. They are removed by Discard, and after a crash when the store is next
// opened.
type Filling struct {
	s      *Store
	filled *bulkload.Filled
	next   *batchState
}

// Fill writes tables with what a durable snapshot of another store holds of documents that belong
// into the store, and of purges that name such. The store is pinned, has no sequence yet and takes
// no batch until Filling.Ingest. Local documents are not copied.
func (s *Store) Fill(src *Snapshot, o FillOptions) (*Filling, error) {
	alive := func() error { return errors.Join(s.Dropped(), src.s.Dropped(), src.s.Err()) }
	return s.fill(bulkload.Options{Source: src.snap, Counters: src.state.counters}, o, alive)
}

// fill fills the store from the source of w. alive returns why the work ends.
func (s *Store) fill(w bulkload.Options, o FillOptions, alive func() error) (*Filling, error) {
	if _, err := s.writable(false); err != nil { // the tables are written for the open instance
		return nil, err
	}
	prev := s.states.applied()
	origins := o.Origins[:min(len(o.Origins), maxOrigins)]
	w.Origins, w.Batch, w.Partitioned, w.Belongs, w.Files = origins, prev.batch+1, s.id.Partitioned, o.Belongs, fillFiles{s}
	w.Looked = func(docs, copied int) error {
		if err := errors.Join(alive(), s.Err(), s.env.space.Err()); err != nil {
			return err
		}
		return o.Looked(docs, copied)
	}
	filled, err := bulkload.Write(w)
	if err != nil {
		return nil, instance.DiskError("fill store", err)
	}
	return &Filling{s: s, filled: filled, next: &batchState{
		batch: prev.batch + 1, counters: filled.Counters, last: filled.Last, origins: origins,
		docs: topBlocksOf(filled.Docs), seqs: topBlocksOf(filled.Seqs),
	}}, nil
}

// topBlocksOf makes the top level of blocks in their order.
func topBlocksOf(all []bulkload.Block) *topBlocks {
	e := newTopBlocks().edit()
	for i := range all {
		e.insert(all[i].Border)
		e.add(all[i].Border, all[i].Sums)
	}
	return e.topBlocks
}

// Design reports whether a design document is among what the store is filled with.
func (f *Filling) Design() bool { return f.filled.Design }

// Ingest makes all tables part of the store at once, in the place of a batch: a crash
// leaves it as it was or filled. The store's single writer calls it, between batches.
// It is durable on return.
func (f *Filling) Ingest() error {
	s := f.s
	prev := s.states.applied()
	if prev.batch+1 != f.next.batch {
		return fault.New(fault.Unavailable, "The copy takes changes of its own while it is cloned.")
	}
	if err := s.Err(); err != nil {
		return err
	}
	s.states.set(prev, f.next)
	//nolint:forbidigo // only traced; an ingestion cannot be given up half way
	if err := s.inst.DB().Ingest(context.Background(), f.filled.Paths()); err != nil {
		s.states.set(prev, nil)
		return instance.DiskError("fill store", err)
	}
	s.states.set(f.next, nil)
	return s.Err() // set when the manifest could not be written
}

// Discard removes the tables that are not part of the store.
func (f *Filling) Discard() error { return f.filled.Discard() }

// fillFiles makes the files of tables.
type fillFiles struct{ s *Store }

// Create implements bulkload.Files.
func (f fillFiles) Create() (path string, w *sstable.Writer, err error) {
	return createUpload(&f.s.handle, f.s.inst.WriterOptions(storeKind()))
}

// Remove implements bulkload.Files.
func (f fillFiles) Remove(path string) error {
	if err := f.s.env.o.FS.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
