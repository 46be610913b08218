package docs

import (
	"errors"
	"slices"

	"divan/cluster"
	"divan/cluster/window"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

const (
	// bulkGetMost is how many entries a batch has at most; see window.Window.
	bulkGetMost = 256
	// bulkGetFew is how many of a batch are asked for together while documents of entries behind
	// them take most of the space.
	bulkGetFew = 16
)

// bulkGetReader reads the entries of a _bulk_get in batches: what one batch
// asks of a copy travels in one message. Entries that are too large to be read
// with those that are held are asked for again when it is their turn.
type bulkGetReader struct {
	c     *core.Call
	o     *docOptions
	items []bulkGetItem

	first, end int           // the batch at hand
	window     window.Window // how large the next one is
	results    [][]shard.RevResult
	errs       []error
	open       []bool // not read yet
}

func newBulkGetReader(c *core.Call, o *docOptions, items []bulkGetItem) *bulkGetReader {
	return &bulkGetReader{c: c, o: o, items: items, window: window.New(bulkGetMost, &c.Memory)}
}

// begin reads the first batch. The error says that there is no such database:
// that is no matter of single entries.
func (r *bulkGetReader) begin() error {
	r.next(0)
	r.fill(0)
	if i := slices.IndexFunc(r.errs, func(err error) bool { return fault.Is(err, fault.NoDatabase) }); i >= 0 {
		return r.errs[i]
	}
	return nil
}

// read returns the revisions of an entry, which are asked for in order: the
// one named, or all leaves.
func (r *bulkGetReader) read(i int) ([]shard.RevResult, error) {
	if i >= r.end {
		r.next(i)
	}
	at := i - r.first
	if r.open[at] {
		r.fill(at)
	}
	results, err := r.results[at], r.errs[at]
	r.results[at] = nil // one entry at a time is written
	return results, err
}

// next begins the batch whose first entry is that one.
func (r *bulkGetReader) next(first int) {
	r.first, r.end = first, min(first+r.window.Size(), len(r.items))
	n := r.end - first
	r.results, r.errs, r.open = make([][]shard.RevResult, n), make([]error, n), make([]bool, n)
	for i := range n {
		it := &r.items[first+i]
		if r.errs[i] = it.err; it.err == nil {
			r.errs[i] = r.c.Rights().Read(it.id)
		}
		r.open[i] = r.errs[i] == nil
	}
}

// fill reads open entries of the batch, the one at that place and as many others as there is
// space for. Where there is no memory for that one it is the entry's error.
func (r *bulkGetReader) fill(at int) {
	r.window.Keep(r.held())
	var wanted []cluster.OpenRevsOptions
	var places []int
	most, maxBytes := r.window.Size(), window.MaxBytes-r.held()
	if maxBytes < window.MaxBytes/4 {
		most, maxBytes = min(most, bulkGetFew), window.MaxBytes/4
	}
	for i := at; i < len(r.open) && len(wanted) < most; i++ {
		if r.open[i] {
			wanted, places = append(wanted, r.options(i, maxBytes)), append(places, i)
		}
	}
	ctx := r.c.Request.Context()
	got, errs := r.c.DB.OpenRevsMany(ctx, wanted)
	for j, i := range places {
		if !fault.Is(errs[j], fault.RequestTooLarge) {
			r.take(i, got[j], errs[j])
		}
	}
	if len(wanted) > 0 && places[0] == at && r.open[at] {
		got, err := r.c.DB.OpenRevs(ctx, wanted[0])
		if noMemory(err) && r.held() > 0 {
			r.reopen(at, 0) // nothing is read at that place yet
			r.window.Keep(0)
			got, err = r.c.DB.OpenRevs(ctx, wanted[0])
		}
		r.take(at, got, err)
		defer r.window.Shrink(1) // others may be as large
	}
	r.reopen(at, 2*window.MaxBytes+r.sizeOf(at))
	var read []int // that one first
	for i := at; i < len(r.open); i++ {
		if !r.open[i] {
			read = append(read, i)
		}
	}
	held, err := r.window.Hold(len(read), func(k int) int { return r.sizeOf(read[k]) })
	for _, i := range read[held:] {
		if r.sizeOf(i) > 0 {
			r.results[i], r.open[i] = nil, true
		}
	}
	if err != nil {
		r.take(at, nil, err)
	}
}

// noMemory reports whether an error refuses a request that there is no memory for.
func noMemory(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && (f.Kind == fault.Busy || f.Code == "too_large")
}

// reopen gives up documents of the last entries, which are read again when it is their turn, while
// all of them have more bytes than most. The entry at that place stays.
func (r *bulkGetReader) reopen(at, most int) {
	held := r.held()
	for k := len(r.results) - 1; k > at && held > most; k-- {
		held -= r.sizeOf(k)
		if len(r.results[k]) > 0 {
			r.results[k], r.open[k] = nil, true
		}
	}
}

// held returns how large the documents are that were read and not written yet.
func (r *bulkGetReader) held() int {
	bytes := 0
	for i := range r.results {
		bytes += r.sizeOf(i)
	}
	return bytes
}

// sizeOf is held for one entry; 0: behind the end.
func (r *bulkGetReader) sizeOf(at int) int {
	bytes := 0
	if at < len(r.results) {
		for i := range r.results[at] {
			bytes += r.results[at][i].Doc.Size()
		}
	}
	return bytes
}

// options says how to read an entry.
func (r *bulkGetReader) options(at, maxBytes int) cluster.OpenRevsOptions {
	it := &r.items[r.first+at]
	o := cluster.OpenRevsOptions{
		ID: it.id, All: !it.hasRev, Latest: r.o.latest, WithPath: r.o.revs || len(it.since) > 0, R: r.o.r,
		MaxBytes: maxBytes, Memory: &r.c.Memory,
	}
	if it.hasRev {
		o.Revs = []doc.Rev{it.rev}
	}
	return o
}

// take keeps the answer for an entry.
func (r *bulkGetReader) take(at int, got []shard.RevResult, err error) {
	r.open[at] = false
	if err == nil && len(got) == 0 {
		err = fault.New(fault.NotFound, "missing")
	}
	if err == nil {
		err = screenRevs(r.c, got)
	}
	if r.errs[at] = err; err == nil {
		r.results[at] = got
	} else if it := &r.items[r.first+at]; !it.hasRev {
		it.revText = []byte(`"undefined"`)
	}
}
