package cluster

import (
	"cmp"
	"context"
	"slices"

	"divan/cluster/fanout"
	"divan/cluster/meta/dbsetting"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/cluster/routing"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/memory"
)

// OpenRevs returns several revisions of one document, as R copies know it
// together: with All every leaf, the winner first, none for a document that
// does not exist; otherwise an answer for each of Revs (more with Latest),
// whose Doc is nil when it is not stored. A revision that is named twice is
// answered once, at its first place.
//
// With Memory all revisions together have space there before they are read: a few
// MB are tried first, then four times as much each time.
func (d *docReads) OpenRevs(ctx context.Context, o OpenRevsOptions) ([]shard.RevResult, error) {
	if o.Memory == nil {
		return d.openRevs(ctx, o)
	}
	space := memory.InSteps(o.Memory)
	defer space.Reduce(0)
	for o.MaxBytes = revsBytes; ; {
		out, err := d.openRevs(ctx, o)
		if !fault.Is(err, fault.RequestTooLarge) || o.MaxBytes >= maxRevsBytes {
			return out, err
		}
		space.Reduce(0)
		if o.MaxBytes, err = moreSpace(&space, o.MaxBytes); err != nil {
			return nil, err
		}
	}
}

const (
	revsBytes    = 4 << 20 // of documents that OpenRevs reads before it counts them
	maxRevsBytes = 1 << 40 // beyond what the memory of any node counts
)

// moreSpace takes space for more than so many bytes: four times as many, or what there is but for
// less than 1 MB.
func moreSpace(space *memory.Steps, bytes int) (taken int, err error) {
	for more := 3 * bytes; more >= revsBytes/8; more /= 2 {
		if err = space.Add(bytes + more); err == nil {
			return bytes + more, nil
		}
	}
	return 0, err
}

func (d *docReads) openRevs(ctx context.Context, o OpenRevsOptions) ([]shard.RevResult, error) {
	s := d.routing.Owner(o.ID)
	if len(s.Copies) == 1 || o.R == 1 && o.All { // a revision that is named may be at another copy
		req := d.revsRequest(&o)
		return askOf(ctx, d.replicaSet, s, about{o.ID, 1}, func(ctx context.Context, rep replica.Copy, t ring.Replica) ([]shard.RevResult, error) {
			mine := req
			mine.Copy = t.Name
			return replica.OpenRevs.On(ctx, rep, mine)
		})
	}
	out, errs := d.OpenRevsMany(ctx, []OpenRevsOptions{o})
	return out[0], errs[0]
}

func (d *docReads) revsRequest(o *OpenRevsOptions) shard.OpenRevsRequest {
	return shard.OpenRevsRequest{
		ID: o.ID, Revs: shard.DistinctRevs(o.Revs), All: o.All, Latest: o.Latest, WithPath: o.WithPath,
		RevsLimit: d.meta.Settings[dbsetting.RevsLimit], MaxBytes: o.MaxBytes,
	}
}

// OpenRevsMany is OpenRevs for several documents, each with its own error. A
// copy gets its part of them in one message. R and MaxBytes of the first one
// count for all.
func (d *docReads) OpenRevsMany(ctx context.Context, list []OpenRevsOptions) ([][]shard.RevResult, []error) {
	before := d.noCopies.Load()
	out, errs := make([][]shard.RevResult, len(list)), make([]error, len(list))
	if len(list) == 0 {
		return out, errs
	}
	groups := d.routing.Group(len(list), func(i int) string { return list[i].ID })
	routing.InOrder(groups)
	asked := make([]bool, len(groups))
	_ = fanout.EachWithin(len(groups), list[0].MaxBytes, func(g, share int) (bytes int, _ error) { // errors are told item by item
		asked[g] = true
		d.byNewestMap(ctx, groups[g], func(i int) string { return list[i].ID }, func(d *DB, g routing.Group) (open []int) {
			before := d.stale.Load()
			r := openRevsOfRange{db: &d.docReads, route: g.Route, list: pick(list, g.Items), maxBytes: share}
			got, failures := r.run(ctx, list[0].R)
			for i, at := range g.Items {
				out[at], errs[at] = got[i], d.phrase(failures[i])
			}
			if d.stale.Load() == before {
				return nil
			}
			return g.Items
		})
		for _, at := range groups[g].Items {
			for k := range out[at] {
				bytes += out[at][k].Doc.Size()
			}
		}
		return bytes, nil
	})
	for g := range groups {
		for _, at := range groups[g].Items {
			if !asked[g] {
				errs[at] = shard.ErrTooMuch
			}
		}
	}
	if gone := d.stillThere(ctx, before); gone != nil {
		for i := range errs {
			out[i], errs[i] = nil, gone
		}
	}
	return out, errs
}

