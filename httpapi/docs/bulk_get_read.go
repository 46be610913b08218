package docs

import (
	"slices"

	"divan/cluster"
	"divan/cluster/window"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// bulkGetMost is how many entries a batch has at most; see window.Window.
const bulkGetMost = 256

// bulkGetReader reads the entries of a _bulk_get in batches: what one batch
// asks of a copy travels in one message.
type bulkGetReader struct {
	c     *core.Call
	o     *docOptions
	items []bulkGetItem

	first, end int           // the batch at hand
	window     window.Window // how large the next one is
	results    [][]shard.RevResult
	errs       []error
}

func newBulkGetReader(c *core.Call, o *docOptions, items []bulkGetItem) *bulkGetReader {
	return &bulkGetReader{c: c, o: o, items: items, window: window.New(c.Config.CouchDB.MaxDocumentSize, bulkGetMost, &c.Memory)}
}

// begin reads the first batch. The error says that there is no such database:
// that is no matter of single entries.
func (r *bulkGetReader) begin() error {
	if err := r.fill(0); err != nil {
		return err
	}
	if i := slices.IndexFunc(r.errs, func(err error) bool { return fault.Is(err, fault.NoDatabase) }); i >= 0 {
		return r.errs[i]
	}
	return nil
}

// read returns the revisions of an entry, which are asked for in order: the
// one named, or all leaves.
func (r *bulkGetReader) read(i int) ([]shard.RevResult, error) {
	if i >= r.end {
		if err := r.fill(i); err != nil { // there is no memory for these documents: another batch is another try
			for k := range r.results {
				r.results[k], r.errs[k] = nil, err
			}
		}
	}
	at := i - r.first
	results, err := r.results[at], r.errs[at]
	r.results[at] = nil // one entry at a time is written
	return results, err
}

// fill reads a batch. The error says that there is no memory for it.
func (r *bulkGetReader) fill(first int) error {
	r.first, r.end = first, min(first+r.window.Size(), len(r.items))
	n := r.end - first
	r.results, r.errs = make([][]shard.RevResult, n), make([]error, n)
	var wanted []cluster.OpenRevsOptions
	var places []int
	for i := range n {
		it := &r.items[first+i]
		if r.errs[i] = it.err; it.err != nil {
			continue
		}
		if r.errs[i] = r.c.Rights().Read(it.id); r.errs[i] != nil {
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
		return nil
	}
	got, errs := r.c.DB.OpenRevsMany(r.c.Request.Context(), wanted)
	bytes := 0
	for j, at := range places {
		r.results[at], r.errs[at] = got[j], errs[j]
		switch {
		case errs[j] != nil:
		case len(got[j]) == 0:
			r.errs[at] = fault.New(fault.NotFound, "missing")
		default:
			r.errs[at] = screenRevs(r.c, got[j])
		}
		if it := &r.items[first+at]; r.errs[at] != nil {
			r.results[at] = nil
			if !it.hasRev {
				it.revText = []byte(`"undefined"`)
			}
		}
		for k := range got[j] {
			bytes += got[j][k].Doc.Size()
		}
	}
	return r.window.Read(len(wanted), bytes)
}
