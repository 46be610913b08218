package httpapi

import (
	"slices"

	"divan/cluster"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

const (
	bulkGetFirst = 16        // entries of the first batch, whose size nobody knows
	bulkGetMost  = 256       // entries of a batch
	bulkGetBytes = 4 << 20   // of documents that a batch is to have, going by the one before
	bulkGetHeld  = 250 << 20 // of documents that a batch has at most, whatever the one before was like
)

// bulkGetReader reads the entries of a _bulk_get in batches: what one batch
// asks of a copy travels in one message.
type bulkGetReader struct {
	c     *call
	o     *docOptions
	items []bulkGetItem

	first, end int // the batch at hand
	size       int // of the next one
	results    [][]shard.RevResult
	errs       []error
}

// batchMost returns how many entries a batch may have where documents have up
// to maxDocument bytes. Small documents say nothing about those behind them:
// as many of the largest ones have to fit into bulkGetHeld, which also is a
// little below what one message between nodes can hold. That is 32 by default.
// A limit that leaves no room for the first batch is the administrator's word
// that there is memory. (An entry that names no revision has all leaves of its
// document; those of a document in conflict come on top.)
func batchMost(maxDocument int64) int {
	return int(min(max(bulkGetHeld/max(maxDocument, 1), bulkGetFirst), bulkGetMost))
}

// begin reads the first batch. The error says that there is no such database:
// that is no matter of single entries.
func (r *bulkGetReader) begin() error {
	r.fill(0)
	if i := slices.IndexFunc(r.errs, cluster.IsNoDatabase); i >= 0 {
		return r.errs[i]
	}
	return nil
}

// read returns the revisions of an entry, which are asked for in order: the
// one named, or all leaves.
func (r *bulkGetReader) read(i int) ([]shard.RevResult, error) {
	if i >= r.end {
		r.fill(i)
	}
	at := i - r.first
	results, err := r.results[at], r.errs[at]
	r.results[at] = nil // one entry at a time is written
	return results, err
}

// fill reads a batch.
func (r *bulkGetReader) fill(first int) {
	if r.size == 0 {
		r.size = bulkGetFirst
	}
	r.first, r.end = first, min(first+r.size, len(r.items))
	n := r.end - first
	r.results, r.errs = make([][]shard.RevResult, n), make([]error, n)
	var wanted []cluster.OpenRevsOptions
	var places []int
	for i := range n {
		it := &r.items[first+i]
		if r.errs[i] = it.err; it.err != nil {
			continue
		}
		if r.errs[i] = r.c.mayRead(it.id); r.errs[i] != nil {
			continue
		}
		q := cluster.OpenRevsOptions{
			ID: it.id, All: !it.hasRev, Latest: r.o.latest, WithPath: r.o.revs || len(it.since) > 0, R: r.o.r,
		}
		if it.hasRev {
			q.Revs = []doc.Rev{it.rev}
		}
		wanted, places = append(wanted, q), append(places, i)
	}
	if len(wanted) == 0 {
		return
	}
	got, errs := r.c.db.OpenRevsMany(r.c.r.Context(), wanted)
	bytes := 0
	for j, at := range places {
		r.results[at], r.errs[at] = got[j], errs[j]
		switch {
		case errs[j] != nil:
		case len(got[j]) == 0:
			r.errs[at] = fault.New(fault.NotFound, "missing")
		default:
			r.errs[at] = r.c.screenRevs(got[j])
		}
		if it := &r.items[first+at]; r.errs[at] != nil {
			r.results[at] = nil
			if !it.hasRev {
				it.revText = []byte(`"undefined"`)
			}
		}
		for k := range got[j] {
			if d := got[j][k].Doc; d != nil {
				bytes += len(d.Body)
			}
		}
	}
	r.size = min(batchMost(r.c.cfg.CouchDB.MaxDocumentSize), max(bulkGetBytes/max(bytes/len(wanted), 1), 1))
}
