package export

import (
	"context"
	"errors"
	"fmt"

	"divan/storage"
	"divan/storage/archive"
	"divan/storage/bulkload"
	"divan/storage/format"
)

// WriteOptions say what is written. All are required but Since and Pace.
type WriteOptions struct {
	Source   *storage.Snapshot // durable
	Pack     *archive.PackWriter
	Database archive.UUID
	Range    archive.Range // of the ids in the source
	// Since is where the last step has ended, of a copy that this one is; zero: a base is written.
	// What changed later makes an increment.
	Since archive.Position
	Pace  Pace
}

// Written describes a store in a pack. Totals are those of an archive.Shard; the entries become
// references when the pack is whole.
type Written struct {
	Upto   archive.Position
	Totals storage.Counters
	Step   []archive.Entry // tables, in their order
	Locals []archive.Entry
}

// Write writes a base or an increment, and all local documents. Of a base it reads the snapshot
// once, keyspace by keyspace, and holds no more than the index of a table in memory; of an
// increment also some MB that it sorts. After an error the pack is of no use.
//
// archive.NewBase tells when an increment cannot be written.
func Write(ctx context.Context, o WriteOptions) (*Written, error) {
	totals := o.Source.Counters()
	out := &Written{Totals: totals, Upto: archive.Position{Copy: o.Source.Store().UUID(), Seq: totals.Seq, PurgeSeq: totals.PurgeSeq}}
	tables := &sink{pack: o.Pack, label: archive.Label{Kind: archive.KindTable, Database: o.Database, Range: o.Range, Seq: totals.Seq}}
	if err := o.documents(o.dump(ctx, tables)); err != nil {
		return nil, fmt.Errorf("export documents: %w", err)
	}
	locals := &sink{pack: o.Pack, label: tables.label}
	locals.label.Kind = archive.KindLocals
	if err := o.dump(ctx, locals).Locals(); err != nil {
		return nil, fmt.Errorf("export local documents: %w", err)
	}
	out.Step, out.Locals = tables.entries, locals.entries
	return out, nil
}

func (o *WriteOptions) documents(d *bulkload.Dump) error {
	switch o.Since.Copy {
	case archive.UUID{}:
		return d.All()
	case o.Source.Store().UUID():
		return d.Since(format.Position{Seq: o.Since.Seq, PurgeSeq: o.Since.PurgeSeq})
	}
	return errors.New("the last step is of another copy")
}

func (o *WriteOptions) dump(ctx context.Context, s *sink) *bulkload.Dump {
	return storage.NewDump(o.Source, storage.DumpOptions{Sink: s, Looked: func(bytes int) error { return o.Pace.wait(ctx, bytes) }})
}

// sink makes an entry of each table. It implements bulkload.Sink.
type sink struct {
	pack    *archive.PackWriter
	label   archive.Label
	entries []archive.Entry
}

// Begin implements bulkload.Sink.
func (s *sink) Begin() error { return s.pack.Begin(s.label) }

// Write implements io.Writer.
func (s *sink) Write(b []byte) (int, error) { return s.pack.Write(b) }

// End implements bulkload.Sink.
func (s *sink) End() error {
	e, err := s.pack.End()
	if err == nil {
		s.entries = append(s.entries, e)
	}
	return err
}
