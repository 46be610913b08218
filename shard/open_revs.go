package shard

import (
	"context"
	"fmt"

	"divan/storage"
	"divan/storage/doc"
	"divan/storage/fault"
)

// OpenRevs reads several revisions of one document (api.md section 9.2): with
// All every leaf, winner first, and nothing for a document that is not here;
// otherwise each of Revs in the order asked, with Latest replaced by the
// leaves that descend from it. No revision is answered twice.
func (l *Local) OpenRevs(ctx context.Context, req OpenRevsRequest) ([]RevResult, error) {
	store, err := l.pin(ctx, req.Copy)
	if err != nil {
		return nil, err
	}
	defer l.engine.Release(store)
	for tries := 0; ; tries++ {
		out, err := l.openRevs(ctx, store, &req)
		if !fault.Is(err, fault.Corruption) || tries == rereads {
			return out, err
		}
	}
}

func (l *Local) openRevs(ctx context.Context, store *storage.Store, req *OpenRevsRequest) ([]RevResult, error) {
	rec, ok, err := store.Record(req.ID)
	if err != nil {
		return nil, fmt.Errorf("read document %q: %w", req.ID, err)
	}
	o := opener{local: l, store: store, req: &OpenRequest{Copy: req.Copy, ID: req.ID}}
	if err := o.waitDurable(ctx, rec.Seq, ok); err != nil {
		return nil, err
	}
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
