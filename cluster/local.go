package cluster

import (
	"bytes"
	"context"
	"slices"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/cluster/routing"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// localDocs reads and writes local documents.
type localDocs struct {
	*replicaSet
	docs *docWrites
}

// LocalGet returns a local document; id begins with "_local/". The error is
// fault.NotFound "missing" when there is none.
//
// More than half of the copies are asked. If they differ all are: what a
// majority holds is the last acknowledged write, even when it counts less than
// what it replaced, as the client's count decides that alone. Without such a
// majority the highest count is it, so that a copy that was away does not hide
// what was acknowledged without it; of different bodies with the same count
// that one which more copies have. A deletion leaves nothing behind, so that a
// copy which missed it can show the document again as long as another is away.
func (d *localDocs) LocalGet(ctx context.Context, id string) (*shard.LocalDoc, error) {
	s := d.routing.Owner(id)
	if len(s.Copies) == 1 {
		return askOf(ctx, d.replicaSet, s, about{id, 1}, func(ctx context.Context, rep replica.Copy, t ring.Replica) (*shard.LocalDoc, error) {
			return replica.LocalGet.On(ctx, rep, replica.LocalGetRequest{Copy: t.Name, ID: id})
		})
	}
	before := d.noCopies.Load()
	var best *shard.LocalDoc
	var err error
	d.byNewestMapOf(ctx, s, id, func(d *DB, s *routing.Route) (done bool) {
		before := d.stale.Load()
		best, err = d.localByMap(ctx, s, id)
		return d.stale.Load() == before
	})
	if gone := d.stillThere(ctx, before); gone != nil {
		return nil, gone
	}
	if best == nil && err == nil {
		err = fault.New(fault.NotFound, "missing")
	}
	return best, err
}

// localByMap is LocalGet for the copies of one map; nil when there is none.
func (d *localDocs) localByMap(ctx context.Context, s *routing.Route, id string) (*shard.LocalDoc, error) {
	need := fanout.Majority(s.Near)
	found, err := d.localOf(ctx, s, id, need)
	if err == nil && len(found) > 1 && quorum.LocalVotes(found, found[0]) < len(found) {
		found, err = d.localOf(ctx, s, id, len(s.Near))
	}
	if err != nil {
		return nil, d.phrase(err)
	}
	return quorum.ChooseLocal(found, need), nil
}

// localOf asks as many copies for a local document; nil stands for a copy
// without it. Copies that cannot answer are left out, the error says that none
// could.
func (d *localDocs) localOf(ctx context.Context, s *routing.Route, id string, need int) ([]*shard.LocalDoc, error) {
	type answer struct {
		from ring.Replica
		doc  *shard.LocalDoc
	}
	answers := make([]answer, need)
	errs := make([]error, need)
	_ = fanout.Each(need, func(k int) error { // errors are looked at below
		copies := append(slices.Clone(s.Near[k:k+1]), s.Near[need:]...)
		answers[k], errs[k] = ask(ctx, d.replicaSet, copies, func(ctx context.Context, rep replica.Copy, t ring.Replica) (answer, error) {
			got, err := replica.LocalGet.On(ctx, rep, replica.LocalGetRequest{Copy: t.Name, ID: id})
			if isNotFound(err) {
				err = nil
			}
			return answer{t, got}, err
		})
		return nil
	})
	var out []*shard.LocalDoc
	var failure error
	var heard []ring.Replica
	for k := range answers {
		switch {
		case errs[k] != nil:
			failure = quorum.Telling(failure, errs[k])
		case !slices.Contains(heard, answers[k].from):
			heard, out = append(heard, answers[k].from), append(out, answers[k].doc)
		}
	}
	if len(out) == 0 {
		return nil, failure
	}
	return out, nil
}

// LocalPut writes a local document over any revision, and returns its new revision, which counts on
// from rev (zero: 0-1).
func (d *localDocs) LocalPut(ctx context.Context, id string, rev doc.Rev, body []byte) (doc.Rev, error) {
	return d.localEdit(ctx, shard.Edit{ID: id, Parent: rev, Body: body})
}

// LocalDelete removes a local document; fault.NotFound "missing" when there is
// none.
func (d *localDocs) LocalDelete(ctx context.Context, id string) (doc.Rev, error) {
	if _, err := d.LocalGet(ctx, id); err != nil {
		return doc.Rev{}, err
	}
	return d.localEdit(ctx, shard.Edit{ID: id, Deleted: true})
}

func (d *localDocs) localEdit(ctx context.Context, e shard.Edit) (doc.Rev, error) {
	results, err := d.docs.Update(ctx, UpdateOptions{NewEdits: true}, []shard.Edit{e})
	if err != nil {
		return doc.Rev{}, err
	}
	return results[0].Rev, results[0].Err
}

// localRow is a local document as a row of a listing.
func localRow(l *shard.LocalDoc, includeDoc bool) shard.Row {
	row := shard.Row{ID: l.ID, Rev: l.DocRev()}
	if includeDoc {
		row.Doc = &shard.Doc{ID: l.ID, Rev: row.Rev, Body: l.Body}
	}
	return row
}

// localByID looks up one local document for a listing by keys.
func (d *localDocs) localByID(ctx context.Context, id string, includeDoc bool) (shard.Row, error) {
	l, err := d.LocalGet(ctx, id)
	if isNotFound(err) && !fault.Is(err, fault.NoDatabase) {
		return shard.Row{ID: id, Missing: true}, nil
	}
	if err != nil {
		return shard.Row{}, err
	}
	return localRow(l, includeDoc), nil
}

// listLocal is AllDocs for the local documents in a range, which are not counted.
func (d *listings) listLocal(ctx context.Context, q DocsQuery) (*DocRows, error) {
	picked, err := d.covered()
	if err != nil {
		return nil, err
	}
	ids := spaceOf(&DocsQuery{Namespace: LocalDocs}).within(&q)
	req := shard.LocalDocsRequest{
		Lo: ids.lo, Hi: ids.hi, HasHi: ids.bounded, HiExclusive: true, Desc: q.Descending, System: q.System,
	}
	m, err := d.openMerge(ctx, picked, q.Descending, func(ctx context.Context, rep replica.Copy, t ring.Replica, behind string) (replica.Docs, error) {
		mine := req
		mine.Copy = t.Name
		switch {
		case behind == "":
		case mine.Desc:
			mine.Hi, mine.HasHi, mine.HiExclusive = behind, true, true
		default:
			mine.Lo, mine.LoExclusive = behind, true
		}
		locals, err := replica.LocalDocs.On(ctx, rep, mine)
		if err != nil {
			return replica.Docs{}, err
		}
		return replica.Docs{Stream: &localRows{Stream: locals.Stream, docs: q.IncludeDocs}}, nil
	})
	if err != nil {
		return nil, err
	}
	return &DocRows{Total: -1, Offset: -1, source: m, skip: max(q.Skip, 0), left: q.Limit}, nil
}

// localRows is a listing of local documents as rows like any other.
type localRows struct {
	replica.Stream[shard.LocalBatch]
	docs  bool
	batch shard.LocalBatch
}

// Next implements replica.Stream. Bodies are copied, because the batch of local
// documents is filled again before the rows have been used.
func (l *localRows) Next(b *shard.RowBatch) (more bool, err error) {
	more, err = l.Stream.Next(&l.batch)
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
