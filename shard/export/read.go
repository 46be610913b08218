package export

import (
	"context"
	"errors"
	"fmt"
	"io"

	"divan/storage"
	"divan/storage/archive"
)

// ReadOptions say what is restored. All are required but Belongs and Pace.
type ReadOptions struct {
	Target *storage.Store // empty; takes nothing else meanwhile
	Shard  *archive.Shard
	// Open returns the plain bytes of a pack. It is called for each entry.
	Open func(pack archive.Name) (io.ReaderAt, error)
	// Belongs reports whether a document belongs into the target; nil: all do. Then the documents
	// are held against the totals of the shard.
	Belongs func(id string) bool
	Pace    Pace
}

// Read brings together what a shard of a backup holds, base, increments and local documents, and
// returns the tables that the target is filled with: its single writer calls Filling.Ingest. Until
// then the target is empty, and after an error it stays so. It continues the copy that led in the
// backup, under the same sequences.
func Read(ctx context.Context, o ReadOptions) (_ *storage.Filling, err error) {
	into, err := o.Target.Restore()
	if err != nil {
		return nil, err
	}
	r := &reader{ReadOptions: &o, ctx: ctx, into: into}
	filling, err := r.read() //nolint:contextcheck // an ingestion cannot be given up half way
	if e2 := into.Close(); e2 != nil && err == nil {
		return nil, errors.Join(e2, filling.Discard())
	}
	return filling, err
}

// reader is one Read.
type reader struct {
	*ReadOptions
	ctx  context.Context // of the Read
	into *storage.Restoring
}

func (r *reader) read() (*storage.Filling, error) {
	for i := range r.Shard.Chain {
		if err := r.readStep(&r.Shard.Chain[i]); err != nil {
			return nil, fmt.Errorf("restore step %d: %w", i, err)
		}
	}
	totals, origins, err := r.into.Content()
	if err != nil {
		return nil, err
	}
	if totals != r.Shard.Totals {
		return nil, damaged("the totals of a shard are not those of its last step")
	}
	for i := range r.Shard.Locals {
		if err := r.add(&r.Shard.Locals[i], archive.KindLocals); err != nil {
			return nil, fmt.Errorf("restore local documents: %w", err)
		}
	}
	source := storage.Origin{UUID: r.Shard.Copy, Upto: totals.Seq}
	return r.into.Fill(storage.FillOptions{
		Origins: append([]storage.Origin{source}, origins...), Belongs: r.Belongs,
		Looked: func(_, copied int) error { return r.Pace.wait(r.ctx, copied) },
	})
}

// readStep adds a base or an increment.
func (r *reader) readStep(s *archive.Step) error {
	for i := range s.Refs {
		if err := r.add(&s.Refs[i], archive.KindTable); err != nil {
			return err
		}
	}
	c, _, err := r.into.Content()
	if err == nil && (c.Seq != s.Upto.Seq || c.PurgeSeq != s.Upto.PurgeSeq) {
		err = damaged("a step does not end where it should")
	}
	return err
}

// add adds a table, which is read to its end, where its sum is compared, before it counts.
func (r *reader) add(ref *archive.Ref, kind archive.Kind) error {
	if ref.Kind != kind {
		return fmt.Errorf("an entry of kind %d is not known here", ref.Kind)
	}
	pack, err := r.Open(ref.Pack.Name)
	if err != nil {
		return err
	}
	return r.into.Add(&pacedReader{r: r, from: ref.Reader(pack)})
}

// pacedReader reads an entry.
type pacedReader struct {
	r    *reader
	from io.Reader
}

// Read implements io.Reader.
func (p *pacedReader) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	if err == nil {
		err = p.r.Pace.wait(p.r.ctx, n)
	}
	return n, err
}