// openRevsOfRange is the part of an OpenRevsMany that belongs to one range. The
// first copy, that of this node if there is one, is asked for everything, the
// others, as many as R says, without bodies. What they have beyond that is
// fetched from them.
type openRevsOfRange struct {
	db    *docReads
	route *routing.Route
	list  []OpenRevsOptions
	// maxBytes bounds the documents that a copy answers with; 0: no bound.
	maxBytes int
}

// revised is the answer of one copy to all requests.
type revised struct {
	from ring.Replica
	got  [][]shard.RevResult
	errs []error
}

func (r *openRevsOfRange) run(ctx context.Context, need int) ([][]shard.RevResult, []error) {
	ctx, cancel := r.db.deadline(ctx)
	defer cancel()
	answers, err := r.answers(ctx, need)
	if err != nil {
		errs := make([]error, len(r.list))
		for i := range errs {
			errs[i] = err
		}
		return make([][]shard.RevResult, len(r.list)), errs
	}
	out, errs := answers[0].got, answers[0].errs
	if len(answers) > 1 {
		r.merge(ctx, answers, out, errs)
	}
	r.askOthers(ctx, answers, out, errs)
	return out, errs
}

// unseen is a named revision that no copy has shown yet.
type unseen struct{ item, place int }

// askOthers asks the copies that were not asked yet for named revisions that are
// still missing: a revision is the same wherever it is.
func (r *openRevsOfRange) askOthers(ctx context.Context, answers []revised, out [][]shard.RevResult, errs []error) {
	for _, t := range r.route.Near {
		if slices.ContainsFunc(answers, func(a revised) bool { return a.from == t }) {
			continue
		}
		var open []unseen
		var reqs []shard.OpenRevsRequest
		for i := range r.list {
			if r.list[i].All || errs[i] != nil {
				continue
			}
			for j := len(out[i]) - 1; j >= 0; j-- { // from behind, because places move
				if out[i][j].Doc == nil {
					req := r.db.revsRequest(&r.list[i])
					req.Revs = []doc.Rev{out[i][j].Rev}
					open, reqs = append(open, unseen{i, j}), append(reqs, req)
				}
			}
		}
		rep := r.db.replica(t)
		if len(open) == 0 || rep.Away() {
			continue
		}
		soon, cancel := context.WithTimeout(ctx, fanout.NudgeLimit)
		answers, err := replica.OpenRevsMany.On(soon, rep, replica.OpenRevsManyRequest{Copy: t.Name, Docs: reqs, MaxBytes: r.left(out)})
		cancel()
		r.db.noteRefusal(err)
		for k, l := range open {
			if err == nil && fault.Is(answers[k].Err, fault.RequestTooLarge) {
				out[l.item], errs[l.item] = nil, answers[k].Err
			}
			if err == nil && errs[l.item] == nil && len(answers[k].Results) > 0 && answers[k].Results[0].Doc != nil {
				// With Latest another revision may have led to the same leaf.
				found := slices.DeleteFunc(answers[k].Results, func(f shard.RevResult) bool {
					return slices.ContainsFunc(out[l.item], func(o shard.RevResult) bool { return o.Rev == f.Rev && o.Doc != nil })
				})
				out[l.item] = slices.Replace(out[l.item], l.place, l.place+1, found...)
			}
		}
	}
}

// left returns how much of maxBytes some results leave, at least a byte; 0: no bound.
func (r *openRevsOfRange) left(results [][]shard.RevResult) int {
	if r.maxBytes == 0 {
		return 0
	}
	left := r.maxBytes
	for i := range results {
		for k := range results[i] {
			left -= results[i][k].Doc.Size()
		}
	}
	return max(left, 1)
}

