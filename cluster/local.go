package cluster

import (
	"bytes"
	"context"
	"strconv"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// LocalGet returns a local document; id begins with "_local/". The error is
// fault.NotFound "missing" when there is none.
func (d *DB) LocalGet(ctx context.Context, id string) (*shard.LocalDoc, error) {
	var got *shard.LocalDoc
	err := d.ask(ctx, d.owner(id), func(ctx context.Context, rep replica, name string) error {
		var err error
		got, err = rep.LocalGet(ctx, name, id)
		return err
	})
	return got, err
}

// LocalPut writes a local document whatever is there, and returns its new
// revision, which counts on from rev (zero: 0-1).
func (d *DB) LocalPut(ctx context.Context, id string, rev doc.Rev, body []byte) (doc.Rev, error) {
	return d.localEdit(ctx, shard.Edit{ID: id, Parent: rev, Body: body})
}

// LocalDelete removes a local document; fault.NotFound "missing" when there is
// none.
func (d *DB) LocalDelete(ctx context.Context, id string) (doc.Rev, error) {
	if _, err := d.LocalGet(ctx, id); err != nil {
		return doc.Rev{}, err
	}
	return d.localEdit(ctx, shard.Edit{ID: id, Deleted: true})
}

func (d *DB) localEdit(ctx context.Context, e shard.Edit) (doc.Rev, error) {
	results, err := d.Update(ctx, UpdateOptions{NewEdits: true}, []shard.Edit{e})
	if err != nil {
		return doc.Rev{}, err
	}
	return results[0].Rev, results[0].Err
}

// localRow is a local document as a row of a listing.
func localRow(l *shard.LocalDoc, includeDoc bool) shard.Row {
	row := shard.Row{ID: l.ID, Rev: doc.Rev{ID: strconv.FormatUint(l.Rev, 10)}}
	if includeDoc {
		row.Doc = &shard.Doc{ID: l.ID, Rev: row.Rev, Body: l.Body}
	}
	return row
}

// localByID looks up one local document for a listing by keys.
func (d *DB) localByID(ctx context.Context, id string, includeDoc bool) (shard.Row, error) {
	l, err := d.LocalGet(ctx, id)
	if fault.Is(err, fault.NotFound) && fault.Reason(err) == "missing" {
		return shard.Row{ID: id, Missing: true}, nil
	}
	if err != nil {
		return shard.Row{}, err
	}
	return localRow(l, includeDoc), nil
}

// listLocal is AllDocs for the local documents in a range. Nobody counts them.
func (d *DB) listLocal(ctx context.Context, q DocsQuery) (*DocRows, error) {
	picked, err := d.covered()
	if err != nil {
		return nil, err
	}
	ids := spaceOf(&DocsQuery{Namespace: LocalDocs}).within(&q)
	req := shard.LocalDocsRequest{
		Lo: ids.lo, Hi: ids.hi, HasHi: ids.bounded, HiExclusive: true, Desc: q.Descending, System: q.System,
	}
	m, err := d.openMerge(picked, q.Descending, func(rep replica, name string) (docsHead, docStream, error) {
		mine := req
		mine.Copy = name
		stream, err := rep.LocalDocs(ctx, mine)
		if err != nil {
			return docsHead{}, nil, err
		}
		return docsHead{}, &localRows{localStream: stream, docs: q.IncludeDocs}, nil
	})
	if err != nil {
		return nil, err
	}
	return &DocRows{Total: -1, Offset: -1, source: m, skip: max(q.Skip, 0), left: q.Limit}, nil
}

// localRows is a listing of local documents as rows like any other.
type localRows struct {
	localStream
	docs  bool
	batch shard.LocalBatch
}

// Next implements docStream. Bodies are copied, because the batch of local
// documents is filled again before the rows have been used.
func (l *localRows) Next(b *shard.RowBatch) (more bool, err error) {
	more, err = l.localStream.Next(&l.batch)
	b.Rows = b.Rows[:0]
	for i := range l.batch.Rows {
		row := localRow(&l.batch.Rows[i], l.docs)
		if row.Doc != nil {
			row.Doc.Body = bytes.Clone(row.Doc.Body)
		}
		b.Rows = append(b.Rows, row)
	}
	return more, err
}
