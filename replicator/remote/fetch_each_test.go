package remote

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"divan/replicator/endpoint"
	"divan/replicator/spec"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/pause"
)

// far is a server without _bulk_get, 50 ms away.
func far(o *old, busy, most *atomic.Int64) http.HandlerFunc {
	o.noBulk = http.StatusNotFound
	return func(w http.ResponseWriter, r *http.Request) {
		for now := busy.Add(1); ; {
			if before := most.Load(); now <= before || most.CompareAndSwap(before, now) {
				break
			}
		}
		defer busy.Add(-1)
		_ = pause.For(r.Context(), 50*time.Millisecond)
		o.ServeHTTP(w, r)
	}
}

// A server without _bulk_get is asked for several documents at once, over all
// connections but one, and take gets one after the other.
func TestFetchSideBySide(t *testing.T) {
	const documents, connections = 800, 20
	o := &old{}
	var wanted []endpoint.Wanted
	for i := range documents {
		s := &stored{id: fmt.Sprintf("doc%d", i), path: doc.Path{Start: 1, IDs: []string{rev(1, "a").ID}}}
		o.docs = append(o.docs, s)
		wanted = append(wanted, endpoint.Wanted{ID: s.id, Revs: []doc.Rev{s.path.Rev()}})
	}
	var busy, most atomic.Int64
	with(t, far(o, &busy, &most), func(t *testing.T, p *peer) {
		t.Helper()
		d := p.over(connections)
		taken, taking, began := 0, false, time.Now()
		err := d.Fetch(t.Context(), endpoint.FetchOptions{}, wanted, func(*endpoint.Doc, endpoint.Contents) error {
			if taking {
				t.Error("take is called twice at once")
			}
			taking = true
			_ = pause.For(t.Context(), time.Millisecond)
			taken, taking = taken+1, false
			return nil
		})
		if err != nil || taken != documents {
			t.Fatalf("%d documents, %v", taken, err)
		}
		if took, limit := time.Since(began), 2*documents/connections*50*time.Millisecond; took > limit {
			t.Errorf("took %v, limit %v", took, limit)
		}
		if got := most.Load(); got != connections-1 {
			t.Errorf("%d requests at once", got)
		}
	})
}

// However few connections there are: contents that come by requests of their own
// do not wait for readers that wait for them.
func TestFetchSideBySideContents(t *testing.T) {
	for connections := 1; connections < 5; connections++ {
		for _, o := range []*old{{}, {stubs: true}, {arrays: true}} {
			docs, wanted := library()
			o.docs = docs
			var busy, most atomic.Int64
			with(t, far(o, &busy, &most), func(t *testing.T, p *peer) {
				t.Helper()
				got, err := fetchAll(t.Context(), p.over(connections), endpoint.FetchOptions{}, wanted...)
				if want := expected(t, docs, wanted); err != nil || len(got) != len(want) {
					t.Errorf("%d connections: %d documents of %d, %v", connections, len(got), len(want), err)
				}
				if got := most.Load(); got > int64(connections) {
					t.Errorf("%d requests at once over %d connections", got, connections)
				}
			})
		}
	}
}

// An error of one document ends the reading of all others, and is the one that is told.
// Another reader that waits for its turn does not take a document first.
func TestFetchSideBySideFails(t *testing.T) {
	docs, wanted := library()
	o := &old{docs: docs}
	var busy, most atomic.Int64
	with(t, far(o, &busy, &most), func(t *testing.T, p *peer) {
		t.Helper()
		mine, calls := fault.New(fault.Forbidden, "mine"), 0
		err := p.over(4).Fetch(t.Context(), endpoint.FetchOptions{}, wanted, func(*endpoint.Doc, endpoint.Contents) error {
			calls++
			return mine
		})
		if !fault.Is(err, fault.Forbidden) || calls != 1 {
			t.Errorf("%d calls, %v", calls, err)
		}
	})
}

// over opens the peer's database with so many connections.
func (p *peer) over(connections int) *Database {
	p.t.Helper()
	d := p.open(spec.Address{})
	d.client.options.Connections = connections
	d.client.slots = make(chan struct{}, connections)
	d.readers = make(chan struct{}, readersOf(connections))
	return d
}