// answers asks as many copies as need says; the first answer is complete. The
// error says that no copy answered.
func (r *openRevsOfRange) answers(ctx context.Context, need int) ([]revised, error) {
	near := r.route.Near
	if need < 1 {
		need = fanout.Majority(near)
	}
	need = min(need, len(near))
	// The copies are dealt out, so that every request begins with another one
	// and all of them may fall back on the rest.
	answers := make([]revised, need)
	failures := make([]error, need)
	_ = fanout.Each(need, func(k int) error { // failures are looked at below
		copies := append(slices.Clone(near[k:k+1]), near[need:]...)
		answers[k], failures[k] = ask(ctx, r.db.replicaSet, copies, func(ctx context.Context, rep replica.Copy, t ring.Replica) (revised, error) {
			return r.ask(ctx, rep, t, k > 0)
		})
		return nil
	})
	var out []revised
	var failure error
	for k := range answers {
		switch {
		case failures[k] != nil:
			failure = quorum.Telling(failure, failures[k])
		case slices.ContainsFunc(out, func(o revised) bool { return o.from == answers[k].from }):
		default:
			out = append(out, answers[k])
		}
	}
	if len(out) == 0 {
		return nil, failure
	}
	if failures[0] != nil { // no copy that answered was asked for everything
		whole, err := ask(ctx, r.db.replicaSet, []ring.Replica{out[0].from}, func(ctx context.Context, rep replica.Copy, t ring.Replica) (revised, error) {
			return r.ask(ctx, rep, t, false)
		})
		if err != nil {
			return nil, err
		}
		out[0] = whole
	}
	return out, nil
}

// ask puts all requests to one copy.
func (r *openRevsOfRange) ask(ctx context.Context, rep replica.Copy, t ring.Replica, revOnly bool) (revised, error) {
	reqs := make([]shard.OpenRevsRequest, len(r.list))
	for i := range r.list {
		reqs[i] = r.db.revsRequest(&r.list[i])
		if revOnly {
			reqs[i].HeadOnly, reqs[i].RevOnly, reqs[i].WithPath = true, true, false
		}
	}
	maxBytes := r.maxBytes
	if revOnly {
		maxBytes = 0
	}
	answers, err := replica.OpenRevsMany.On(ctx, rep, replica.OpenRevsManyRequest{Copy: t.Name, Docs: reqs, MaxBytes: maxBytes})
	if err != nil {
		return revised{}, err
	}
	a := revised{from: t, got: make([][]shard.RevResult, len(answers)), errs: make([]error, len(answers))}
	for i := range answers {
		a.got[i], a.errs[i] = answers[i].Results, answers[i].Err
	}
	if i := slices.IndexFunc(a.errs, noMatterOfADocument); i >= 0 {
		return revised{}, a.errs[i]
	}
	return a, nil
}

// noMatterOfADocument reports whether a copy that gave this error would not
// have answered about any other document either: it is not there, is being
// rebuilt, or its node is in maintenance. Another copy has to be asked.
func noMatterOfADocument(err error) bool {
	return fault.Is(err, fault.NoCopy) || fault.Is(err, fault.Unavailable)
}

// merge replaces in out what the first copy answered where others know more.
// Documents about which the copies differ are repaired in the background.
func (r *openRevsOfRange) merge(ctx context.Context, answers []revised, out [][]shard.RevResult, errs []error) {
	var differ []int
	for i := range r.list {
		if fault.Is(errs[i], fault.RequestTooLarge) { // it will be asked for again
			continue
		}
		for _, a := range answers[1:] {
			if a.errs[i] == nil && (errs[i] != nil || !sameRevs(a.got[i], out[i])) {
				differ = append(differ, i)
				break
			}
		}
	}
	if len(differ) == 0 {
		return
	}
	full, failures := r.leaves(ctx, answers, differ)
	copies := make([]ring.Replica, len(answers))
	for k := range answers {
		copies[k] = answers[k].from
	}
	for k, i := range differ {
		r.db.repairs.later(ctx, r.db.replicaSet, r.list[i].ID, copies)
		if failures[k] != nil {
			out[i], errs[i] = nil, failures[k]
		} else if merged, ok := mergeRevs(&r.list[i], full[k], r.db.meta.Settings[dbsetting.RevsLimit]); ok {
			out[i], errs[i] = merged, nil
		}
	}
}

