package protocol

import (
	"context"
	"errors"
	"io"
	"slices"

	"divan/replicator/endpoint"
	"divan/storage/doc"
)

// stillLeaves leaves out of the revisions that the source does not show those that
// later ones have replaced. Where the source keeps short histories (_revs_limit),
// it does not know them any more. What replaced them comes with a later change.
func (r *run) stillLeaves(ctx context.Context, late []endpoint.Wanted, rows []endpoint.Change) []endpoint.Wanted {
	if len(late) == 0 {
		return nil
	}
	told := make(map[string][]doc.Rev, len(late))
	for i := range rows {
		told[rows[i].ID] = rows[i].Revs // of several rows the last one
	}
	now, err := r.leaves(ctx, late)
	if err != nil {
		return late // then it is not known
	}
	for i := range late {
		w := &late[i]
		w.Revs = slices.DeleteFunc(slices.Clone(w.Revs), func(rev doc.Rev) bool { return superseded(rev, told[w.ID], now[w.ID]) })
	}
	return slices.DeleteFunc(late, func(w endpoint.Wanted) bool { return len(w.Revs) == 0 })
}

// superseded reports whether a revision is no leaf any more: the changes told so,
// or the document has got a higher leaf since, so that its change comes again.
// Another copy of the source that lags shows no such leaf.
func superseded(rev doc.Rev, told, now []doc.Rev) bool {
	if !slices.Contains(told, rev) {
		return true
	}
	return !slices.Contains(now, rev) && slices.ContainsFunc(now, func(leaf doc.Rev) bool {
		return leaf.Pos > rev.Pos && !slices.Contains(told, leaf)
	})
}

// leaves asks the source for the leaves of documents, by id.
func (r *run) leaves(ctx context.Context, of []endpoint.Wanted) (map[string][]doc.Rev, error) {
	q := endpoint.ChangesQuery{Batch: len(of), WinnerOnly: r.Spec.WinnerOnly, Filter: endpoint.Filter{HasIDs: true}}
	out := make(map[string][]doc.Rev, len(of))
	for i := range of {
		q.Filter.DocIDs = append(q.Filter.DocIDs, of[i].ID)
		out[of[i].ID] = nil
	}
	feed, err := r.Source.Changes(ctx, q)
	if err != nil {
		return nil, err
	}
	defer feed.Close()
	rows := make([]endpoint.Change, len(of))
	for {
		n, err := feed.Next(ctx, rows)
		for i := range rows[:n] {
			if _, asked := out[rows[i].ID]; asked { // others are not held, however many come
				out[rows[i].ID] = rows[i].Revs
			}
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
