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
// leaves that descend from it. No revision is answered twice. Revisions that have more
// than MaxBytes together are refused with fault.RequestTooLarge.
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
	rec, ok, err := store.Reader().Tip(req.ID)
	if err == nil && rec.Partial && req.needsHistory(&rec) {
		rec, ok, err = store.Reader().Record(req.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("read document %q: %w", req.ID, err)
	}
	o := opener{states: l.states, store: store, req: &OpenRequest{Copy: req.Copy, ID: req.ID}}
	if err := o.waitDurable(ctx, rec.Seq, ok); err != nil {
		return nil, err
	}
	out, _, err := readRevs(store, req, &rec, req.MaxBytes)
	return out, err
}

// RevsAnswer is the answer of OpenRevsMany for one document.
type RevsAnswer struct {
	Results []RevResult
	Err     error
}

// OpenRevsMany is OpenRevs for several documents of one copy, each with its own
// error, in the order of reqs. Their records are read in the order of their ids, which
// takes about half of reading them one by one. Once the documents of the first of reqs
// (Doc.Size) have maxBytes, the rest is answered with fault.RequestTooLarge, and so is a
// document of which several revisions have more than is left of them; MaxBytes of a
// request is not looked at. 0: no bound.
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
	r := openRevsRead{store: store, reqs: reqs, out: out, maxBytes: maxBytes}
	failed := r.read()
	if failed != nil {
		r.held = 0
	}
	for i := range out {
		// Which of them it was does not show; or a revision went away while it was read.
		if failed == nil && !fault.Is(out[i].Err, fault.Corruption) {
			continue
		}
		out[i] = RevsAnswer{}
		one := reqs[i]
		one.Copy, one.MaxBytes = name, 0
		if maxBytes > 0 {
			if one.MaxBytes = maxBytes - r.held; one.MaxBytes <= 0 {
				out[i].Err = ErrTooMuch
				continue
			}
		}
		out[i].Results, out[i].Err = l.OpenRevs(ctx, one)
		for k := range out[i].Results {
			r.held += out[i].Results[k].Doc.Size()
		}
	}
	if r.absent {
		if err := l.states.waitUnsequenced(ctx, name); err != nil {
			return nil, err
		}
	}
	return out, l.states.waitDurable(ctx, name, r.newest)
}

// openRevsRead is one call of OpenRevsMany.
type openRevsRead struct {
	store    *storage.Store
	reqs     []OpenRevsRequest
	out      []RevsAnswer
	maxBytes int

	held   int    // bytes of out
	newest uint64 // the sequence that has to be durable for the answers to stand
	absent bool   // some documents are not here
}

// revsChunk is how many records are held at a time with maxBytes, which goes by the order of the
// requests.
const revsChunk = 16

func (r *openRevsRead) read() error {
	if r.maxBytes == 0 {
		return r.records(r.reqs, func(i int, rec *doc.Record) {
			r.out[i].Results, _, r.out[i].Err = readRevs(r.store, &r.reqs[i], rec, 0)
		})
	}
	vain := 0 // bytes of documents that turned out to be too large
	for first := 0; first < len(r.reqs); first += revsChunk {
		chunk := r.reqs[first:min(first+revsChunk, len(r.reqs))]
		recs := make([]*doc.Record, len(chunk))
		if r.held < r.maxBytes {
			if err := r.records(chunk, func(i int, rec *doc.Record) { recs[i] = rec }); err != nil {
				return err
			}
		}
		for i, rec := range recs {
			if r.held >= r.maxBytes {
				r.out[first+i].Err = ErrTooMuch
				continue
			}
			results, n, err := readRevs(r.store, &chunk[i], rec, r.maxBytes-r.held)
			r.out[first+i] = RevsAnswer{results, err}
			if err == nil {
				r.held += n
			} else if vain += n; vain >= 2*r.maxBytes {
				r.held = r.maxBytes // enough was read of what is too large
			}
		}
	}
	return nil
}

// records reads the records of some requests; fn gets an empty one of a document that is not here.
func (r *openRevsRead) records(reqs []OpenRevsRequest, fn func(i int, rec *doc.Record)) error {
	id := func(i int) string { return reqs[i].ID }
	whole := func(i int, rec *doc.Record) bool { return reqs[i].needsHistory(rec) }
	return eachRecord(r.store.Reader(), len(reqs), id, whole, func(i int, rec *doc.Record) {
		if rec == nil {
			rec = &doc.Record{}
			r.absent = true
		}
		r.newest = max(r.newest, rec.Seq)
		fn(i, rec)
	})
}

// needsHistory reports whether an answer needs what lies in blocks.
func (r *OpenRevsRequest) needsHistory(rec *doc.Record) bool {
	return r.WithPath || slices.ContainsFunc(r.Revs, func(v doc.Rev) bool { return v.Pos < rec.Below.Tip })
}

// ErrTooMuch is the answer for a document that is beyond the bound of a request. The
// caller reads it by itself, or with a larger bound.
var ErrTooMuch = fault.New(fault.RequestTooLarge, "The documents are too large to be read together.")

// readRevs reads the revisions of one document that a request asks for, and returns how
// many bytes it has read. The first one is read; those after it are too much once they have
// more than maxBytes together; 0: no bound.
func readRevs(store *storage.Store, req *OpenRevsRequest, rec *doc.Record, maxBytes int) ([]RevResult, int, error) {
	chosen := chooseRevs(&rec.Tree, req)
	out, held := make([]RevResult, len(chosen)), 0
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
		if !req.RevOnly {
			if err := readContent(store.Reader(), d, inline); err != nil {
				return nil, 0, err
			}
		}
		if req.HeadOnly {
			d.Body = nil
		}
		if req.WithPath {
			d.Revisions = rec.Tree.Path(n.Rev, req.RevsLimit)
		}
		first := held == 0
		if held += d.Size(); maxBytes > 0 && held > maxBytes && !first {
			return nil, held, ErrTooMuch
		}
		out[i].Doc = d
	}
	return out, held, nil
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