// leaves reads from every copy what it has of the documents that the copies
// differ about: complete, and with all ancestors. A failure says that a document
// is beyond maxBytes.
func (r *openRevsOfRange) leaves(ctx context.Context, answers []revised, differ []int) (out [][][]shard.RevResult, failures []error) {
	out = make([][][]shard.RevResult, len(differ)) // by document, by copy
	beyond := make([][]error, len(answers))        // by copy, by document
	for k := range out {
		out[k] = make([][]shard.RevResult, len(answers))
	}
	_ = fanout.Each(len(answers), func(c int) error { // a copy that is gone by now has said nothing
		rep := r.db.replica(answers[c].from)
		if rep.Away() {
			return nil
		}
		reqs := make([]shard.OpenRevsRequest, len(differ))
		for k, i := range differ {
			reqs[k] = r.db.revsRequest(&r.list[i])
			reqs[k].WithPath, reqs[k].RevsLimit = true, 0
		}
		found, err := replica.OpenRevsMany.On(ctx, rep, replica.OpenRevsManyRequest{
			Copy: answers[c].from.Name, Docs: reqs, MaxBytes: (r.maxBytes + len(answers) - 1) / len(answers),
		})
		if r.db.noteRefusal(err); err != nil {
			return nil //nolint:nilerr // it has said nothing
		}
		beyond[c] = make([]error, len(differ))
		for k := range differ {
			if found[k].Err == nil {
				out[k][c] = append([]shard.RevResult{}, found[k].Results...) // not nil: it has answered
			} else if fault.Is(found[k].Err, fault.RequestTooLarge) {
				beyond[c][k] = found[k].Err
			}
		}
		return nil
	})
	failures = make([]error, len(differ))
	for _, of := range beyond {
		for k := range of {
			failures[k] = cmp.Or(failures[k], of[k])
		}
	}
	return out, failures
}

// sameRevs reports whether two copies answered the same revisions.
func sameRevs(a, b []shard.RevResult) bool {
	return slices.EqualFunc(a, b, func(x, y shard.RevResult) bool {
		return x.Rev == y.Rev && (x.Doc == nil) == (y.Doc == nil)
	})
}

// mergeRevs makes one answer of those of several copies: what is stored
// anywhere counts, and a leaf of one copy that another one knows a descendant
// of is no leaf. ok is false when no copy answered.
func mergeRevs(o *OpenRevsOptions, byCopy [][]shard.RevResult, limit int) (out []shard.RevResult, ok bool) {
	var tree doc.Tree
	docs := make(map[doc.Rev]*shard.Doc)
	for _, results := range byCopy {
		ok = ok || results != nil
		for _, r := range results {
			if r.Doc == nil {
				continue
			}
			tree.Merge(r.Doc.Revisions, doc.Node{Rev: r.Rev, Deleted: r.Doc.Deleted, Stored: true})
			if docs[r.Rev] == nil {
				docs[r.Rev] = r.Doc
			}
		}
	}
	if !ok {
		return nil, false
	}
	add := func(rev doc.Rev) {
		d := docs[rev]
		if d != nil {
			if !o.WithPath {
				d.Revisions = doc.Path{}
			} else if limit > 0 && len(d.Revisions.IDs) > limit {
				d.Revisions.IDs = d.Revisions.IDs[:limit]
			}
		}
		out = append(out, shard.RevResult{Rev: rev, Doc: d})
	}
	if o.All {
		for _, n := range tree.Leaves() {
			add(n.Rev)
		}
		return out, true
	}
	taken := make(map[doc.Rev]bool)
	for _, rev := range shard.DistinctRevs(o.Revs) {
		if !o.Latest {
			add(rev)
			continue
		}
		leaves := tree.LeavesFrom(rev)
		if len(leaves) == 0 {
			add(rev)
		}
		for _, n := range leaves {
			if !taken[n.Rev] {
				taken[n.Rev] = true
				add(n.Rev)
			}
		}
	}
	return out, true
}

// Missing tells for each id, in the order given, which of the revisions the
// database does not have, and which of its leaves they may descend from: what
// _revs_diff and _missing_revs answer. One copy is asked: that it open what
// another one has makes a replicator send it again, which changes nothing.
func (d *docReads) Missing(ctx context.Context, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	groups := d.routing.Group(len(ids), func(i int) string { return ids[i].ID })
	out := make([]shard.IDMissing, len(ids))
	err := fanout.Each(len(groups), func(g int) error {
		mine := pick(ids, groups[g].Items)
		answers, err := ask(ctx, d.replicaSet, groups[g].Route.Near, func(ctx context.Context, rep replica.Copy, t ring.Replica) ([]shard.IDMissing, error) {
			return replica.Missing.On(ctx, rep, replica.MissingRequest{Copy: t.Name, IDs: mine})
		})
		if err != nil {
			return err
		}
		for i, at := range groups[g].Items {
			out[at] = answers[i]
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
