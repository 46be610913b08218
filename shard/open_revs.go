package shard

import (
	"context"
	"fmt"
	"slices"

	"divan/storage"
	"divan/storage/doc"
	"divan/storage/fault"
)

// OpenRevs reads several revisions of one document (api.md section 9.2): with
// All every leaf, winner first, and nothing for a document that is not here;
// otherwise each of Revs in the order asked, with Latest replaced by the
// leaves that descend from it. No revision is answered twice.
func (l *Local) OpenRevs(ctx context.Context, req OpenRevsRequest) ([]RevResult, error) {
	store, err := l.states.pin(ctx, req.Copy)
	if err != nil {
		return nil, err
	}
	defer l.states.engine.Release(store)
	for tries := 0; ; tries++ {
		out, err := l.openRevs(ctx, store, &req)
		if !fault.Is(err, fault.Corruption) || tries == rereads {
			return out, err
		}
	}
}

func (l *Local) openRevs(ctx context.Context, store *storage.Store, req *OpenRevsRequest) ([]RevResult, error) {
	rec, ok, err := store.Tip(req.ID)
	if err == nil && rec.Partial && req.needsHistory(&rec) {
		rec, ok, err = store.Record(req.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("read document %q: %w", req.ID, err)
	}
	o := opener{states: l.states, store: store, req: &OpenRequest{Copy: req.Copy, ID: req.ID}}
	if err := o.waitDurable(ctx, rec.Seq, ok); err != nil {
		return nil, err
	}
	return readRevs(store, req, &rec)
}

// RevsAnswer is the answer of OpenRevsMany for one document.
type RevsAnswer struct {
	Results []RevResult
	Err     error
}

// OpenRevsMany is OpenRevs for several documents of one copy, each with its own
// error, in the order of reqs. They are read in the order of their ids, which
// takes about half of reading them one by one. Once the bodies have maxBytes, the
// rest is answered with fault.RequestTooLarge; 0: no bound.
func (l *Local) OpenRevsMany(ctx context.Context, name string, reqs []OpenRevsRequest, maxBytes int) ([]RevsAnswer, error) {
	out := make([]RevsAnswer, len(reqs))
	store, err := l.states.pin(ctx, name)
	if err != nil {
		for i := range out {
			out[i].Err = err
		}
		return out, ctx.Err()
	}
	defer l.states.engine.Release(store)
	var newest uint64 // what has to be durable for the answers to stand
	absent, held := false, 0
	id := func(i int) string { return reqs[i].ID }
	whole := func(i int, rec *doc.Record) bool { return reqs[i].needsHistory(rec) }
	failed := eachRecord(store, len(reqs), id, whole, func(i int, rec *doc.Record) {
		if rec == nil {
			rec = &doc.Record{}
			absent = true
		}
		newest = max(newest, rec.Seq)
		if maxBytes > 0 && held >= maxBytes {
			out[i].Err = fault.New(fault.RequestTooLarge, "The documents are too large to be read together.")
			return
		}
		out[i].Results, out[i].Err = readRevs(store, &reqs[i], rec)
		held += sizeOf(out[i].Results)
	})
	for i := range out {
		// Which of them it was does not show; or a revision went away while it was read.
		if failed != nil || fault.Is(out[i].Err, fault.Corruption) {
			one := reqs[i]
			one.Copy = name
			out[i].Results, out[i].Err = l.OpenRevs(ctx, one)
		}
	}
	if absent {
		if err := l.states.waitUnsequenced(ctx, name); err != nil {
			return nil, err
		}
	}
	return out, l.states.waitDurable(ctx, name, newest)
}

// needsHistory reports whether an answer needs what lies in blocks.
func (r *OpenRevsRequest) needsHistory(rec *doc.Record) bool {
	return r.WithPath || slices.ContainsFunc(r.Revs, func(v doc.Rev) bool { return v.Pos < rec.Below.Tip })
}

// sizeOf returns how many bytes the documents have.
func sizeOf(results []RevResult) int {
	n := 0
	for i := range results {
		n += results[i].Doc.Size()
	}
	return n
}

// readRevs reads the revisions of one document that a request asks for.
func readRevs(store *storage.Store, req *OpenRevsRequest, rec *doc.Record) ([]RevResult, error) {
	chosen := chooseRevs(&rec.Tree, req)
	out := make([]RevResult, len(chosen))
	for i, n := range chosen {
		out[i].Rev = n.Rev
		if !n.Stored {
			continue
		}
		d := &Doc{ID: req.ID, Rev: n.Rev, Deleted: n.Deleted}
		var inline []byte
		if n.Rev == rec.Winner {
			inline = rec.Inline
		}
		if err := readContent(store, d, inline); err != nil {
			return nil, err
		}
		if req.HeadOnly {
			d.Body = nil
		}
		if req.WithPath {
			d.Revisions = rec.Tree.Path(n.Rev, req.RevsLimit)
		}
		out[i].Doc = d
	}
	return out, nil
}

// chooseRevs works out which revisions answer a request, in the order asked;
// those that are not Stored are missing. Each is there once, at its first
// place: what is named a thousand times is not read and held a thousand times.
func chooseRevs(t *doc.Tree, req *OpenRevsRequest) []doc.Node {
	if req.All {
		return t.Leaves()
	}
	var out []doc.Node
	var leaves map[doc.Rev]bool // of Latest, which may descend from several of Revs
	if req.Latest {
		leaves = make(map[doc.Rev]bool)
	}
	for _, r := range DistinctRevs(req.Revs) {
		n, _, ok := t.Find(r)
		switch {
		case !ok:
			out = append(out, doc.Node{Rev: r})
		case !req.Latest:
			out = append(out, n)
		default:
			for _, leaf := range t.LeavesFrom(r) {
				if !leaves[leaf.Rev] {
					leaves[leaf.Rev] = true
					out = append(out, leaf)
				}
			}
		}
	}
	return out
}

// DistinctRevs returns each of revs once, at its first place, as an answer to
// OpenRevs has them.
func DistinctRevs(revs []doc.Rev) []doc.Rev {
	if len(revs) < 2 {
		return revs
	}
	seen := make(map[doc.Rev]struct{}, min(len(revs), 64)) // grows with what is distinct
	out := make([]doc.Rev, 0, min(len(revs), 64))
	for _, r := range revs {
		if _, twice := seen[r]; !twice {
			seen[r] = struct{}{}
			out = append(out, r)
		}
	}
	return out
}
